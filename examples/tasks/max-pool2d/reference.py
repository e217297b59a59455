import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 32
channels = 64
height = 112
width = 112
window = 3
stride = 2
padding = 1


class Model(nn.Module):
    """Largest value in a sliding square window."""

    def __init__(self, window: int, stride: int, padding: int):
        super().__init__()
        self.window = window
        self.stride = stride
        self.padding = padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, self.window, self.stride, self.padding)


def get_inputs():
    # Below zero on the average, so that padding with zeros shows.
    return [torch.randn(batch, channels, height, width) - 2.0]


def get_init_inputs():
    return [window, stride, padding]
