import torch
import torch.nn as nn

vocabulary = 50000
dim = 256
bags = 8192
bag_size = 64


class Model(nn.Module):
    """Sum of the table rows that each bag names."""

    def forward(self, table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        return table[indices].sum(dim=1)


def get_inputs():
    table = torch.randn(vocabulary, dim)
    indices = torch.randint(0, vocabulary, (bags, bag_size))
    return [table, indices]


def get_init_inputs():
    return []
