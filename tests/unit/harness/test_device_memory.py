"""Blocks of device memory over a stand-in for libcuda, whose memory is that of files."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest
import torch
from driver_stand_in import StandIn
from harness import device_kernels, device_memory, errors, reference, wire


@pytest.fixture
def driver(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> device_kernels.Driver:
    def host_bytes(block: device_memory.Block) -> torch.Tensor:
        content = (ctypes.c_ubyte * block._size).from_address(block._address.value)
        return torch.frombuffer(content, dtype=torch.uint8)

    monkeypatch.setattr(device_memory.Block, "bytes", host_bytes)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    return device_kernels.Driver()


def encoded(driver: device_kernels.Driver, value: object) -> tuple[wire.Node, int]:
    writer = wire.TreeWriter(device_memory.DeviceStorage(driver))
    return writer.encode(value), writer.finish()


def test_a_tree_comes_out_of_a_block_as_it_went_in(
    driver: device_kernels.Driver, stand_in: StandIn
) -> None:
    value = {
        "a": [torch.arange(7.0), 3],
        "b": (torch.ones(2, 3).t(), torch.empty(0, 4)),
        "c": torch.tensor([1 + 2j]).conj(),
        "d": torch.tensor(5, dtype=torch.int64),
    }
    node, descriptor = encoded(driver, value)
    assert wire.extent(node) == 64 * 3 + 8
    result = device_memory.decode(driver, node, descriptor)
    assert torch.equal(result["a"][0], value["a"][0])  # type: ignore[index]
    assert result["a"][1] == 3
    assert torch.equal(result["b"][0], torch.ones(3, 2))
    assert result["b"][0].stride() == (1, 3)
    assert result["b"][1].shape == (0, 4)
    assert result["c"].item() == 1 - 2j
    assert result["d"].item() == 5
    # Nothing is left mapped, and nothing held but by who has a descriptor.
    log = stand_in.log()
    assert log.count("release 0") == 2
    assert len([line for line in log if line.startswith("free")]) == 2


def test_decoded_tensors_are_private(driver: device_kernels.Driver) -> None:
    node, descriptor = encoded(driver, torch.ones(8))
    kept = os.dup(descriptor)
    device_memory.decode(driver, node, descriptor).zero_()
    assert torch.equal(device_memory.decode(driver, node, kept), torch.ones(8))


def test_a_tree_without_tensors_has_a_block_too(driver: device_kernels.Driver) -> None:
    node, descriptor = encoded(driver, [None, 1.5])
    assert device_memory.decode(driver, node, descriptor) == [None, 1.5]


def test_what_is_no_block_is_refused(driver: device_kernels.Driver, tmp_path: Path) -> None:
    with open(tmp_path / "file", "wb") as file, pytest.raises(device_memory.BadDescriptor):
        device_memory.Block.open(driver, file.fileno(), 16)


def test_a_block_that_is_too_small_is_refused(
    driver: device_kernels.Driver, stand_in: StandIn
) -> None:
    _, descriptor = encoded(driver, torch.ones(8))
    with pytest.raises(device_memory.BadDescriptor, match="smaller than 100000 bytes"):
        device_memory.Block.open(driver, descriptor, 100_000)
    os.close(descriptor)
    assert stand_in.log().count("release 0") == 2


def test_a_full_gpu_is_told_as_such(driver: device_kernels.Driver, stand_in: StandIn) -> None:
    stand_in.library.standin_limit(ctypes.c_size_t(1 << 16))
    with pytest.raises(device_memory.OutOfMemory, match="131072 bytes") as raised:
        encoded(driver, torch.ones(20_000))
    assert errors.verdict_of(raised.value, "") == "DEVICE_MEMORY"


BUFFER = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
    def forward(self, x):
        self.seen += x
        return self.seen
def get_inputs():
    return [torch.rand(4)]
def get_init_inputs():
    return []
"""


def test_a_reference_that_returns_its_own_buffer_gives_what_it_was_then(
    driver: device_kernels.Driver,
) -> None:
    role = reference.Reference()
    message = {"source": BUFFER, "device": "emulated", "memory": "device", "scale": 1.0}
    reply, _ = role.load({**message, "scaled_shapes": {}, "weight_seed": 1, "weights_on": "auto"})
    assert reply["ok"], reply
    role._driver = driver
    reply, blocks = role.case({"seed": 3, "family": "native", "want_parameters": True})
    assert reply["ok"], reply
    names = ["inputs", "expected", "expected64", "parameters"]
    case = {
        name: device_memory.decode(driver, reply[name], block) for name, block in zip(names, blocks)
    }
    assert torch.equal(case["expected"], case["inputs"][0])
    assert torch.equal(case["expected64"].float(), case["inputs"][0])
    assert torch.equal(case["parameters"]["seen"], torch.zeros(4))
    role._contexts.close()


def test_support_is_asked_of_the_driver(driver: device_kernels.Driver) -> None:
    assert device_memory.is_supported(driver)
