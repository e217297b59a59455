import os
from pathlib import Path

import pytest
from harness import enter


def test_links_on_the_way_are_shown_as_links(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "lib").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    view = enter.view_of([str(tmp_path / "link" / "lib")])
    assert view.paths == (str(real / "lib"),)
    assert view.links == ((str(tmp_path / "link"), "real"),)


def test_what_lies_below_another_path_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "inner").symlink_to("b")
    (tmp_path / "a-b").mkdir()
    names = ["a", "a/b", "a/inner", "a-b", "absent"]
    view = enter.view_of([str(tmp_path / n) for n in names])
    assert view.paths == (str(tmp_path / "a"), str(tmp_path / "a-b"))
    assert view.links == ()


def test_views_are_joined(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first = enter.view_of([str(tmp_path / "a")])
    both = enter.view_of([str(tmp_path / "b")], first)
    assert both.paths == (str(tmp_path / "a"), str(tmp_path / "b"))


def test_a_relative_path_is_refused() -> None:
    with pytest.raises(ValueError, match="not absolute"):
        enter.view_of(["lib"])


def test_python_finds_its_own_files() -> None:
    paths = enter.python_paths()
    assert os.path.dirname(os.__file__) in paths
    assert "/" not in paths
