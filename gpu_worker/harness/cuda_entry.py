"""The host entry of a solution in the `cuda` contract: its C prototype, and the call."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

# C type -> (ctypes type for a scalar, torch dtypes that a pointer to it may carry).
_TYPES: dict[str, tuple[Any, tuple[torch.dtype, ...]]] = {
    "float": (ctypes.c_float, (torch.float32,)),
    "double": (ctypes.c_double, (torch.float64,)),
    "half": (None, (torch.float16,)),
    "__half": (None, (torch.float16,)),
    "__nv_bfloat16": (None, (torch.bfloat16,)),
    "nv_bfloat16": (None, (torch.bfloat16,)),
    "bool": (ctypes.c_bool, (torch.bool,)),
    "char": (ctypes.c_int8, (torch.int8,)),
    "signed char": (ctypes.c_int8, (torch.int8,)),
    "unsigned char": (ctypes.c_uint8, (torch.uint8, torch.bool)),
    "int8_t": (ctypes.c_int8, (torch.int8,)),
    "uint8_t": (ctypes.c_uint8, (torch.uint8, torch.bool)),
    "short": (ctypes.c_int16, (torch.int16,)),
    "int16_t": (ctypes.c_int16, (torch.int16,)),
    "int": (ctypes.c_int32, (torch.int32,)),
    "int32_t": (ctypes.c_int32, (torch.int32,)),
    "unsigned": (ctypes.c_uint32, (torch.uint32, torch.int32)),
    "unsigned int": (ctypes.c_uint32, (torch.uint32, torch.int32)),
    "uint32_t": (ctypes.c_uint32, (torch.uint32, torch.int32)),
    "long": (ctypes.c_int64, (torch.int64,)),
    "long long": (ctypes.c_int64, (torch.int64,)),
    "int64_t": (ctypes.c_int64, (torch.int64,)),
    "unsigned long": (ctypes.c_uint64, (torch.uint64, torch.int64)),
    "unsigned long long": (ctypes.c_uint64, (torch.uint64, torch.int64)),
    "uint64_t": (ctypes.c_uint64, (torch.uint64, torch.int64)),
    "size_t": (ctypes.c_uint64, (torch.uint64, torch.int64)),
    "void": (None, ()),
}
_RETURNS = {"void": None, "int": ctypes.c_int32, "cudaError_t": ctypes.c_int32}
_PROTOTYPE = re.compile(r'^\s*(?:extern\s+"C"\s+)?(\w+)\s+(\w+)\s*\((.*)\)\s*;?\s*$', re.DOTALL)
_BINDING = re.compile(
    r"^(?P<what>input|output|init)\[(?P<index>\d+)\]"
    r"(?:\.shape\[(?P<dimension>-?\d+)\]|(?P<numel>\.numel))?$|^param\[(?P<name>[\w.]+)\]$"
)


class EntryError(Exception):
    """The task's entry is wrong: prototype, bindings, or what they are bound to."""


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str
    pointer: bool
    binding: str | None  # None: the stream


@dataclass(frozen=True)
class Entry:
    name: str
    returns: str
    parameters: tuple[Parameter, ...]


def parse(prototype: str, bindings: dict[str, str]) -> Entry:
    """Raises EntryError that says which part cannot be understood."""
    match = _PROTOTYPE.match(prototype)
    if match is None or match[1] not in _RETURNS:
        raise EntryError(
            f"prototype {prototype!r} is not of the form 'void name(parameters)' "
            "(int and cudaError_t may be returned too)"
        )
    parameters = tuple(
        _parse_parameter(text, bindings) for text in match[3].split(",") if text.strip()
    )
    unknown = set(bindings) - {p.name for p in parameters}
    if unknown:
        raise EntryError(f"bindings of {sorted(unknown)}: no such parameters in {prototype!r}")
    return Entry(match[2], match[1], parameters)


def _parse_parameter(text: str, bindings: dict[str, str]) -> Parameter:
    words = re.findall(r"\w+|\*", text)
    plain = [w for w in words if w not in ("const", "__restrict__", "restrict", "*", "std")]
    if len(plain) < 2:
        raise EntryError(f"parameter {text.strip()!r} has no type or no name")
    name, type_name = plain[-1], " ".join(plain[:-1])
    pointers = words.count("*")
    if type_name == "cudaStream_t" and pointers == 0:
        return Parameter(name, type_name, True, bindings.get(name))
    if type_name not in _TYPES or pointers > 1:
        raise EntryError(f"parameter {text.strip()!r} has a type that cannot be passed")
    if pointers == 0 and _TYPES[type_name][0] is None:
        raise EntryError(f"parameter {text.strip()!r}: {type_name} can be passed by pointer only")
    binding = bindings.get(name)
    if binding is None:
        raise EntryError(f"parameter {name!r} is bound to nothing")
    if _BINDING.match(binding) is None:
        raise EntryError(
            f"binding {name}: {binding!r} is none of input[I], output[I], their .shape[D] and "
            ".numel, init[I], param[NAME]"
        )
    return Parameter(name, type_name, pointers == 1, binding)


@dataclass(frozen=True)
class Values:
    inputs: Sequence[Any]
    outputs: Sequence[torch.Tensor]
    init: Sequence[Any]
    parameters: dict[str, torch.Tensor]


def _bound(binding: str, values: Values) -> Any:
    match = _BINDING.match(binding)
    assert match is not None  # parse() looked
    if match["name"] is not None:
        if match["name"] not in values.parameters:
            raise EntryError(f"{binding}: the reference model has no such parameter")
        return values.parameters[match["name"]]
    group = {"input": values.inputs, "output": values.outputs, "init": values.init}[match["what"]]
    index = int(match["index"])
    if index >= len(group):
        raise EntryError(f"{binding}: there are {len(group)}")
    value = group[index]
    if match["dimension"] is None and match["numel"] is None:
        return value
    if not isinstance(value, torch.Tensor):
        raise EntryError(f"{binding}: that is no tensor")
    if match["numel"] is not None:
        return value.numel()
    dimension = int(match["dimension"])
    if not -value.dim() <= dimension < value.dim():
        raise EntryError(f"{binding}: the tensor has {value.dim()} dimensions")
    return value.shape[dimension]


def arguments(entry: Entry, values: Values, stream: int) -> list[Any]:
    """What to pass, in order, as ctypes values. Raises EntryError on a misfit."""
    passed = []
    for parameter in entry.parameters:
        if parameter.type == "cudaStream_t":
            passed.append(ctypes.c_void_p(stream))
            continue
        assert parameter.binding is not None
        value = _bound(parameter.binding, values)
        scalar, dtypes = _TYPES[parameter.type]
        if parameter.pointer:
            if not isinstance(value, torch.Tensor):
                raise EntryError(f"{parameter.name} is a pointer, {parameter.binding} no tensor")
            if dtypes and value.dtype not in dtypes:
                raise EntryError(
                    f"{parameter.name} points to {parameter.type}, "
                    f"{parameter.binding} is {value.dtype}"
                )
            passed.append(ctypes.c_void_p(value.data_ptr()))
        else:
            if isinstance(value, torch.Tensor) and value.dim() == 0:
                value = value.item()
            if not isinstance(value, (bool, int, float)):
                raise EntryError(f"{parameter.name} is a number, {parameter.binding} is not")
            integral = scalar not in (ctypes.c_float, ctypes.c_double, ctypes.c_bool)
            passed.append(scalar(int(value) if integral else value))
    return passed


def call(function: Callable[..., Any], entry: Entry, passed: Sequence[Any]) -> None:
    """Raises RuntimeError when the entry returns an error code."""
    function.restype = _RETURNS[entry.returns]  # type: ignore[attr-defined]
    result = function(*passed)
    if result:
        raise RuntimeError(f"{entry.name} returned {result}")
