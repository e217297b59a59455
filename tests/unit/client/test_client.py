"""The client against a stand-in for `kmosaic` that answers as the real one prints."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import time
from pathlib import Path

import pytest
from kernelmosaic.client import Candidate, Client, KmosaicError, trl_reward, verl_score
from kernelmosaic.rewards import Reward, Weights, code_of, reward_of

# Scores by what the solution says; rows are answered in reverse order, as they may be.
STAND_IN = """#!/usr/bin/env python3
import json, os, sys, time
arguments = sys.argv[1:]
with open(os.environ["STAND_IN_LOG"], "a") as log:
    log.write(json.dumps(arguments) + "\\n")
if arguments[0] == "score":
    rows = [json.loads(line) for line in sys.stdin]
    for row in reversed(rows):
        if "HANG" in row["solution"]:
            print(json.dumps({"id": "0", "verdict": "PASSED"}), flush=True)
            open(os.environ["STAND_IN_LOG"] + ".hangs", "w").close()
            time.sleep(600)
        if "REFUSE" in row["solution"]:
            sys.stderr.write("kmosaic: no coordinator at 127.0.0.1:1\\n")
            sys.exit(3)
        verdict = row["solution"].rsplit("#", 1)[-1].strip() or "PASSED"
        print(json.dumps({"id": row["id"], "verdict": verdict,
                          "benchmark": {"speedup": 2.0} if verdict == "PASSED" else None}))
    sys.exit(1)
if arguments[0] == "submit":
    print(json.dumps({"job": {"id": "job-7"}}))
if arguments[:2] == ["job", "watch"]:
    print(json.dumps({"sequence": 1}), flush=True)
    print(json.dumps({"sequence": 2}), flush=True)
"""
CODE = "class ModelNew:\n    pass  # {verdict}\n"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    program = tmp_path / "kmosaic"
    program.write_text(STAND_IN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("STAND_IN_LOG", str(tmp_path / "log"))
    return Client(kmosaic=str(program))


def reply(verdict: str) -> str:
    return f"Here it is.\n\n```python\n{CODE.format(verdict=verdict)}```\n"


def test_reports_come_in_the_order_of_the_candidates(client: Client, tmp_path: Path) -> None:
    verdicts = ["PASSED", "WRONG_OUTPUT", "COMPILE_ERROR"] * 70
    seen: list[tuple[int, int]] = []
    reports = client.score(
        [Candidate("r", CODE.format(verdict=v)) for v in verdicts],
        progress=lambda done, total: seen.append((done, total)),
        device="emulated",
        stages="compile,verify",
    )
    assert [report["verdict"] for report in reports] == verdicts
    assert seen[-1] == (210, 210)
    arguments = json.loads((tmp_path / "log").read_text())
    assert arguments[:4] == ["score", "-", "-o", "jsonl"]
    assert set(arguments[4:]) == {"--device=emulated", "--stages=compile,verify"}


def test_an_error_of_the_program_is_raised_with_its_words(client: Client) -> None:
    with pytest.raises(KmosaicError, match="no coordinator") as caught:
        client.score([Candidate("r", "REFUSE")])
    assert caught.value.code == 3
    assert client.score([]) == []


def test_cancelling_ends_the_evaluations(client: Client, tmp_path: Path) -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(client.score_async([Candidate("r", "HANG")] * 2))
        while not (tmp_path / "log.hangs").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    asyncio.run(cancelled())
    assert time.monotonic() - began < 300


def test_jobs_are_submitted_and_watched(client: Client, tmp_path: Path) -> None:
    assert client.submit(tmp_path / "job.yaml", endpoint__url="http://x/v1", samples=2) == "job-7"
    arguments = json.loads((tmp_path / "log").read_text())
    assert "endpoint.url=http://x/v1" in arguments
    assert "samples=2" in arguments
    assert [event["sequence"] for event in client.watch("job-7")] == [1, 2]


def test_a_missing_program_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="no program /none/kmosaic"):
        Client(kmosaic="/none/kmosaic")


def test_code_is_the_last_whole_block_with_the_class() -> None:
    first, second = CODE.format(verdict="a"), CODE.format(verdict="b")
    assert code_of(f"```python\n{first}```\ntext\n```\n{second}```\n```cpp\nint x;\n```") == second
    assert code_of(f"```python\n{first}```\n```python\n{second}") == first
    assert code_of("no code") is None
    assert code_of("```python\nx = 1\n```") is None


@pytest.mark.parametrize(
    ("verdict", "vector"),
    [
        ("COMPILE_ERROR", (1, 0, 0, 0, 0)),
        ("CRASHED", (1, 1, 0, 0, 0)),
        ("WRONG_OUTPUT", (1, 1, 1, 0, 0)),
        ("NO_CUSTOM_KERNEL", (0, 0, 0, 0, 0)),
        ("TAMPERING", (0, 0, 0, 0, 0)),
        ("PASSED", (1, 1, 1, 1, 0)),
    ],
)
def test_verdicts_become_parts(verdict: str, vector: tuple[float, ...]) -> None:
    assert reward_of({"verdict": verdict}).vector == vector


def test_speed_counts_up_to_eight_times_the_baseline() -> None:
    def faster(speedup: float | None) -> float:
        return reward_of({"verdict": "PASSED", "benchmark": {"speedup": speedup}}).faster

    assert [faster(s) for s in (None, 0.5, 1.0, 8.0, 100.0)] == [0, 0, 0, 1, 1]
    assert 0.3 < faster(2.0) < 0.4


def test_the_machines_failure_is_no_reward() -> None:
    unknown = reward_of({"verdict": "INFRASTRUCTURE"})
    assert not unknown.known
    assert Weights().total(unknown) is None
    assert Weights().total(Reward(True, 1, 1, 1, 1, 0)) == pytest.approx(1.0)


def test_rewards_have_the_signatures_of_trl_and_verl(client: Client) -> None:
    replies = [reply("PASSED"), "nothing", reply("COMPILE_ERROR"), reply("INFRASTRUCTURE")]
    texts = trl_reward(client)(prompts=["p"] * 4, completions=replies, reference=["r"] * 4)
    assert texts == [pytest.approx(1.0 + 1 / 3), 0.0, 0.0, None]
    messages = [[{"role": "assistant", "content": text}] for text in replies]
    assert trl_reward(client)(["p"] * 4, messages, reference=["r"] * 4, completion_ids=[]) == texts
    scored = verl_score(client)(["kernels"] * 4, replies, ["r"] * 4, [{}] * 4)
    assert [row["score"] for row in scored] == [pytest.approx(4 / 3), 0.0, 0.0, 0.0]
    assert [row["known"] for row in scored] == [1.0, 1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="1 references for 2 replies"):
        client.rewards(["r"], ["a", "b"])


def test_the_environment_is_left_alone(client: Client) -> None:
    before = dict(os.environ)
    client.score([Candidate("r", CODE.format(verdict="PASSED"))])
    assert dict(os.environ) == before
