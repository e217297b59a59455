"""Compiles the samples: with nvcc for real devices, with g++ for the emulated one."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess

from guidance_documents import ROOT, Block

ARCHITECTURES = ("90a", "80")
UNSUPPORTED = 3  # exit code of emulated_plan


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


@dataclasses.dataclass(frozen=True)
class EmulatedDevice:
    """Builds libraries for the emulated device; `missing` says why it cannot."""

    plan_program: pathlib.Path
    runtime: pathlib.Path
    compiler: str
    toolkit_headers: pathlib.Path
    missing: str | None

    def prepare(self, folder: pathlib.Path) -> pathlib.Path:
        """The support directory. Raises BuildError."""
        plan = json.loads(self._plan("support"))
        # A sample is a plain .cu and its accesses are not counted: one precompiled header of four.
        plan["commands"] = [
            command
            for command in plan["commands"]
            if command[-1] == "kmosaic_cuda.h.gch" or "c++-header" not in command
        ]
        return _build(plan, folder)

    def build(self, source: str, support: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
        """The library. Raises BuildError, or UnsupportedError."""
        folder.mkdir(parents=True)
        path = folder / "sample.cu"
        path.write_text(source, encoding="utf-8")
        return _build(json.loads(self._plan("cuda", str(support.parent), str(path))), folder)

    def _plan(self, kind: str, *more: str) -> str:
        command = [str(self.plan_program), kind, str(ROOT), self.compiler]
        command += [str(self.toolkit_headers), str(self.runtime), *more]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == UNSUPPORTED:
            raise UnsupportedError(result.stderr.strip())
        if result.returncode != 0:
            raise BuildError(result.stderr)
        return result.stdout


def emulated_device(nvcc: str | None) -> EmulatedDevice:
    """From the programs in KMOSAIC_BIN; the toolkit's headers are those beside nvcc."""
    programs = pathlib.Path(os.environ.get("KMOSAIC_BIN", ROOT / "build" / "dev" / "bin"))
    plan = programs / "emulated_plan"
    runtime = programs.parent / "lib" / "libkmosaic_emulation_runtime.so"
    compiler = shutil.which("g++")
    home = pathlib.Path(nvcc).parents[1] if nvcc else pathlib.Path("/usr/local/cuda")
    headers = home / "include"
    missing = None
    if compiler is None:
        missing = "no g++ in PATH"
    elif not (headers / "cuda_runtime.h").exists():
        missing = f"no cuda_runtime.h in {headers} (CUDA_HOME)"
    else:
        missing = next(
            (
                f"{path} is not built (component gpu_worker; KMOSAIC_BIN names the folder)"
                for path in (plan, runtime)
                if not path.exists()
            ),
            None,
        )
    return EmulatedDevice(plan, runtime, compiler or "", headers, missing)


def _build(plan: dict[str, object], folder: pathlib.Path) -> pathlib.Path:
    files, commands = plan["files"], plan["commands"]
    assert isinstance(files, dict)
    assert isinstance(commands, list)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for command in commands:
        _run(command, folder)
    return folder / str(plan["output"])


def _run(command: list[str], folder: pathlib.Path) -> None:
    result = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    if result.returncode != 0:
        raise BuildError(result.stdout + result.stderr)
