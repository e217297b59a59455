"""Makes the helper modules of this folder, the finder of nvcc, and the harness importable."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "tasks", HERE.parents[2] / "gpu_worker"):
    sys.path.insert(0, str(folder))
