"""The role that looks at values on a GPU for the daemon. It runs no code of others.

Blocks come as descriptors: of memory of the GPU ("memory": "device", device_memory.py), or memfds
("memory": "host"). They belong to processes that run other people's code, so that their content
may change at any time, and what is read twice may be two things.

{"op": "start", "device"}; answer {"ok": true, "device_memory": bool}: whether blocks of device
memory can be used here.

{"op": "summary", "memory", "tree": node}, descriptor [block]; answer {"ok": true, "leaves":
[{"mean_square", "non_finite"} of each tensor, null for what is no floating tensor]}.

{"op": "compare", "memory", "expected", "expected64" | null, "got", "rules": [{...} of each
tensor], "poison": byte | null}, descriptors [expected, expected64 if not null, got]: trees of the
same structure and shapes; answer {"ok": true, "leaves": [comparison.Facts of each tensor]}.

{"op": "same", "memory", "before", "after"}, descriptors [before, after]; answer {"ok": true,
"same": [bool of each tensor]}: whether tensors of trees of the same structure have the same bytes.

{"op": "fetch", "memory", "bytes"}, descriptor [block]; answer {"ok": true}, descriptor [a memfd
with the block's bytes].

Or {"ok": false, "bad": index of the descriptor that is no such block | null, "out_of_memory":
bool, "error"}.
"""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import torch

from harness import comparison, device_kernels, device_memory, errors, timing, wire


class BadBlock(Exception):
    def __init__(self, index: int, text: str) -> None:
        super().__init__(text)
        self.index = index


class Blocks:
    """The blocks of one request, open for its time."""

    def __init__(self, driver: device_kernels.Driver | None, descriptors: list[int]) -> None:
        self._driver = driver
        self._descriptors = descriptors
        self._blocks: list[device_memory.Block] = []
        self._next = 0

    def take(self, size: int) -> torch.Tensor:
        """The next one's bytes, not copied where they are on a GPU."""
        index = self._next
        self._next += 1
        if index >= len(self._descriptors):
            raise BadBlock(index, "a descriptor is missing")
        descriptor = self._descriptors[index]
        if self._driver is None:
            if os.fstat(descriptor).st_size < size:
                raise BadBlock(index, f"a block is smaller than {size} bytes")
            return torch.frombuffer(bytearray(os.pread(descriptor, size, 0)), dtype=torch.uint8)
        try:
            block = device_memory.Block.open(self._driver, descriptor, size)
        except device_memory.BadDescriptor as error:
            raise BadBlock(index, str(error)) from error
        self._blocks.append(block)
        return block.bytes()

    def tree(self, node: wire.Node) -> list[torch.Tensor]:
        """The tensors of a tree, not to be written."""
        size = wire.extent(node)
        memory = self.take(size) if size else torch.empty(0, dtype=torch.uint8)
        if not size:
            self._next += 1
        value = wire.decode_with(
            node, lambda dtype, offset, count: memory[offset : offset + count].view(dtype)
        )
        return list(timing.leaves(value))

    def close(self) -> None:
        for block in self._blocks:
            block.close()


class Launcher:
    def __init__(self) -> None:
        self._driver: device_kernels.Driver | None = None
        self._kernels: device_kernels.Kernels | None = None
        self._operations = {"summary": _summary, "compare": self._compare, "same": _same}

    def answer(
        self, message: dict[str, Any], descriptors: list[int]
    ) -> tuple[dict[str, Any], list[int]]:
        if message["op"] == "start":
            return self._start(message["device"]), []
        blocks = Blocks(self._driver if message["memory"] == "device" else None, descriptors)
        try:
            with torch.no_grad():
                if message["op"] == "fetch":
                    return {"ok": True}, [_fetch(blocks, message)]
                return {"ok": True, **self._operations[message["op"]](blocks, message)}, []
        except BadBlock as error:
            return _refused(error.index, False, str(error)), []
        except Exception as error:
            memory = errors.verdict_of(error, "") == "DEVICE_MEMORY"
            return _refused(None, memory, errors.describe(error, None)), []
        finally:
            blocks.close()
            if self._driver is not None:
                torch.cuda.empty_cache()  # others share the GPU

    def _start(self, device: str) -> dict[str, Any]:
        if device != "cuda":
            return {"ok": True, "device_memory": False}
        self._driver = device_kernels.Driver()
        torch.cuda.synchronize()  # makes the context
        self._kernels = device_kernels.load_kernels(self._driver)
        supported = device_memory.is_supported(self._driver)
        return {"ok": True, "device_memory": supported}

    def _compare(self, blocks: Blocks, message: dict[str, Any]) -> dict[str, Any]:
        on_device = message["memory"] == "device"
        expected = blocks.tree(message["expected"])
        expected64: list[torch.Tensor | None] = [None] * len(expected)
        if message["expected64"] is not None:
            expected64 = list(blocks.tree(message["expected64"]))
        got = blocks.tree(message["got"])
        leaves = []
        for index, rule in enumerate(message["rules"]):
            facts = comparison.compare(
                expected[index],
                expected64[index],
                got[index],
                comparison.Rule(**rule),
                message["poison"],
                self._kernels if on_device else None,
            )
            leaves.append({name: _number(value) for name, value in vars(facts).items()})
        return {"leaves": leaves}


def _refused(bad: int | None, out_of_memory: bool, text: str) -> dict[str, Any]:
    return {"ok": False, "bad": bad, "out_of_memory": out_of_memory, "error": text}


def _summary(blocks: Blocks, message: dict[str, Any]) -> dict[str, Any]:
    leaves: list[dict[str, Any] | None] = []
    for tensor in blocks.tree(message["tree"]):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            leaves.append(None)
            continue
        square, others = comparison.mean_square(tensor)
        leaves.append({"mean_square": square, "non_finite": others})
    return {"leaves": leaves}


def _number(value: float) -> float | str:
    """JSON has no infinities."""
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _same(blocks: Blocks, message: dict[str, Any]) -> dict[str, Any]:
    before = blocks.tree(message["before"])
    after = blocks.tree(message["after"])
    pairs = itertools.zip_longest(before, after)
    return {
        "same": [a is not None and b is not None and comparison.same_bytes(a, b) for a, b in pairs]
    }


def _fetch(blocks: Blocks, message: dict[str, Any]) -> int:
    storage = wire.FileStorage("fetched")
    storage.append(blocks.take(message["bytes"])[: message["bytes"]])
    return storage.finish()


def serve(channel: wire.Channel) -> None:
    launcher = Launcher()
    while (received := channel.receive()) is not None:
        message, descriptors = received
        reply, answered = launcher.answer(message, descriptors)
        channel.send(reply, answered)
        for descriptor in [*descriptors, *answered]:
            os.close(descriptor)
