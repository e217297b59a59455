"""A planted leak is found under every disguise; unrelated tasks are not."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from kernelmosaic.curate.__main__ import main
from kernelmosaic.curate.contamination import HeldOut, findings, leaks
from kernelmosaic.curate.programs import read_program
from kernelmosaic.curate.task_set import Entry, read_tasks
from kernelmosaic.generate.__main__ import tasks
from kernelmosaic.generate.families import load

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples/tasks").iterdir())


def generated(seed: int, count: int) -> list[Entry]:
    return [
        Entry(task.id, "", task.reference, task.description)
        for task in tasks(sorted(load()), seed, count)
    ]


HELD_OUT = [Entry(f.name, "", (f / "reference.py").read_text()) for f in EXAMPLES]
HELD_OUT += generated(seed=1, count=61)


def spaced(source: str) -> str:
    return "\n\n# copied\n" + source.replace("\n", "  \n").replace(" = ", "  =  ") + "\n\n"


class _Renamer(ast.NodeTransformer):
    """Arguments, locals, sizes and the module's own attributes under other names."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        stored = {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        arguments = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)} - {"self"}
        self.names = stored | arguments
        self.attributes = {
            n.attr
            for n in ast.walk(tree)
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
        }

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(f"other_{node.id}", node.ctx) if node.id in self.names else node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = f"other_{node.arg}" if node.arg in self.names else node.arg
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if (
            node.attr in self.attributes
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            node.attr = f"my_{node.attr}"
        return node


def renamed(source: str) -> str:
    return ast.unparse(_Renamer(source).visit(ast.parse(source)))


def redocumented(source: str) -> str:
    source = re.sub(r'""".*?"""', '"""Another text about it."""', source, flags=re.DOTALL)
    return re.sub(r"(: torch\.Tensor| -> torch\.Tensor|: int|: float)", "", source)


def resized(source: str) -> str:
    return re.sub(r"^(\w+) = (\d+)$", lambda m: f"{m[1]} = {int(m[2]) * 3 + 1}", source, flags=re.M)


def paraphrased(source: str) -> str:
    """A step more in the frame of the file, and another order of what is beside the class."""
    source = source.replace("def get_inputs():\n", "def get_inputs():\n    torch.manual_seed(3)\n")
    return "# A rewritten version.\nimport math\n" + source


@pytest.mark.parametrize("disguise", [spaced, renamed, redocumented, resized, paraphrased])
def test_held_out_tasks_are_found_in_disguise(disguise: object) -> None:
    held_out = HeldOut(HELD_OUT)
    for entry in HELD_OUT:
        other = Entry("planted", "", disguise(entry.reference))  # type: ignore[operator]
        assert read_program(other.reference) is not None
        found = held_out.find(other)
        assert found is not None, entry.id
        assert found.look != "same graph", entry.id


def test_unrelated_tasks_are_no_leaks() -> None:
    found = leaks(findings(generated(seed=2, count=300), HeldOut(HELD_OUT)))
    # Equal computations at equal sizes may come up by chance; they are few and no false alarm.
    assert all(f.look != "near text" for f in found), [(f.task.id, f.held_out.id) for f in found]
    assert len(found) <= 6


def test_the_same_operators_are_listed_and_dropped_only_when_asked() -> None:
    held_out = HeldOut([Entry("h", "", HELD_OUT[0].reference)])
    source = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a):
        b = a.transpose(1, 2)
        return b.contiguous()


def get_inputs():
    return [torch.randn(2, 3, 4)]


def get_init_inputs():
    return []
"""
    graph = read_program(HELD_OUT[0].reference)
    assert graph is not None
    assert graph.operators == ("permute",)
    found = findings([Entry("t", "", source)], held_out)
    assert [f.look for f in found] == ["same graph"]
    assert leaks(found) == []
    assert len(leaks(found, graphs_too=True)) == 1


def test_programs_that_cannot_be_read_are_compared_as_text() -> None:
    held_out = HeldOut([Entry("h", "", "this is no Python")])
    assert len(held_out.unread) == 1
    assert held_out.find(Entry("t", "", " this is no Python\n")) is not None
    assert held_out.find(Entry("t", "", "nor is this")) is None


def test_the_command_lists_what_must_stay_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": "leak", "reference": renamed(HELD_OUT[3].reference)}]
    rows.append({"id": "own", "reference": "import torch\n"})
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    arguments = ["contamination", str(tmp_path / "tasks.jsonl"), "--held-out"]
    arguments += [str(ROOT / "examples/tasks"), "--list", str(tmp_path / "out.txt")]
    assert main(arguments) == 1
    assert (tmp_path / "out.txt").read_text() == "leak\n"
    assert json.loads(capsys.readouterr().out)["held_out"] == HELD_OUT[3].id
    assert main(["contamination", str(tmp_path / "none"), "--held-out", str(tmp_path)]) == 2


def test_problem_files_are_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_Square.py").write_text(HELD_OUT[0].reference)
    assert [entry.id for entry in read_tasks(tmp_path)] == ["1_Square"]
