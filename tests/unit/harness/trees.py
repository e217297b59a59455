"""What the daemon sends with a call."""

from __future__ import annotations

from typing import Any

from harness import wire


def call(inputs: list[Any], **more: Any) -> tuple[dict[str, Any], list[int]]:
    """A message of a call on `inputs`, without parameters, and its descriptors."""
    writer = wire.TreeWriter(wire.FileStorage("inputs"))
    message = {"inputs": writer.encode(inputs), "parameters": None, "outputs": None, "seed": 1}
    return {**message, **more}, [writer.finish()]
