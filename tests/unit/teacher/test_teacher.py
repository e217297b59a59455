"""The teacher finds its task from any view, errs on purpose, and repairs what feedback names."""

from __future__ import annotations

import itertools
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernelmosaic.generate.__main__ import tasks
from kernelmosaic.generate.families import load
from kernelmosaic.generate.task import Key, Task, generate
from kernelmosaic.teacher import MODEL
from kernelmosaic.teacher.mistakes import MISTAKES, choices, with_mistakes
from kernelmosaic.teacher.prompts import TaskIndex
from kernelmosaic.teacher.script import Habits, Script, verdict_of
from kernelmosaic.teacher.server import Teacher, TeacherServer

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests/unit/agent/golden"
NEVER = Habits((1.0,), 0, 0, 0, 0)
ALWAYS = Habits((0.0, 1.0), 0, 0, 0, 0)


def prompt_of(task: Task, views: tuple[str, ...]) -> str:
    """The runner's first message (agent/prompt.cc)."""
    text = f"# Task: {task.title}\n\nData types: {', '.join(task.dtypes)}\n"
    if "description" in views:
        text += f"\n## Description\n\n{task.description}"
    if "reference" in views:
        words = "What it computes is right; how it does so is yours to change."
        text += f"\n## Reference program\n\n{words}\n\n```python\n{task.reference}```\n"
    if "spec" in views:
        text += f"\n## Specification\n\n{task.spec}"
    return text + "\n## Guidance\n\n## Indexing\n\nOne thread per element.\n"


def conversation(prompt: str, *rest: str) -> list[dict[str, str]]:
    roles = itertools.cycle(["user", "assistant"])
    system = {"role": "system", "content": "A CPU that emulates CUDA's execution model."}
    return [system] + [
        {"role": r, "content": c} for r, c in zip(roles, [prompt, *rest], strict=False)
    ]


def test_verdicts_of_all_kinds_of_feedback_are_read() -> None:
    text = (GOLDEN / "feedback_all_verdicts.txt").read_text()
    for part in text.split("=== ")[1:]:
        verdict, feedback = part.split("\n", 1)
        if feedback.strip():
            assert verdict_of(feedback) == verdict
    for name in ("feedback_public_mismatch", "feedback_secret_mismatch"):
        assert verdict_of((GOLDEN / f"{name}.txt").read_text()) == "WRONG_OUTPUT"
    assert verdict_of((GOLDEN / "feedback_optimise_work.txt").read_text()) == "PASSED"
    assert verdict_of((GOLDEN / "feedback_no_version.txt").read_text()) == "NO_VERSION"


def test_each_mistake_finds_tasks_and_changes_their_solutions() -> None:
    places: dict[str, int] = dict.fromkeys(MISTAKES, 0)
    for family in load():
        task = generate(Key(family, 1, 0))
        for _, source in task.solutions:
            for name in choices(task, source, emulated=True):
                places[name] += 1
                assert with_mistakes(task, source, [name], "key") != source
    assert min(places.values()) > 0, places


def test_mistakes_that_a_gpu_may_not_see_are_not_made_there() -> None:
    task = generate(Key("activation", 1, 0))
    only = {name for name, mistake in MISTAKES.items() if mistake.emulated_only}
    for _, source in task.solutions:
        assert not only & set(choices(task, source, emulated=False))


@pytest.mark.parametrize("family", sorted(load()))
def test_a_mistake_is_repaired_when_its_verdict_is_named(family: str) -> None:
    task = generate(Key(family, 1, 1))
    right = {source for _, source in task.solutions}
    for sample in range(4):
        script = Script(task, 0, sample, True, ALWAYS)
        (mistake,) = script.mistakes_of([])
        first = script.reply([])
        assert not any(source in first for source in right)
        verdict = sorted(MISTAKES[mistake].verdicts)[0]
        feedback = f"Something is wrong. ({verdict})\nMore about it.\n"
        repaired = script.reply([feedback])
        assert MISTAKES[mistake].repair in repaired
        assert any(source in repaired for source in right)


def test_a_right_version_is_made_faster_until_there_is_none() -> None:
    task = generate(Key("linear-norm", 1, 0))
    script = Script(task, 0, 3, True, NEVER)
    passed = ["It is right: all checks passed.\nNow make it do less counted work."] * 6
    said = [script.reply(passed[:count]) for count in range(6)]
    assert len(set(said)) > 1
    assert said[-1] == said[-2]
    assert task.solutions[-1][1] in said[-1]


def test_feedback_that_no_mistake_explains_leads_back_to_the_plainest_version() -> None:
    task = generate(Key("matmul", 1, 0))
    script = Script(task, 0, 0, True, NEVER)
    assert task.solutions[0][1] in script.reply(["It crashed. (CRASHED)\n"])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Task]]:
    root = tmp_path_factory.mktemp("tasks")
    made = list(tasks(sorted(load()), seed=11, count=61))
    for task in made:
        task.write(root / task.id)
    return root, made


def test_a_task_is_found_by_any_of_its_views(folders: tuple[Path, list[Task]]) -> None:
    root, made = folders
    index = TaskIndex()
    assert index.add_tree(root) == len(index) == len(made)
    names = ("description", "reference", "spec")
    combinations = [c for n in (1, 2, 3) for c in itertools.combinations(names, n)]
    for task in made:
        for views in combinations:
            assert index.find(prompt_of(task, views)) == task.key
    assert index.find("# Task: another\n\n## Description\n\nSomething else.\n") is None


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    index = TaskIndex()
    with pytest.raises(ValueError, match="was not made by generator"):
        index.add_tree(ROOT / "examples/tasks")
    assert index.add_tree(tmp_path) == 0


@pytest.fixture
def server(folders: tuple[Path, list[Task]]) -> Iterator[TeacherServer]:
    index = TaskIndex()
    index.add_tree(folders[0])
    server = TeacherServer(Teacher(index, seed=1), ("127.0.0.1", 0))
    server.start()
    yield server
    server.close()


def ask(server: TeacherServer, messages: list[dict[str, str]], stream: bool = False) -> bytes:
    body = json.dumps({"model": MODEL, "messages": messages, "stream": stream}).encode()
    request = urllib.request.Request(f"{server.url}/chat/completions", body)
    with urllib.request.urlopen(request) as reply:
        return bytes(reply.read())


def test_the_server_answers_whole_and_in_pieces(
    server: TeacherServer, folders: tuple[Path, list[Task]]
) -> None:
    task = folders[1][0]
    messages = conversation(prompt_of(task, ("spec",)))
    whole = json.loads(ask(server, messages))
    assert whole["model"] == MODEL
    assert whole["usage"]["completion_tokens"] > 0
    first = whole["choices"][0]["message"]["content"]
    # The same prompt again is another sample; a conversation goes on as the one it is.
    assert json.loads(ask(server, messages))["choices"][0]["message"]["content"] is not None
    later = conversation(prompt_of(task, ("spec",)), first, "It is wrong. (WRONG_OUTPUT)\n")
    second = json.loads(ask(server, later))["choices"][0]["message"]["content"]
    events = re.findall(rb"^data: (\{.*\})$", ask(server, later, stream=True), re.MULTILINE)
    pieces = [json.loads(event)["choices"] for event in events]
    text = "".join(c[0]["delta"].get("content", "") for c in pieces if c)
    assert text == second


def test_a_new_teacher_goes_on_with_a_conversation(folders: tuple[Path, list[Task]]) -> None:
    index = TaskIndex()
    index.add_tree(folders[0])
    prompt = prompt_of(folders[1][3], ("description",))
    old = Teacher(index, seed=1)
    first = [old.reply(conversation(prompt)) for _ in range(3)]
    for reply in first:
        assert reply is not None
        messages = conversation(prompt, reply, "It is wrong. (WRONG_OUTPUT)\n")
        assert Teacher(index, seed=1).reply(messages) == old.reply(messages)


def test_an_unknown_prompt_is_refused_with_what_to_do(server: TeacherServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(server, conversation("# Task: none\n"))
    assert caught.value.code == 404
    assert b"start it with the folder" in caught.value.read()
