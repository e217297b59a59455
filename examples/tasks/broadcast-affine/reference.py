import torch
import torch.nn as nn

batch = 32
channels = 256
length = 4096


class Model(nn.Module):
    """Scales each channel and shifts each position of a batch of signals."""

    def forward(self, x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        return x * scale.view(1, -1, 1) + shift


def get_inputs():
    x = torch.randn(batch, channels, length)
    scale = torch.rand(channels) + 0.5
    shift = torch.randn(batch, 1, length)
    return [x, scale, shift]


def get_init_inputs():
    return []
