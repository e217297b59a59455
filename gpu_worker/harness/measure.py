"""What one run of a program does: multiply-adds, elements written, longest reduction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# A rule gets the arguments and the result of an operator and gives the number of terms
# that enter one element of the result.
_Rule = Callable[[Sequence[Any], Any], int]


def _size(tensor: torch.Tensor, dim: int) -> int:
    return int(tensor.shape[dim]) if tensor.dim() else 1


def _convolution(args: Sequence[Any], _result: Any) -> int:
    weight, transposed, groups = args[1], args[6], args[8]
    taps = math.prod(weight.shape[2:])
    return int(weight.shape[0] // groups * taps if transposed else weight.shape[1] * taps)


def _ratio(args: Sequence[Any], result: Any) -> int:
    first = result[0] if isinstance(result, tuple) else result
    return int(args[0].numel() // max(1, first.numel()))


def _along_dim(args: Sequence[Any], _result: Any) -> int:
    return _size(args[0], args[1])


def _attention(args: Sequence[Any], _result: Any) -> int:
    return _size(args[0], -1) + _size(args[1], -2)


_RULES: dict[str, _Rule] = {
    "mm": lambda args, _: _size(args[0], -1),
    "bmm": lambda args, _: _size(args[0], -1),
    "mv": lambda args, _: _size(args[0], -1),
    "dot": lambda args, _: _size(args[0], -1),
    "addmm": lambda args, _: _size(args[1], -1),
    "addmv": lambda args, _: _size(args[1], -1),
    "baddbmm": lambda args, _: _size(args[1], -1),
    "convolution": _convolution,
    "_softmax": _along_dim,
    "_log_softmax": _along_dim,
    "cumsum": _along_dim,
    "cumprod": _along_dim,
    "logcumsumexp": _along_dim,
    "native_layer_norm": lambda args, _: math.prod(args[1]),
    "native_group_norm": lambda args, _: int(args[4] * args[5] // args[6]),
    "native_batch_norm": lambda args, _: args[0].numel() // max(1, args[0].shape[1]),
    "_native_batch_norm_legit": lambda args, _: args[0].numel() // max(1, args[0].shape[1]),
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention": _attention,
    "_scaled_dot_product_efficient_attention": _attention,
    "_scaled_dot_product_attention_math": _attention,
    "mkldnn_rnn_layer": lambda args, _: _size(args[1], -1) + _size(args[2], -1),
    **dict.fromkeys(
        [
            "sum",
            "mean",
            "var",
            "std",
            "var_mean",
            "std_mean",
            "norm",
            "linalg_vector_norm",
            "prod",
            "logsumexp",
            "nansum",
            "mse_loss",
            "huber_loss",
            "smooth_l1_loss",
            "nll_loss_forward",
            "binary_cross_entropy",
            "trace",
            "avg_pool1d",
            "avg_pool2d",
            "avg_pool3d",
            "_adaptive_avg_pool2d",
            "_adaptive_avg_pool3d",
            "adaptive_avg_pool1d",
            "adaptive_avg_pool2d",
            "adaptive_avg_pool3d",
        ],
        _ratio,
    ),
}


class Measure(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts while it is entered. `reduction` is the longest sum that a single element
    of any intermediate result needs, at least 1."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.multiply_adds = 0
        self.elements = 0
        self.reduction = 1

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True would import torch._dynamo, which takes seconds.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        packet = func._overloadpacket
        count = flop_registry.get(packet)
        if count is not None:
            self.multiply_adds += int(count(*args, **kwargs, out_val=result)) // 2
        rule = _RULES.get(packet.__name__)
        if rule is not None:
            self.reduction = max(self.reduction, rule(args, result))
        if not func.is_view:
            for tensor in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(tensor, torch.Tensor):
                    self.elements += tensor.numel()
        return result
