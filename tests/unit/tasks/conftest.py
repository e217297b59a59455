"""Makes the helper modules of this folder importable from its tests."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
