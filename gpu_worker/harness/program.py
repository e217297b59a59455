"""Loads Python text as a module with a real file, as inspect and torch.jit want it."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import tempfile
import types
from dataclasses import dataclass

import torch

# The folders of the files, which tracebacks and inspect read for as long as the process lives.
# A role in a sandbox ends without this; its /tmp ends with it.
_folders = contextlib.ExitStack()
atexit.register(_folders.close)


@dataclass(frozen=True)
class Program:
    module: types.ModuleType
    path: str  # of its file, which is there until the process ends


class LoadFailed(Exception):
    """The text could not be run; `__cause__` holds what it raised, `path` its file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def load(source: str, name: str) -> Program:
    """Runs `source` as module `name` (never "__main__"). Raises LoadFailed."""
    folder = _folders.enter_context(tempfile.TemporaryDirectory(prefix=f"{name}-"))
    path = os.path.join(folder, f"{name}.py")
    module = types.ModuleType(name)
    module.__file__ = path
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        code = compile(source, path, "exec")
        sys.modules[name] = module
        exec(code, module.__dict__)
    except BaseException as error:  # SystemExit and KeyboardInterrupt are the program's too
        raise LoadFailed(path) from error
    return Program(module, path)


def drawing_on(device: str) -> contextlib.AbstractContextManager[object]:
    """Inside, tensors without a device of their own, weights among them, are made on `device`;
    "cpu" leaves all as it is."""
    return contextlib.nullcontext() if device == "cpu" else torch.device(device)


def cause(error: LoadFailed) -> BaseException:
    return error.__cause__ if error.__cause__ is not None else error
