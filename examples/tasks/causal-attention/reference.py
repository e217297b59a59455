import math

import torch
import torch.nn as nn

batch = 4
heads = 8
length = 1024
dim = 64


class Model(nn.Module):
    """Attention of each query over the keys up to its own position."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        size = q.shape[-2]
        later = torch.triu(torch.ones(size, size, dtype=torch.bool, device=q.device), diagonal=1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        return torch.matmul(weights, v)


def get_inputs():
    shape = (batch, heads, length, dim)
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return []
