"""The guidance documents keep their format, are short, and are found by what they are for."""

from __future__ import annotations

import re

import pytest
from guidance_documents import Document, documents

KEYS = {"name", "version", "stages", "families", "contracts", "regimes", "devices", "errors"}
VALUES = {
    "stages": {"implement", "repair", "optimise"},
    "contracts": {"modelnew", "cuda"},
    "regimes": {"memory", "arithmetic", "launch"},
    "devices": {"cuda", "emulated"},
}
MOST_TOKENS = 900
FEWEST_DOCUMENTS = 28


def each_document() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("document", documents(), ids=lambda document: document.path.stem)


def test_there_are_enough_documents() -> None:
    assert len(documents()) >= FEWEST_DOCUMENTS


@each_document()
def test_the_front_matter_is_as_documented(document: Document) -> None:
    front = document.front
    assert set(front) <= KEYS
    assert front["name"] == document.path.stem
    assert front["version"] >= 1
    assert front["stages"]
    for key, known in VALUES.items():
        assert set(front.get(key, [])) <= known
    for pattern in front.get("errors", []):
        re.compile(pattern)


@each_document()
def test_documents_are_short(document: Document) -> None:
    assert document.tokens <= MOST_TOKENS


@each_document()
def test_every_fence_is_code_that_is_tested(document: Document) -> None:
    fences = re.findall(r"^```(.*)$", document.text, re.M)
    assert len(fences) == 2 * len(document.blocks)
    assert {block.language for block in document.blocks} <= {"cuda", "python"}


@pytest.mark.parametrize("stage", sorted(VALUES["stages"]))
@pytest.mark.parametrize("contract", sorted(VALUES["contracts"]))
def test_every_stage_and_contract_has_guidance(stage: str, contract: str) -> None:
    assert any(
        stage in document.front["stages"]
        and contract in document.front.get("contracts", [contract])
        for document in documents()
    )


@pytest.mark.parametrize(
    ("error", "document"),
    [
        ('COMPILE_ERROR\nsource.cu(12): error: identifier "idx" is undefined', "compile-errors"),
        ("COMPILE_ERROR\nsource.cu:12:9: error: 'idx' was not declared in", "compile-errors"),
        ("COMPILE_RESOURCES\nptxas error: too much shared data", "resource-limits"),
        ("COMPILE_TIMEOUT\nstopped after 2m", "resource-limits"),
        ("DEVICE_MEMORY\nCUDA out of memory", "resource-limits"),
        ("UNSUPPORTED\nthe emulated device cannot run this source: line 3", "emulated-limits"),
        ("LOAD_ERROR\nundefined symbol: _Z11row_softmaxN2at6TensorE", "extension-errors"),
        ("RUNTIME_ERROR\nmodule has no attribute 'softmax'", "extension-errors"),
        ("RUNTIME_ERROR\nx must be contiguous", "extension-runtime"),
        ("DEFERRED_WORK\nwork was still going on", "extension-runtime"),
        ("ILLEGAL_ACCESS\nout of bounds load in kernel k", "illegal-access"),
        ("ILLEGAL_ACCESS\nCUDA error: an illegal memory access", "illegal-access"),
        ("ILLEGAL_LAUNCH\n2048 threads in a block", "launch-errors"),
        ("RUNTIME_ERROR\nCUDA error: invalid configuration argument", "launch-errors"),
        ("TIME_LIMIT\none call took more than 60 s", "launch-errors"),
        ("DATA_RACE\nthe result depends on the order of threads", "races-and-barriers"),
        ("NONDETERMINISTIC\ntwo runs differ", "races-and-barriers"),
        ("WRONG_OUTPUT\n12 of 400 elements differ", "wrong-output"),
        ("WRONG_SHAPE\noutput 0 is [3, 4]", "wrong-output"),
    ],
)
@pytest.mark.parametrize("contract", ["modelnew", "cuda"])
def test_an_error_finds_its_document(error: str, document: str, contract: str) -> None:
    fronts = {d.name: d.front for d in documents()}
    matched = [
        name
        for name, front in fronts.items()
        if contract in front.get("contracts", [contract])
        and any(re.search(pattern, error) for pattern in front.get("errors", []))
    ]
    if contract not in fronts[document].get("contracts", [contract]):
        assert document not in matched
        return
    # Only about one document fits into a repair's context, and names decide among equals.
    assert matched[0] == document


def test_blocks_are_read_with_their_words() -> None:
    text = "a\n```cuda run=x arch=sm_90a\nint a;\n```\n```python\nb = 1\n```\n"
    first, second = Document(documents()[0].path, {"name": "d"}, text).blocks
    assert (first.language, first.run, first.word("arch")) == ("cuda", "x", "sm_90a")
    assert first.code == "int a;\n"
    assert (second.language, second.words) == ("python", ())
