import os
import socket

import pytest
import torch
from harness import wire


def round_trip(value: object) -> object:
    writer = wire.TreeWriter(wire.FileStorage("test"))
    node = writer.encode(value)
    return wire.decode(node, writer.finish())


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -7,
        0.25,
        float("inf"),
        "text",
        torch.float16,
        [1, [2.0, "x"]],
        (1, None),
        {"a": [True], "b": ()},
    ],
)
def test_plain_values_survive_with_their_types(value: object) -> None:
    result = round_trip(value)
    assert result == value
    assert type(result) is type(value)


def test_nan_survives() -> None:
    result = round_trip(float("nan"))
    assert isinstance(result, float)
    assert result != result


@pytest.mark.parametrize("name", sorted(wire.DTYPES))
def test_tensors_of_every_dtype_survive_bit_by_bit(name: str) -> None:
    count = 24 // wire.DTYPES[name].itemsize * 16
    raw = torch.arange(count * wire.DTYPES[name].itemsize, dtype=torch.uint8)
    if name == "bool":
        raw %= 2
    tensor = raw.view(wire.DTYPES[name]).reshape(2, -1)
    result = round_trip(tensor)
    assert isinstance(result, torch.Tensor)
    assert result.dtype == tensor.dtype
    assert result.shape == tensor.shape
    assert torch.equal(result.view(torch.uint8), tensor.view(torch.uint8))


def test_a_transposed_tensor_keeps_its_strides() -> None:
    tensor = torch.arange(12.0).reshape(3, 4).t()
    result = round_trip(tensor)
    assert isinstance(result, torch.Tensor)
    assert result.stride() == tensor.stride()
    assert torch.equal(result, tensor)


def test_an_expanded_tensor_arrives_with_memory_of_its_own() -> None:
    result = round_trip(torch.ones(1, 4).expand(3, 4))
    assert isinstance(result, torch.Tensor)
    assert result.is_contiguous()


def test_empty_and_zero_dimensional_tensors_survive() -> None:
    result = round_trip([torch.empty(0, 3), torch.tensor(5.0)])
    assert isinstance(result, list)
    assert result[0].shape == (0, 3)
    assert result[1].item() == 5.0


def test_writing_a_decoded_tensor_leaves_the_memfd_alone() -> None:
    writer = wire.TreeWriter(wire.FileStorage("test"))
    node = writer.encode(torch.ones(8))
    kept = os.dup(writer.finish())
    wire.decode(node, writer.finish()).zero_()
    assert torch.equal(wire.decode(node, kept), torch.ones(8))


def test_tensors_start_at_multiples_of_64() -> None:
    writer = wire.TreeWriter(wire.FileStorage("test"))
    node = writer.encode([torch.ones(3), torch.ones(5)])
    assert [item["offset"] for item in node["items"]] == [0, 64]


class Sub(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "value",
    [object(), 2**63, {1: 2}, torch.ones(2).to_sparse(), torch.ones(2).as_subclass(Sub)],
    ids=["object", "large integer", "integer key", "sparse", "subclass"],
)
def test_what_a_tree_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(wire.UnsupportedValue):
        round_trip(value)


def test_frames_carry_descriptors_and_end_with_the_peer() -> None:
    left, right = socket.socketpair()
    sender, receiver = wire.Channel(left), wire.Channel(right)
    memory = os.memfd_create("content")
    os.write(memory, b"content")
    sender.send({"op": "x", "text": "é" * 100}, [memory])
    received = receiver.receive()
    assert received is not None
    message, descriptors = received
    assert message == {"op": "x", "text": "é" * 100}
    assert os.pread(descriptors[0], 100, 0) == b"content"
    left.close()
    assert receiver.receive() is None


def test_a_tensor_with_too_few_strides_is_refused() -> None:
    writer = wire.TreeWriter(wire.FileStorage("test"))
    node = writer.encode(torch.zeros(2, 3))
    node["stride"] = [1]
    with pytest.raises(wire.ProtocolError, match="2 dimensions with 1 strides"):
        wire.decode(node, writer.finish())
