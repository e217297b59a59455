"""Compiles the samples: with nvcc for real devices, with g++ for the emulated one."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

from guidance_documents import ROOT, Block

ARCHITECTURES = ("90a", "80")
UNSUPPORTED = 3  # exit code of sample_plan


class BuildError(Exception):
    """A sample that does not compile; holds the compiler's words."""


class UnsupportedError(Exception):
    """A sample that uses what the emulated device has not."""


def nvcc_command(nvcc: str, block: Block, source: pathlib.Path) -> list[str]:
    """Device code for each architecture, warnings as errors; host code is parsed, not compiled."""
    only = block.word("arch")
    command = [nvcc, "-Werror", "all-warnings", "-fatbin", "-o", os.devnull]
    for arch in [only.removeprefix("sm_")] if only else ARCHITECTURES:
        command += ["-gencode", f"arch=compute_{arch},code=sm_{arch}"]
    return [*command, str(source)]


def compile_with_nvcc(nvcc: str, block: Block, folder: pathlib.Path) -> None:
    """Raises BuildError."""
    source = folder / f"{block.id}.cu"
    source.write_text(block.code, encoding="utf-8")
    _run(nvcc_command(nvcc, block, source), folder)


def build_for_gpu(nvcc: str, source: str, folder: pathlib.Path) -> str:
    """The path of a shared library for compute capability 9.0. Raises BuildError."""
    path = _source(source, folder)
    library = str(folder / "sample.so")
    command = [nvcc, "-arch=sm_90a", "-O3", "-shared", "-Xcompiler", "-fPIC", "-x", "cu", path]
    _run([*command, "-o", library], folder)
    return library


@dataclasses.dataclass(frozen=True)
class EmulatedDevice:
    """Builds libraries for the emulated device; `missing` says why it cannot."""

    plan_program: pathlib.Path
    runtime: pathlib.Path
    compiler: str
    toolkit: pathlib.Path
    missing: str | None

    def prepare(self, folder: pathlib.Path) -> pathlib.Path:
        """What the libraries are built with, in `folder`. Raises BuildError."""
        plan = self._plan("support")
        # Accesses are not counted here: two precompiled headers of four.
        plan["commands"] = [c for c in plan["commands"] if "_counted.h.gch" not in c[-1]]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            *first, last = plan.pop("commands")
            _write(plan, folder)
            list(pool.map(lambda command: _run(command, folder), first))
        _run(last, folder)
        return folder

    def build(self, kind: str, source: str, support: pathlib.Path, folder: pathlib.Path) -> str:
        """The library's path. kind: cuda or torch, as sample_plan has them. Raises BuildError, or
        UnsupportedError."""
        plan = self._plan(kind, str(support), _source(source, folder))
        _write(plan, folder)
        for command in plan["commands"]:
            _run(command, folder)
        return str(folder / plan["output"])

    def compile_light(self, request: str, folder: pathlib.Path) -> None:
        """The CUDA part for a real device, by nvcc against the light torch headers; its host code
        is parsed, as is that of the samples. Raises BuildError."""
        plan = self._plan("light", "", _source(request, folder))
        _write(plan, folder)
        cuda = plan["commands"][0]
        _run(["-cubin" if word == "-c" else word for word in cuda], folder)

    def _plan(self, kind: str, *more: str) -> dict[str, Any]:
        command = [str(self.plan_program), kind, str(ROOT), self.compiler]
        command += [str(self.toolkit), str(self.runtime), *more]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == UNSUPPORTED:
            raise UnsupportedError(result.stderr.strip())
        if result.returncode != 0:
            raise BuildError(result.stderr)
        plan: dict[str, Any] = json.loads(result.stdout)
        return plan


def emulated_device(nvcc: str | None) -> EmulatedDevice:
    """From the programs in KMOSAIC_BIN; the toolkit's headers are those beside nvcc."""
    programs = pathlib.Path(os.environ.get("KMOSAIC_BIN", ROOT / "build" / "dev" / "bin"))
    plan = programs / "sample_plan"
    runtime = programs.parent / "lib" / "libkmosaic_emulation_runtime.so"
    compiler = shutil.which("g++")
    toolkit = pathlib.Path(nvcc).parents[1] if nvcc else pathlib.Path("/usr/local/cuda")
    missing = None
    if compiler is None:
        missing = "no g++ in PATH"
    elif not (toolkit / "include" / "cuda_runtime.h").exists():
        missing = f"no include/cuda_runtime.h in {toolkit} (CUDA_HOME)"
    else:
        missing = next(
            (
                f"{path} is not built (component gpu_worker; KMOSAIC_BIN names the folder)"
                for path in (plan, runtime)
                if not path.exists()
            ),
            None,
        )
    return EmulatedDevice(plan, runtime, compiler or "", toolkit, missing)


def _source(text: str, folder: pathlib.Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sample"
    path.write_text(text, encoding="utf-8")
    return str(path)


def _write(plan: dict[str, Any], folder: pathlib.Path) -> None:
    for name, text in plan["files"].items():
        (folder / name).write_text(text, encoding="utf-8")


def _run(command: list[str], folder: pathlib.Path) -> None:
    result = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    if result.returncode != 0:
        raise BuildError(result.stdout + result.stderr)
