import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 8192
hidden = 4096


class Model(nn.Module):
    """Layer normalisation over the last dimension; gain and bias are inputs."""

    def __init__(self, eps: float):
        super().__init__()
        self.eps = eps

    def forward(self, x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (x.shape[1],), gain, bias, self.eps)


def get_inputs():
    x = torch.randn(rows, hidden) * 2.0 + 1.0
    gain = torch.rand(hidden) + 0.5
    bias = torch.randn(hidden)
    return [x, gain, bias]


def get_init_inputs():
    return [1e-5]
