"""Finds an nvcc and checks single sources with it; no GPU is needed."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sysconfig

import pytest


def find_nvcc() -> str | None:
    """CUDA_HOME, PATH, then the compiler wheel beside this interpreter's packages."""
    wheel = pathlib.Path(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "bin", "nvcc")
    home = os.environ.get("CUDA_HOME")
    candidates = [pathlib.Path(home, "bin", "nvcc")] if home else []
    on_path = shutil.which("nvcc")
    if on_path:
        candidates.append(pathlib.Path(on_path))
    candidates.append(wheel)
    return next((str(path) for path in candidates if path.exists()), None)


def compile_cuda(source: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Compiles to PTX; warnings are errors. Skips the test when there is no nvcc.

    The host part is parsed too, but no object code is made of it.
    """
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip("NOT CHECKED: no nvcc (CUDA_HOME, PATH or the nvidia-cuda-nvcc package)")
    path = folder / "source.cu"
    path.write_text(source, encoding="utf-8")
    command = [nvcc, "-arch=sm_90", "-Werror", "all-warnings", "-ptx", str(path)]
    command += ["-o", str(folder / "source.ptx")]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
