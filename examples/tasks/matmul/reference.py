import torch
import torch.nn as nn

m = 2048
n = 1536
k = 1024


class Model(nn.Module):
    """Matrix product."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
