"""Families of input values beside those that the task's own generator gives.

Each keeps what a kernel may rely on: zeros where a matrix is triangular, symmetry,
values that are labels or probabilities. Only floating tensors change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_FEW_VALUES = 16


def is_free(tensor: torch.Tensor) -> bool:
    """Whether its values look drawn from a continuous range that may be changed."""
    if not tensor.is_floating_point() or tensor.numel() < 2:
        return False
    if torch.unique(tensor.flatten()[:4096].double()).numel() <= _FEW_VALUES < tensor.numel():
        return False
    if tensor.dim() >= 1 and tensor.shape[-1] > 1:
        sums = tensor.double().sum(-1)
        if bool((tensor >= 0).all()) and bool(((sums - 1).abs() < 1e-3).all()):
            return False  # each row is a distribution
    return True


def is_symmetric(tensor: torch.Tensor) -> bool:
    return (
        tensor.dim() >= 2
        and tensor.shape[-1] == tensor.shape[-2]
        and torch.equal(tensor, tensor.transpose(-1, -2))
    )


def _scaled(factor: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    # Powers of two: exact, so symmetry and ties stay.
    return lambda tensor, _generator: tensor * factor


def _sparse(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    draw = torch.rand(tensor.shape, generator=generator, device=tensor.device)
    if is_symmetric(tensor):
        draw = torch.minimum(draw, draw.transpose(-1, -2))
    return torch.where(draw < 0.1, tensor, torch.zeros_like(tensor))


def _constant(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    present = tensor[tensor != 0]
    value = present.double().mean() if present.numel() else tensor.new_ones(())
    return torch.where(tensor != 0, value.to(tensor.dtype), torch.zeros_like(tensor))


def _signed(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    """Of values with one sign only: spread around zero."""
    if not (bool((tensor >= 0).all()) or bool((tensor <= 0).all())):
        return tensor
    middle = tensor.abs().amax() / 2 * torch.sign(tensor.sum())
    return torch.where(tensor != 0, 2 * (tensor - middle), torch.zeros_like(tensor))


_CHANGES: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "small": _scaled(2.0**-10),
    "large": _scaled(2.0**5),
    "sparse": _sparse,
    "constant": _constant,
    "signed": _signed,
}

NAMES = ("native", *_CHANGES)


def apply(family: str, value: Any, seed: int) -> Any:
    """`value` (an input, or a list of inputs) with the family's values. The same seed
    gives the same values. KeyError: no such family."""
    if family == "native":
        return value
    return _walk(value, _CHANGES[family], {}, seed ^ 0x5EED)


def _walk(
    value: Any,
    change: Callable[[torch.Tensor, torch.Generator], torch.Tensor],
    generators: dict[torch.device, torch.Generator],
    seed: int,
) -> Any:
    if isinstance(value, torch.Tensor):
        if not is_free(value):
            return value
        # Random where the tensor is: the CPU's generator takes seconds for large ones.
        if value.device not in generators:
            generators[value.device] = torch.Generator(value.device).manual_seed(seed)
        return change(value, generators[value.device]).to(value.dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(_walk(item, change, generators, seed) for item in value)
    if isinstance(value, dict):
        return {key: _walk(item, change, generators, seed) for key, item in value.items()}
    return value
