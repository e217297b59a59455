"""Problem files become task folders with their text unchanged, or are refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from kernelmosaic.generate.task import Key, generate
from kernelmosaic.importing.__main__ import main
from kernelmosaic.importing.problem import Refused, read_problem

REFERENCE = generate(Key("convolution", 1, 0)).reference


def test_a_folder_of_problem_files_is_imported_byte_for_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {
        "level1/3_Conv_standard_2D__square.py": REFERENCE,
        "level1/4_with_crlf.py": generate(Key("softmax", 1, 0)).reference.replace("\n", "\r\n"),
        "level2/1_Linear_ReLU.py": generate(Key("linear-pointwise", 1, 0)).reference + "\n# ü\n\n",
        "level4/1_hub.py": generate(Key("mlp", 1, 0)).reference,
    }
    for name, text in texts.items():
        (tmp_path / "bench" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bench" / name).write_bytes(text.encode())
    out = tmp_path / "tasks"
    arguments = ["import", "kernelbench", str(tmp_path / "bench"), str(out), "--licence=MIT"]
    assert main(arguments) == 0
    assert "4 tasks, 0 refused" in capsys.readouterr().out
    made = {folder.name: folder for folder in out.iterdir()}
    assert set(made) == {
        "l1-3_Conv_standard_2D__square",
        "l1-4_with_crlf",
        "l2-1_Linear_ReLU",
        "l3-1_hub",
    }
    for name, text in texts.items():
        (folder,) = [f for key, f in made.items() if key.endswith(Path(name).stem)]
        assert (folder / "reference.py").read_bytes() == text.encode()
    front = yaml.safe_load((made["l1-3_Conv_standard_2D__square"] / "task.yaml").read_text())
    assert front["title"] == "Conv standard 2D square"
    assert front["family"] == "convolution"
    assert front["level"] == 1
    assert front["licence"] == "MIT"
    # An import into a folder that holds something would mix two sets.
    assert main(arguments) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("class Model(:\n", "line 1: is no Python"),
        ("x = 1\n", "defines no class Model"),
        ("class Model:\n    pass\n", "has no forward"),
        ("class Model:\n    def forward(self): pass\n", r"defines no get_inputs\(\)"),
    ],
)
def test_what_is_no_problem_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        read_problem(text, "1_x", 1)


def test_rows_are_imported_and_copies_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": "a", "level": 2, "reference": REFERENCE},
        {"id": "b", "level": 2, "reference": REFERENCE},
        {"id": "c", "reference": "nothing"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["import", "jsonl", str(path), str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert f"{path}:2: is the same program as {path}:1" in said
    assert f"{path}:3: defines no class Model" in said
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["l2-a"]
    path.write_text('{"id": "a"}\n')
    assert main(["import", "jsonl", str(path), str(tmp_path / "two")]) == 2


def test_families_follow_the_operators() -> None:
    for family, expected in {
        "softmax": "softmax",
        "pooling": "pooling",
        "matmul": "matmul",
        "linear-norm": "matmul",
        "convolution-pool": "convolution",
        "row-norm": "normalisation",
        "activation": "elementwise",
    }.items():
        names = {
            read_problem(generate(Key(family, 1, n)).reference, "x", 1).family for n in range(4)
        }
        assert expected in names
