"""Generated tasks are deterministic, distinct, whole, and about one computation in all views."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml
from kernelmosaic.generate.__main__ import main, tasks
from kernelmosaic.generate.families import load
from kernelmosaic.generate.task import Key, Task, digest, generate

FAMILIES = sorted(load())
FEWEST_FAMILIES = 30


def scaled_program(task: Task) -> dict[str, object]:
    """The reference's names, loaded with reduced sizes."""
    text = task.reference
    for name, value in task.scaled_shapes.items():
        text = re.sub(rf"^{name} = \d+$", f"{name} = {value}", text, flags=re.MULTILINE)
    names: dict[str, object] = {}
    exec(compile(text, task.id, "exec"), names)
    return names


def test_there_are_enough_families() -> None:
    assert len(FAMILIES) >= FEWEST_FAMILIES
    assert {family.level for family in load().values()} == {1, 2, 3}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_key_gives_the_same_task_each_time(family: str) -> None:
    first, second = (generate(Key(family, 3, 4)) for _ in range(2))
    assert first.files == second.files
    assert first.solutions == second.solutions


@pytest.mark.parametrize("family", FAMILIES)
def test_a_task_is_whole(family: str) -> None:
    for number in range(6):
        task = generate(Key(family, 1, number))
        front = yaml.safe_load(task.yaml)
        assert front["id"] == task.id == Key.parse(task.id).text
        assert front["contract"] == "modelnew"
        # Every module-level integer is named, so that the general rule never guesses.
        tree = ast.parse(task.reference)
        integers = {
            node.targets[0].id
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
            and type(node.value.value) is int
            and node.value.value > 0
        }
        assert integers == set(front["scaled_shapes"])
        for entry in task.graph.inputs:
            assert f"`{entry.value.name}`" in task.description
            assert f"`{entry.value.name}`" in task.spec
        for argument in task.signature.arguments:
            assert f"`{argument.name}`" in task.description
            assert f"`{argument.name}`" in task.spec
        for name, source in task.solutions:
            ast.parse(source)
            assert "class ModelNew(nn.Module)" in source, name
        assert len({source for _, source in task.solutions}) == len(task.solutions)


def test_thousands_of_tasks_are_distinct() -> None:
    made = list(tasks(FAMILIES, seed=5, count=2000))
    assert len({task.id for task in made}) == 2000
    for view in ("reference", "description", "spec"):
        assert len({digest(getattr(task, view)) for task in made}) == 2000


def test_one_computation_is_written_in_many_ways() -> None:
    texts = [generate(Key("linear-pointwise", 2, number)).reference for number in range(200)]
    for sign in ('"""', "super().__init__()", "super(Model, self)", "F.", "nn.ReLU", "-> torch"):
        share = sum(sign in text for text in texts) / len(texts)
        assert 0 < share < 1, f"{sign!r} is in {share:.0%} of the references"


@pytest.mark.parametrize("family", FAMILIES)
def test_references_run_and_are_finite(family: str) -> None:
    torch = pytest.importorskip("torch", reason="NOT CHECKED: references need torch")
    for number in range(2):
        task = generate(Key(family, 1, number))
        names = scaled_program(task)
        torch.manual_seed(1)
        model = names["Model"](*names["get_init_inputs"]())  # type: ignore[operator]
        with torch.no_grad():
            result = model(*names["get_inputs"]())  # type: ignore[operator]
        assert tuple(result.shape) == tuple(size.scaled for size in task.graph.output.sizes)
        assert str(result.dtype) == f"torch.{task.graph.output.dtype}"
        assert torch.isfinite(result).all()


def test_the_command_writes_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "a"), "--count=5", "--seed=9", "--families=softmax,matmul"]) == 0
    assert main([str(tmp_path / "b"), "--count=5", "--seed=9", "--families=softmax,matmul"]) == 0
    first = {p.relative_to(tmp_path / "a"): p.read_text() for p in tmp_path.glob("a/*/*")}
    again = {p.relative_to(tmp_path / "b"): p.read_text() for p in tmp_path.glob("b/*/*")}
    assert len(first) == 20
    assert first == again
    assert main([str(tmp_path / "a"), "--count=5"]) == 2
    assert main([str(tmp_path / "c"), "--families=softmox"]) == 2
    assert "there is no family softmox" in capsys.readouterr().err
