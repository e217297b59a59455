"""Small jobs over the example tasks."""

from __future__ import annotations

from pathlib import Path

from tests.integration.cluster import ROOT


def write_job(directory: Path, url: str, tasks: list[str], **changes: object) -> Path:
    """A job file against an OpenAI-compatible endpoint; returns its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "job.yaml"
    lines = [
        "name: test",
        "kind: generate",
        "tasks:",
        *(f"  - {ROOT / 'examples/tasks' / task}" for task in tasks),
        f"views: {changes.get('views', '[[description, reference]]')}",
        f"samples: {changes.get('samples', 1)}",
        "endpoint:",
        "  name: recorded",
        "  kind: openai",
        f"  url: {url}",
        "  model: recorded",
        f"  stream: {changes.get('stream', 'true')}",
        "budget: {turns: 6, optimise_turns: 2}",
        "evaluation: {device: emulated, public_seeds: 1, secret_seeds: 2}",
        f"guidance: {changes.get('guidance', 'true')}",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
