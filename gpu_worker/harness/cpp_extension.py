"""Stands in for torch.utils.cpp_extension: turns calls of load_inline and load into
requests that a role answers, and compiles nothing itself."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch.utils

from harness import seal


@dataclass(frozen=True)
class ExtensionRequest:
    """The arguments of one call that matter for what is built."""

    name: str
    cpp_sources: tuple[str, ...]
    cuda_sources: tuple[str, ...]
    functions: tuple[str, ...]
    cflags: tuple[str, ...]
    cuda_cflags: tuple[str, ...]
    ldflags: tuple[str, ...]

    def key(self) -> str:
        """Says whether two requests build the same. The name is no part of it: many
        programs make one up at run time."""
        fields = asdict(self)
        del fields["name"]
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key(), **dict(asdict(self).items())}


def build_error(name: str, log: str) -> RuntimeError:
    """What torch raises where the compilers refuse an extension."""
    return RuntimeError(f"Error building extension {name!r}: {log}")


Handler = Callable[[ExtensionRequest], types.ModuleType]


def _texts(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, (str, os.PathLike)):
        return (os.fspath(value),)
    return tuple(os.fspath(item) for item in value)


def _request(
    name: object,
    cpp: str | Sequence[str] | None,
    cuda: str | Sequence[str] | None,
    functions: str | Sequence[str] | Mapping[str, str] | None,
    flags: Mapping[str, Any],
) -> ExtensionRequest:
    """`flags`: the extra_* arguments that both functions of torch have."""
    return ExtensionRequest(
        name=str(name),
        cpp_sources=_texts(cpp),
        cuda_sources=_texts(cuda),
        functions=_texts(list(functions) if isinstance(functions, Mapping) else functions),
        cflags=_texts(flags["extra_cflags"]),
        cuda_cflags=_texts(flags["extra_cuda_cflags"]),
        ldflags=_texts(flags["extra_ldflags"]),
    )


def _load_inline(handler: Handler) -> Callable[..., types.ModuleType]:
    def load_inline(  # type: ignore[no-untyped-def]  # torch 2.11's signature
        name,
        cpp_sources,
        cuda_sources=None,
        sycl_sources=None,
        functions=None,
        extra_cflags=None,
        extra_cuda_cflags=None,
        extra_sycl_cflags=None,
        extra_ldflags=None,
        extra_include_paths=None,
        build_directory=None,
        verbose=False,
        with_cuda=None,
        with_sycl=None,
        is_python_module=True,
        with_pytorch_error_handling=True,
        keep_intermediates=True,
        use_pch=False,
        no_implicit_headers=False,
    ) -> types.ModuleType:
        flags = locals()
        if sycl_sources:
            raise RuntimeError("load_inline: SYCL sources are not supported here")
        return handler(_request(name, cpp_sources, cuda_sources, functions, flags))

    return load_inline


def _load(handler: Handler) -> Callable[..., types.ModuleType]:
    def load(  # type: ignore[no-untyped-def]  # torch 2.11's signature
        name,
        sources,
        extra_cflags=None,
        extra_cuda_cflags=None,
        extra_sycl_cflags=None,
        extra_ldflags=None,
        extra_include_paths=None,
        build_directory=None,
        verbose=False,
        with_cuda=None,
        with_sycl=None,
        is_python_module=True,
        is_standalone=False,
        keep_intermediates=True,
    ) -> types.ModuleType:
        flags = locals()
        texts: dict[bool, list[str]] = {False: [], True: []}  # by whether it is CUDA
        for path in _texts(sources):
            with open(path, encoding="utf-8") as file:
                texts[path.endswith((".cu", ".cuh"))].append(file.read())
        return handler(_request(name, texts[False], texts[True], None, flags))

    return load


def install(handler: Handler) -> None:
    """From now on this process's torch.utils.cpp_extension asks `handler`. The real
    module, which takes long to import and would compile, is not imported. A solution is
    imported next: answers say from now on what it exchanged (seal.py)."""
    module = types.ModuleType("torch.utils.cpp_extension")
    members: dict[str, object] = {
        "load_inline": _load_inline(handler),
        "load": _load(handler),
        "CUDA_HOME": "/usr/local/cuda",
        "is_ninja_available": lambda: True,
        "verify_ninja_availability": lambda: None,
        "include_paths": lambda *_args, **_kwargs: [],
        "library_paths": lambda *_args, **_kwargs: [],
    }
    for name, value in members.items():
        setattr(module, name, value)
    sys.modules["torch.utils.cpp_extension"] = module
    torch.utils.cpp_extension = module  # type: ignore[attr-defined]
    seal.close()
