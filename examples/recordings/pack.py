"""Packs the replies under replies/ into demo.jsonl, the recording of the demo job.

    python3 examples/recordings/pack.py           writes demo.jsonl
    python3 examples/recordings/pack.py --check   exits with 1 when demo.jsonl is out of date

Each reply is a Markdown file replies/<task>/<turn>.md. What stands between the two lines of
dashes at its top is for the tests (which verdict the code in the reply has to get, whether an
optimisation pays) and does not go into the recording.
"""

from __future__ import annotations

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPLIES = HERE / "replies"
RECORDING = HERE / "demo.jsonl"
NOTE = "hand-written recording"


def split_reply(text: str) -> tuple[str, str]:
    """Front matter and reply; raises ValueError when the file does not start with front matter."""
    if not text.startswith("---\n"):
        raise ValueError("a reply starts with a line of three dashes")
    head, separator, body = text[4:].partition("\n---\n")
    if not separator:
        raise ValueError("the front matter has no closing line of three dashes")
    return head + "\n", body


def pack() -> str:
    lines = []
    for folder in sorted(path for path in REPLIES.iterdir() if path.is_dir()):
        turns = sorted(int(path.stem) for path in folder.glob("*.md"))
        if turns != list(range(len(turns))):
            raise ValueError(f"{folder}: turns have to be 0.md, 1.md, ... without gaps")
        for turn in turns:
            path = folder / f"{turn}.md"
            try:
                _, content = split_reply(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
            line = {"task": folder.name, "turn": turn, "content": content, "note": NOTE}
            lines.append(json.dumps(line, ensure_ascii=False))
    return "\n".join(lines) + "\n"


def main() -> int:
    packed = pack()
    if "--check" in sys.argv[1:]:
        if not RECORDING.exists() or RECORDING.read_text(encoding="utf-8") != packed:
            print("demo.jsonl is out of date: run examples/recordings/pack.py", file=sys.stderr)
            return 1
        return 0
    RECORDING.write_text(packed, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
