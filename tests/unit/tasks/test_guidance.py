"""The guidance documents keep their format, and the code in them compiles."""

from __future__ import annotations

import ast
import pathlib
import re
from typing import Any

import pytest
import yaml
from nvcc import compile_cuda
from task_folder import ROOT

DOCUMENTS = sorted((ROOT / "agent_runner" / "guidance" / "documents").glob("*.md"))
KEYS = {"name", "version", "stages", "families", "errors", "contracts"}
STAGES = {"implement", "repair", "optimise"}
MOST_WORDS = 600


def split(path: pathlib.Path) -> tuple[dict[str, Any], str]:
    match = re.fullmatch(r"---\n(.*?)\n---\n(.*)", path.read_text(encoding="utf-8"), re.S)
    assert match, f"{path}: no front matter"
    return yaml.safe_load(match.group(1)), match.group(2)


def blocks(language: str) -> list[Any]:
    found = []
    for path in DOCUMENTS:
        code = re.findall(rf"^```{language}\n(.*?)^```$", split(path)[1], re.S | re.M)
        found += [pytest.param(text, id=f"{path.stem}-{n}") for n, text in enumerate(code)]
    return found


def each_document() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)


@each_document()
def test_the_front_matter_is_as_documented(path: pathlib.Path) -> None:
    front, _ = split(path)
    assert set(front) <= KEYS
    assert front["name"] == path.stem
    assert front["version"] >= 1
    assert front["stages"]
    assert set(front["stages"]) <= STAGES
    assert set(front.get("contracts", [])) <= {"modelnew", "cuda"}
    for pattern in front.get("errors", []):
        re.compile(pattern)


@each_document()
def test_documents_are_short(path: pathlib.Path) -> None:
    assert len(split(path)[1].split()) <= MOST_WORDS


def test_every_stage_and_contract_has_guidance() -> None:
    fronts = [split(path)[0] for path in DOCUMENTS]
    for contract in ("modelnew", "cuda"):
        for stage in STAGES:
            assert any(
                stage in front["stages"] and contract in front.get("contracts", [contract])
                for front in fronts
            )


@pytest.mark.parametrize(
    ("error", "document"),
    [
        ('COMPILE_ERROR\nsource.cu(12): error: identifier "idx" is undefined', "compile-errors"),
        ("COMPILE_ERROR\nsource.cu:12:9: error: 'idx' was not declared in", "compile-errors"),
        ("LOAD_ERROR\nundefined symbol: _Z11row_softmaxN2at6TensorE", "extension-errors"),
        ("RUNTIME_ERROR\nmodule has no attribute 'softmax'", "extension-errors"),
        ("ILLEGAL_ACCESS\nout of bounds load in kernel k", "illegal-access"),
        ("ILLEGAL_ACCESS\nCUDA error: an illegal memory access", "illegal-access"),
        ("ILLEGAL_LAUNCH\n2048 threads in a block", "launch-errors"),
        ("RUNTIME_ERROR\nCUDA error: invalid configuration argument", "launch-errors"),
        ("DATA_RACE\nthe result depends on the order of threads", "races-and-barriers"),
        ("NONDETERMINISTIC\ntwo runs differ", "races-and-barriers"),
        ("WRONG_OUTPUT\n12 of 400 elements differ", "wrong-output"),
    ],
)
@pytest.mark.parametrize("contract", ["modelnew", "cuda"])
def test_an_error_finds_its_document(error: str, document: str, contract: str) -> None:
    fronts = {front["name"]: front for front, _ in map(split, DOCUMENTS)}
    if contract not in fronts[document].get("contracts", [contract]):
        pytest.skip(f"{document} is for the other contract")
    matched = [
        name
        for name, front in fronts.items()
        if contract in front.get("contracts", [contract])
        and any(re.search(pattern, error) for pattern in front.get("errors", []))
    ]
    # Only about one document fits into a repair's context, and names decide among equals.
    assert matched[0] == document


@pytest.mark.parametrize("code", blocks("python"))
def test_python_in_the_documents_parses(code: str) -> None:
    ast.parse(code)


@pytest.mark.parametrize("code", blocks("cuda"))
def test_cuda_in_the_documents_compiles(code: str, tmp_path: pathlib.Path) -> None:
    result = compile_cuda(code, tmp_path)
    assert result.returncode == 0, result.stderr
