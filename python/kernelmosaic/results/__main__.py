"""Figures of exports (`kmosaic export JOB --include-unverified --out DIR`).

python3 -m kernelmosaic.results summary DIR [--eval-results FILE]
python3 -m kernelmosaic.results compare DIR_A DIR_B [--fast 1.0]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernelmosaic.results.figures import Sample, compare, sample_of, summary


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    paths = [folder] if folder.is_file() else sorted(folder.glob("*.jsonl"))
    if not paths:
        raise ValueError(f"{folder}: there are no *.jsonl files")
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                row = json.loads(line)
                if row.get("format") != "trajectory":
                    raise ValueError(f"{path}:{number}: is no row of a trajectory export")
                yield row


def _samples(folder: Path) -> list[Sample]:
    samples = [s for row in _rows(folder) if (s := sample_of(row)) is not None]
    if not samples:
        raise ValueError(f"{folder}: no conversation was ended by the model's own doing")
    return samples


def eval_results(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """KernelBench's eval_results.json: problem id -> samples."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(folder):
        timing = row["timing"]
        runtime = timing["median_us"]
        built = row["verdict"] not in (
            None,
            "COMPILE_ERROR",
            "COMPILE_TIMEOUT",
            "COMPILE_RESOURCES",
        )
        found.setdefault(row["task"]["id"], []).append(
            {
                "sample_id": row["sample"],
                "compiled": bool(built),
                "correctness": bool(row["verified"]),
                "metadata": {"hardware": row["device"]["name"], "verdict": row["verdict"]},
                # Milliseconds; -1 where nothing was measured, as there.
                "runtime": runtime / 1000 if runtime is not None else -1.0,
                "runtime_stats": {},
            }
        )
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="kernelmosaic.results", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("summary")
    one.add_argument("export", type=Path)
    one.add_argument("--eval-results", type=Path, help="KernelBench's file to write")
    two = verbs.add_parser("compare")
    two.add_argument("a", type=Path)
    two.add_argument("b", type=Path)
    two.add_argument("--fast", type=float, default=0.0, help="more than so many times as fast")
    options = parser.parse_args(arguments)
    try:
        if options.verb == "summary":
            print(json.dumps(summary(_samples(options.export)), indent=2))
            if options.eval_results:
                text = json.dumps(eval_results(options.export), indent=2)
                options.eval_results.write_text(text + "\n", encoding="utf-8")
        else:
            found = compare(_samples(options.a), _samples(options.b), options.fast)
            print(json.dumps(asdict(found), indent=2))
    except (OSError, ValueError, KeyError) as error:
        print(f"kernelmosaic.results: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
