"""Figures of two imaginary models agree with small computations of their own."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from kernelmosaic.results.__main__ import main
from kernelmosaic.results.figures import (
    Sample,
    compare,
    fast_p,
    interval,
    pass_at,
    pass_at_k,
    sample_of,
    summary,
    wilson,
)

ROOT = Path(__file__).resolve().parents[3]


def model(skill: float, seed: int, tasks: int = 60, samples: int = 4) -> list[Sample]:
    draw = random.Random(seed)
    found = []
    for task in range(tasks):
        hard = draw.random()
        for _ in range(samples):
            right = draw.random() < skill * (1.2 - hard)
            speed = draw.uniform(0.5, 3.0) if right else None
            found.append(Sample(f"t{task}", 1 + task % 3, right, speed, draw.randint(1, 4)))
    return found


WEAK, STRONG = model(0.3, 1), model(0.8, 2)


@pytest.mark.parametrize(
    ("n", "right", "k"), [(4, 0, 1), (4, 1, 2), (6, 3, 2), (5, 5, 3), (8, 2, 8)]
)
def test_pass_at_k_is_the_share_of_all_draws(n: int, right: int, k: int) -> None:
    draws = list(itertools.combinations([True] * right + [False] * (n - right), k))
    assert pass_at(k, right, n) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_shares_agree_with_counting() -> None:
    for p in (0.0, 1.0, 1.5, 2.0):
        counted = sum(s.verified and (p == 0 or (s.speedup or 0) > p) for s in STRONG)
        # All tasks have as many samples here, so the mean over tasks is the mean over samples.
        assert fast_p(STRONG, p).value == pytest.approx(counted / len(STRONG))
    best = {s.task for s in STRONG if s.verified}
    share = pass_at_k(STRONG, 4)
    assert share is not None
    assert share.value == pytest.approx(len(best) / 60)
    assert pass_at_k(STRONG, 5) is None


def test_a_task_counts_once_however_many_samples_it_has() -> None:
    samples = [Sample("a", 1, True, None, 1)] * 9 + [Sample("b", 1, False, None, 1)]
    assert fast_p(samples, 0).value == 0.5


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    draw = random.Random(5)
    held = 0
    for trial in range(200):
        values = [draw.choice([0.0, 0.25, 0.5, 1.0]) for _ in range(40)]
        found = interval(values, seed=trial)
        held += found.low <= 0.4375 <= found.high
    assert 180 <= held <= 200
    assert wilson(0, 20).low == 0.0
    assert 0.1 < wilson(0, 20).high < 0.2
    assert wilson(20, 20).high == 1.0


def test_models_that_differ_are_told_apart_and_equal_ones_are_not() -> None:
    found = compare(WEAK, STRONG)
    assert found.tasks == 60
    assert found.difference == pytest.approx(fast_p(STRONG, 0).value - fast_p(WEAK, 0).value)
    assert found.p_value < 0.01
    assert found.low > 0
    same = compare(STRONG, STRONG)
    assert (same.difference, same.p_value) == (0.0, 1.0)
    again = [compare(model(0.5, 10 + i), model(0.5, 90 + i)).p_value for i in range(40)]
    assert sum(p < 0.05 for p in again) <= 8
    with pytest.raises(ValueError, match="no task in common"):
        compare(WEAK, [Sample("other", 1, True, None, 1)])


def row(sample: Sample, number: int) -> dict[str, Any]:
    golden = ROOT / "tests/unit/dataset/golden/trajectory.json"
    found: dict[str, Any] = json.loads(golden.read_text())
    found["task"] = {**found["task"], "id": sample.task, "level": sample.level}
    found["verified"], found["sample"] = sample.verified, number
    found["timing"] = {**found["timing"], "speedup": sample.speedup, "median_us": None}
    found["turns"] = found["turns"][:1] * sample.turns
    found["stop_reason"] = "solved" if sample.verified else "turn_budget"
    return found


def write(folder: Path, samples: list[Sample]) -> Path:
    folder.mkdir()
    rows = [json.dumps(row(s, i % 4)) for i, s in enumerate(samples)]
    (folder / "train.jsonl").write_text("\n".join(rows) + "\n")
    return folder


def test_the_command_reads_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = write(tmp_path / "a", WEAK), write(tmp_path / "b", STRONG)
    assert main(["summary", str(b), "--eval-results", str(tmp_path / "eval.json")]) == 0
    assert json.loads(capsys.readouterr().out) == summary(STRONG)
    results = json.loads((tmp_path / "eval.json").read_text())
    assert len(results) == 60
    assert sum(s["correctness"] for v in results.values() for s in v) == sum(
        s.verified for s in STRONG
    )
    assert main(["compare", str(a), str(b)]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == 60
    assert main(["summary", str(tmp_path)]) == 2


def test_what_the_system_ended_is_not_the_models_doing() -> None:
    found = row(WEAK[0], 0)
    assert sample_of(found) is not None
    assert sample_of({**found, "stop_reason": "infrastructure"}) is None
    levels = summary([s for s in (sample_of(found),) if s])["levels"]
    assert set(levels) == {str(WEAK[0].level)}
