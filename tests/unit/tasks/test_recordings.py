"""The demo job's recording: its format, its sources, and that solutions are what they claim.

The verdicts themselves come from the demo job, which compiles and runs every reply.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import pathlib
import re
import types
from typing import Any

import pytest
import yaml
from nvcc import compile_cuda
from task_folder import ROOT, Task, all_tasks

EXAMPLES = ROOT / "examples"
TASKS = {task.id: task for task in all_tasks()}
KEYS = {"task", "turn", "content", "views", "sample", "note"}


def load_pack() -> types.ModuleType:
    path = EXAMPLES / "recordings" / "pack.py"
    spec = importlib.util.spec_from_file_location("pack", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PACK = load_pack()


class Reply:
    """One reply file: what it claims, its text and the code that an agent would take from it."""

    def __init__(self, path: pathlib.Path) -> None:
        head, self.content = PACK.split_reply(path.read_text(encoding="utf-8"))
        front: dict[str, Any] = yaml.safe_load(head)
        self.task = TASKS[path.parent.name]
        self.turn = int(path.stem)
        self.stage: str = front["stage"]
        self.expect: list[str] = front["expect"]
        language = "cuda" if self.task.contract == "cuda" else "python"
        entry = r"class ModelNew\b" if language == "python" else r'extern "C" void \w+\('
        fenced = re.findall(r"^```(\w+)\n(.*?)^```$", self.content, re.S | re.M)
        solutions = [text for name, text in fenced if name == language and re.search(entry, text)]
        self.code = solutions[-1] if solutions else ""

    @property
    def id(self) -> str:
        return f"{self.task.id}-{self.turn}"


REPLIES = [Reply(path) for path in sorted(PACK.REPLIES.glob("*/*.md"))]


def each_reply(contract: str | None = None) -> pytest.MarkDecorator:
    chosen = [r for r in REPLIES if contract in (None, r.task.contract)]
    return pytest.mark.parametrize("reply", chosen, ids=lambda reply: reply.id)


def conversation(task: Task) -> list[Reply]:
    return sorted((r for r in REPLIES if r.task is task), key=lambda r: r.turn)


def test_the_recording_is_packed_from_the_replies() -> None:
    packed = (EXAMPLES / "recordings" / "demo.jsonl").read_text(encoding="utf-8")
    assert packed == PACK.pack(), "run examples/recordings/pack.py"


def test_each_line_has_the_documented_keys_and_says_that_it_is_hand_written() -> None:
    lines = (EXAMPLES / "recordings" / "demo.jsonl").read_text(encoding="utf-8").splitlines()
    for line in map(json.loads, lines):
        assert set(line) <= KEYS
        assert "hand-written" in line["note"]


def test_every_example_task_has_a_conversation_that_gets_there() -> None:
    for task in TASKS.values():
        replies = conversation(task)
        assert replies, task.id
        assert replies[0].stage == "implement"
        assert any("PASSED" in reply.expect for reply in replies), task.id


def test_optimisation_starts_only_after_a_right_version() -> None:
    for task in TASKS.values():
        solved = False
        for reply in conversation(task):
            assert (reply.stage == "optimise") == solved, reply.id
            solved = solved or "PASSED" in reply.expect


def test_real_life_is_in_the_set() -> None:
    expected = {verdict for reply in REPLIES for verdict in reply.expect}
    assert expected >= {"COMPILE_ERROR", "WRONG_OUTPUT", "DATA_RACE", "ILLEGAL_LAUNCH", "PASSED"}
    assert {reply.stage for reply in REPLIES} == {"implement", "repair", "optimise"}
    broken = [r for r in REPLIES if r.stage == "optimise" and "PASSED" not in r.expect]
    assert broken


@each_reply()
def test_each_reply_holds_prose_and_one_solution(reply: Reply) -> None:
    assert reply.code
    assert not reply.content.startswith("```")


@each_reply("cuda")
def test_cuda_solutions_define_the_entry_of_the_task(reply: Reply) -> None:
    prototype = re.sub(r"\s+", " ", reply.task.config["entry"]["prototype"])
    match = re.search(r'extern "C" (void \w+\([^)]*\))', reply.code)
    assert match
    assert re.sub(r"\s+", " ", match.group(1)) == prototype


@each_reply("modelnew")
def test_modelnew_solutions_parse(reply: Reply) -> None:
    names = {node.name for node in ast.parse(reply.code).body if isinstance(node, ast.ClassDef)}
    assert "ModelNew" in names


@each_reply("cuda")
def test_nvcc_accepts_what_is_said_to_compile(reply: Reply, tmp_path: pathlib.Path) -> None:
    result = compile_cuda(reply.code, tmp_path)
    assert (result.returncode == 0) == ("COMPILE_ERROR" not in reply.expect), result.stderr


def test_the_demo_job_uses_all_seven_combinations() -> None:
    job = yaml.safe_load((EXAMPLES / "jobs" / "demo.yaml").read_text(encoding="utf-8"))
    assert job["assign"] == "round-robin"
    combinations = {tuple(sorted(views)) for views in job["views"]}
    assert len(combinations) == 7
    assert len(TASKS) >= max(12, len(job["views"]))
