"""Stands in for torch.utils.cpp_extension: turns calls of load_inline and load into
requests that a role answers, and compiles nothing itself."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch.utils


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


Handler = Callable[[ExtensionRequest], types.ModuleType]


def _texts(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, (str, os.PathLike)):
        return (os.fspath(value),)
    return tuple(os.fspath(item) for item in value)


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
        if sycl_sources:
            raise RuntimeError("load_inline: SYCL sources are not supported here")
        return handler(
            ExtensionRequest(
                name=str(name),
                cpp_sources=_texts(cpp_sources),
                cuda_sources=_texts(cuda_sources),
                functions=_texts(list(functions) if isinstance(functions, dict) else functions),
                cflags=_texts(extra_cflags),
                cuda_cflags=_texts(extra_cuda_cflags),
                ldflags=_texts(extra_ldflags),
            )
        )

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
        cpp: list[str] = []
        cuda: list[str] = []
        for path in _texts(sources):
            with open(path, encoding="utf-8") as file:
                (cuda if path.endswith((".cu", ".cuh")) else cpp).append(file.read())
        return handler(
            ExtensionRequest(
                name=str(name),
                cpp_sources=tuple(cpp),
                cuda_sources=tuple(cuda),
                functions=(),
                cflags=_texts(extra_cflags),
                cuda_cflags=_texts(extra_cuda_cflags),
                ldflags=_texts(extra_ldflags),
            )
        )

    return load


def install(handler: Handler) -> None:
    """From now on this process's torch.utils.cpp_extension asks `handler`. The real
    module, which takes long to import and would compile, is not imported."""
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
