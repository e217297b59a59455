"""The role that finds out what a Python file hands to load_inline and load.

Request: {"op": "collect", "source", "init": node | null, "inputs": node | null, "device",
"failed": [keys of extensions that do not compile]} with the descriptors of the two trees that
are not null, in that order. Answer:
{"ok": true, "extensions": [...]} or {"ok": false, "verdict", "error"}.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import torch

from harness import cpp_extension, cuda_on_cpu, errors, program, seal, wire


class _CalledTooEarly(RuntimeError):
    pass


class _Recorder:
    """Answers every request with a module whose functions raise, and those of `failed` with
    the exception of a failed build."""

    def __init__(self, failed: Sequence[str]) -> None:
        self._failed = frozenset(failed)
        self.extensions: dict[str, cpp_extension.ExtensionRequest] = {}
        self.called = False

    def __call__(self, request: cpp_extension.ExtensionRequest) -> types.ModuleType:
        key = request.key()
        if key in self._failed:
            raise cpp_extension.build_error(request.name, "")
        self.extensions.setdefault(key, request)
        module = types.ModuleType(request.name)

        def function(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)

            def call(*_args: object, **_kwargs: object) -> None:
                self.called = True
                raise _CalledTooEarly(f"{name} is not built yet")

            return call

        module.__getattr__ = function  # type: ignore[method-assign]
        return module


def collect(source: str, init: Any, inputs: Any, failed: Sequence[str] = ()) -> dict[str, Any]:
    """Imports the file, then constructs ModelNew, then (only while nothing was recorded)
    calls its forward. `init` and `inputs` are None where not known."""
    recorder = _Recorder(failed)
    with cuda_on_cpu.emulated(), torch.no_grad():
        cpp_extension.install(recorder)
        refused = _run(source, init, inputs, recorder)
        what = seal.broken()
        seal.release()  # the stand-ins of the device go next
    if what is not None:
        return _refused("TAMPERING", what)
    if refused is not None:
        return refused
    if not recorder.extensions:
        return _refused(
            "NO_CUSTOM_KERNEL",
            "neither importing the file, nor constructing ModelNew, nor its forward called "
            "load_inline or load: there is no CUDA source of its own to judge",
        )
    return {"ok": True, "extensions": [r.to_json() for r in recorder.extensions.values()]}


def _run(source: str, init: Any, inputs: Any, recorder: _Recorder) -> dict[str, Any] | None:
    """None: nothing went wrong, or it did after something was recorded."""
    path: str | None = None
    try:
        loaded = program.load(source, "solution")
        path = loaded.path
        model_class = getattr(loaded.module, "ModelNew", None)
        if model_class is None:
            return _refused("LOAD_ERROR", "the file defines no class ModelNew")
        if init is not None:
            model = model_class(*init)
            if inputs is not None and not recorder.extensions:
                model(*inputs)
    except program.LoadFailed as error:
        if not (recorder.extensions and recorder.called):
            return errors.reply(program.cause(error), error.path, "LOAD_ERROR")
    except BaseException as error:
        # With something recorded, what went wrong after it shows when the program is run.
        if not recorder.extensions:
            return errors.reply(error, path, "RUNTIME_ERROR")
    return None


def _refused(verdict: str, text: str) -> dict[str, Any]:
    return {"ok": False, "verdict": verdict, "error": text}


def serve(channel: wire.Channel) -> None:
    while (received := channel.receive()) is not None:
        message, descriptors = received
        trees = []
        for name in ("init", "inputs"):
            node = message[name]
            trees.append(None if node is None else wire.decode(node, descriptors.pop(0)))
        init, inputs = trees
        channel.send(collect(message["source"], init, inputs, message["failed"]))
