"""Writes the code of the recorded example replies as files that `kmosaic score` takes.

    solutions.py EXAMPLES OUT      OUT/<task>/<task>-<turn>.py or .cu, OUT/expected.json

Standard library only: it runs where the bundle is tested.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def main(examples: pathlib.Path, out: pathlib.Path) -> None:
    expected: dict[str, list[str]] = {}
    for path in sorted((examples / "recordings" / "replies").glob("*/*.md")):
        head, _, body = path.read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
        verdicts = re.search(r"^expect: \[(.*)\]$", head, re.MULTILINE)
        blocks = _FENCE.findall(body)
        if verdicts is None or not blocks:
            continue
        language, code = max(blocks, key=lambda block: len(block[1]))
        folder = out / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        ending = "py" if language == "python" else "cu"
        file = folder / f"{path.parent.name}-{path.stem}.{ending}"
        file.write_text(code, encoding="utf-8")
        expected[file.name] = verdicts[1].split(", ")
    (out / "expected.json").write_text(json.dumps(expected, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
