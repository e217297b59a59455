"""Selection covers more than chance, keeps its quotas, and leaves out what is there twice."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

np = pytest.importorskip("numpy")

from kernelmosaic.curate.__main__ import main  # noqa: E402
from kernelmosaic.curate.features import WIDTH, features  # noqa: E402
from kernelmosaic.curate.picture import selection_svg  # noqa: E402
from kernelmosaic.curate.selection import Quotas, coverage, near_duplicates, select  # noqa: E402
from kernelmosaic.curate.task_set import Entry  # noqa: E402
from kernelmosaic.generate.__main__ import tasks  # noqa: E402
from kernelmosaic.generate.families import load  # noqa: E402


def entries(count: int) -> list[Entry]:
    return [
        Entry(t.id, "", t.reference, t.description, t.family.operator, t.family.level)
        for t in tasks(sorted(load()), seed=3, count=count)
    ]


ENTRIES = entries(400)
VECTORS = features(ENTRIES)


def test_features_are_similarities() -> None:
    assert VECTORS.shape == (400, WIDTH)
    products = VECTORS @ VECTORS.T
    assert np.allclose(np.diag(products), 1.0, atol=1e-3)
    assert products.max() <= 1.0 + 1e-3
    family = [e.family for e in ENTRIES]
    same = [products[i, j] for i in range(80) for j in range(i) if family[i] == family[j]]
    other = [products[i, j] for i in range(80) for j in range(i) if family[i] != family[j]]
    assert np.mean(same) > np.mean(other) + 0.1


def test_the_choice_is_greedy() -> None:
    """Against the plain greedy algorithm, which computes every gain in every step."""
    chosen: list[int] = []
    for _ in range(12):
        rest = [i for i in range(len(ENTRIES)) if i not in chosen]
        chosen.append(max(rest, key=lambda i: coverage(VECTORS, VECTORS, [*chosen, i])))
    selection = select(ENTRIES, VECTORS, 12, Quotas())
    assert selection.coverage == pytest.approx(coverage(VECTORS, VECTORS, chosen), abs=1e-4)


def test_it_covers_more_than_chance() -> None:
    selection = select(ENTRIES, VECTORS, 60, Quotas())
    assert len(set(selection.chosen)) == 60
    assert selection.coverage > selection.random_coverage + 0.01


def test_quotas_are_kept_and_may_leave_fewer() -> None:
    selection = select(ENTRIES, VECTORS, 100, Quotas(per_family=8, per_level=40))
    families = Counter(ENTRIES[i].family for i in selection.chosen)
    levels = Counter(ENTRIES[i].level for i in selection.chosen)
    assert max(families.values()) <= 8
    assert max(levels.values()) <= 40
    tight = select(ENTRIES, VECTORS, 100, Quotas(families={"loss": 2}, per_family=3))
    assert len(tight.chosen) < 100
    assert sum(ENTRIES[i].family == "loss" for i in tight.chosen) == 2


def test_copies_under_other_names_are_left_out() -> None:
    copy = replace(ENTRIES[5], id="copy", reference=ENTRIES[5].reference.replace("x", "input_x"))
    twice = [*ENTRIES[:20], replace(ENTRIES[3], id="again"), copy]
    assert near_duplicates(twice)[:1] == [20]
    assert 20 in select(twice, features(twice), 22, Quotas()).duplicates


def test_the_picture_is_svg_with_every_family() -> None:
    selection = select(ENTRIES, VECTORS, 30, Quotas())
    root = ElementTree.fromstring(selection_svg(ENTRIES, VECTORS, selection.chosen))
    words = {element.text for element in root.iter() if element.text}
    assert {e.family for e in ENTRIES} <= words


def test_the_command_copies_folders_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for task in tasks(["softmax", "matmul", "scan"], seed=3, count=12):
        task.write(tmp_path / "all" / task.id)
    arguments = ["select", str(tmp_path / "all"), "--count=6", "--per-family=2"]
    arguments += [f"--out={tmp_path / 'out'}", f"--picture={tmp_path / 'map.svg'}"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["chosen"] == 6
    assert report["by_family"] == {"softmax": 2, "matmul": 2, "scan": 2}
    assert len(list((tmp_path / "out").iterdir())) == 6
    assert (tmp_path / "map.svg").read_text().startswith("<svg")
    assert main(["select", str(tmp_path / "all"), "--count=6", "--families=softmax"]) == 2
