"""Makes report.md and report.json of what run.sh left in a folder.

    report.py OUT      exit code 1 when a verdict is not one of those that are expected

Standard library only: it runs where the bundle is tested.
"""

from __future__ import annotations

import collections
import json
import pathlib
import statistics
import sys
from typing import Any


def _rows(path: pathlib.Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _line(row: dict[str, Any], expected: list[str] | None) -> str:
    times = row.get("benchmark") or {}
    verdict = row["verdict"]
    wanted = "" if expected is None or verdict in expected else f" (expected {'/'.join(expected)})"
    spread = "-"
    if times.get("median_us"):
        width = times["ci_high_us"] - times["ci_low_us"]
        spread = f"{50 * width / times['median_us']:.1f} %"
    return (
        f"| {row['id']} | {verdict}{wanted} | {_us(times.get('median_us'))} | {spread} "
        f"| {times.get('samples', '-')} | {_us(times.get('eager_us'))} "
        f"| {_ratio(times.get('speedup'))} | {_us(times.get('floor_us'))} "
        f"| {times.get('floor_bound') or '-'} | {times.get('checked_calls', '-')} "
        f"| {row.get('compile', {}).get('seconds', 0):.1f} "
        f"| {(row.get('verify') or {}).get('seconds', 0):.1f} "
        f"| {times.get('seconds', 0):.1f} |"
    )


_HEAD = (
    "| solution | verdict | median us | CI ± | calls | eager us | speedup | floor us | bound "
    "| checked | compile s | verify s | benchmark s |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def _agreement(rows: list[dict[str, Any]]) -> list[str]:
    """Verdicts against what the rows' authors measured, and each row that differs."""
    counts: collections.Counter[str] = collections.Counter()
    differing = []
    for row in rows:
        label = str(row.get("label", "") or "none")
        counts[f"{label} → {row['verdict']}"] += 1
        right = label in ("correct", "True", "true")
        if right != (row["verdict"] == "PASSED"):
            reason = " ".join(str(row.get("reason", "")).split())[:300]
            differing.append(f"- {row['id']}: {label} → {row['verdict']}: {reason}")
    lines = [f"- {name}: {count}" for name, count in sorted(counts.items())]
    return [*lines, "", "Rows whose verdict is not their label:", "", *differing]


def main(out: pathlib.Path) -> int:
    tasks, rows = _rows(out / "tasks.jsonl"), _rows(out / "rows.jsonl")
    expected: dict[str, list[str]] = {}
    if (out / "solutions" / "expected.json").exists():
        expected = json.loads((out / "solutions" / "expected.json").read_text(encoding="utf-8"))
    self_test = json.loads((out / "self-test.json").read_text(encoding="utf-8").splitlines()[-1])
    unknown = [row["id"] for row in tasks if row["id"] not in expected]
    if unknown:
        raise ValueError(f"no verdict is expected for {unknown}")
    unexpected = [row for row in tasks if row["verdict"] not in expected[row["id"]]]
    text = [
        "# Report of the GPU suite",
        "",
        f"Device {self_test.get('name')} ({self_test.get('uuid', 'no uuid')}), "
        f"driver {self_test.get('driver', '-')}, {self_test.get('toolchain')}, "
        f"torch {self_test.get('torch')}, sandbox {self_test.get('sandbox')}.",
        "",
    ]
    if tasks:
        text += ["## Solutions of the example tasks", "", _HEAD]
        text += [_line(row, expected.get(row["id"])) for row in tasks]
        text += ["", f"{len(unexpected)} of {len(tasks)} verdicts are not those expected.", ""]
    notes = collections.Counter(
        note for row in tasks + rows for note in (row.get("benchmark") or {}).get("notes", [])
    )
    if rows:
        seconds = float((out / "rows.seconds").read_text(encoding="utf-8"))
        passed = [row for row in rows if row["verdict"] == "PASSED"]
        speedups = [
            row["benchmark"]["speedup"]
            for row in passed
            if (row.get("benchmark") or {}).get("speedup") is not None
        ]
        text += [
            "## Further kernels",
            "",
            f"{len(rows)} rows in {seconds:.0f} s: {3600 * len(rows) / max(seconds, 1):.0f} an "
            f"hour; {len(passed)} passed.",
        ]
        if speedups:
            text += [
                f"Speedup against eager torch: median {statistics.median(speedups):.2f}, "
                f"smallest {min(speedups):.2f}, largest {max(speedups):.2f}; "
                f"{sum(s > 1 for s in speedups)} of {len(speedups)} are faster."
            ]
        text += ["", *_agreement(rows), "", _HEAD, *[_line(row, None) for row in rows], ""]
    if notes:
        text += ["## Notes of the measurements", ""]
        text += [f"- {count} times: {note}" for note, count in notes.most_common()]
        text += [""]
    for name in ("demo.txt", "gpu-before.csv", "gpu-after.csv", "processes-after.csv"):
        if (out / name).exists():
            content = (out / name).read_text(encoding="utf-8", errors="replace").strip()
            text += [f"## {name}", "", "```", content[-4000:], "```", ""]
    (out / "report.md").write_text("\n".join(text), encoding="utf-8")
    report = {"device": self_test, "tasks": tasks, "rows": rows, "unexpected": len(unexpected)}
    (out / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    print("\n".join(text[:60]))
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
