"""The Python side of the light binding, over real torch.

With the device "cuda" tensors are taken as they are, so CPU tensors do. The tests on the emulated
device need its runtime (KMOSAIC_EMULATION_RUNTIME) and skip without it.
"""

import gc
import os
import types

import pytest
import torch
from harness import binding, emulation


@pytest.fixture(scope="session")
def plain(extension_path: str) -> types.ModuleType:
    return binding.load_extension(extension_path, "cuda")


def test_the_same_tensor_comes_back_as_the_same_object(plain: types.ModuleType) -> None:
    x = torch.randn(3, 4)
    assert plain.same(x) is x


def test_shape_strides_and_type_are_seen(plain: types.ModuleType) -> None:
    x = torch.zeros(2, 3, 4, dtype=torch.int64).transpose(0, 2)
    assert plain.about(x) == "[4, 3, 2][1, 4, 12]Longcpu0"


def test_operations_are_torchs(plain: types.ModuleType) -> None:
    x = torch.randn(3, 4)
    flat, filled, total, values, indices, turned, joined, first = plain.work(x)
    assert torch.equal(flat, x.flatten())
    assert flat.data_ptr() == x.data_ptr()
    assert torch.equal(filled, torch.full((2, 4), 1.5, dtype=torch.float64))
    assert torch.equal(total, (x * 2 + 1).sum(0, keepdim=True))
    assert torch.equal(values, x.max(1).values)
    assert torch.equal(indices, x.max(1).indices)
    assert torch.equal(turned, x.t())
    assert turned.is_contiguous()
    assert torch.equal(joined, torch.cat([x, x], 1))
    assert torch.equal(first, x[:1])
    assert plain.item(x) == pytest.approx(x.sum().item())


def test_numbers_and_texts_convert(plain: types.ModuleType) -> None:
    assert plain.plain(1, False, "a") == (2, True, "a!")
    x = torch.zeros(2)
    plain.fill(x)
    assert x.tolist() == [3, 3]
    plain.fill(value=5, x=x)
    assert x.tolist() == [5, 5]


def test_wrong_arguments_are_a_type_error_with_the_signature(plain: types.ModuleType) -> None:
    for arguments in [(), (1,), (None,), (torch.zeros(1), "a"), (torch.zeros(1), 1.0, 2)]:
        with pytest.raises(TypeError, match=r"fill\(\): incompatible function arguments"):
            plain.fill(*arguments)
    with pytest.raises(TypeError, match=r"arg0: int, arg1: bool, arg2: str"):
        plain.plain(1.5, True, "a")
    with pytest.raises(TypeError, match="nowhere"):
        plain.fill(torch.zeros(1), nowhere=1)


def test_an_error_of_torch_keeps_its_type_and_text(plain: types.ModuleType) -> None:
    with pytest.raises(RuntimeError, match="shape '\\[7, 7\\]' is invalid for input of size 4"):
        plain.bad_view(torch.zeros(4))


def test_a_tensor_that_the_extension_keeps_lives_on(plain: types.ModuleType) -> None:
    x = torch.randn(5)
    expected = x.clone()
    plain.keep(x)
    del x
    gc.collect()
    assert torch.equal(plain.give_back(), expected)


def test_no_reference_is_left_behind(plain: types.ModuleType) -> None:
    plain.keep(torch.zeros(1))
    held = len(binding._bindings["cuda"]._entries)
    for _ in range(20):
        plain.work(torch.randn(3, 4))
        with pytest.raises(RuntimeError):
            plain.bad_view(torch.zeros(4))
        with pytest.raises(TypeError):
            plain.fill(torch.zeros(1), "a")
    assert len(binding._bindings["cuda"]._entries) == held


def test_what_is_no_extension_is_an_import_error(tmp_path: object) -> None:
    with pytest.raises(ImportError):
        binding.load_extension(f"{tmp_path}/none.so", "cuda")
    with pytest.raises(ImportError):
        binding.load_extension("libm.so.6", "cuda")
    with pytest.raises(ValueError, match="emulated or cuda"):
        binding.load_extension("x.so", "tpu")


@pytest.fixture
def emulated(extension_path: str) -> types.ModuleType:
    if not os.environ.get(emulation.RUNTIME_VARIABLE):
        pytest.skip(f"{emulation.RUNTIME_VARIABLE} does not name the emulation runtime")
    emulation.ensure_runtime()
    emulation.configure("forward", 0xFF, -1)
    return binding.load_extension(extension_path, "emulated")


def test_every_tensor_is_on_the_device_unless_moved(emulated: types.ModuleType) -> None:
    assert emulated.about(torch.zeros(2)) == "[2][1]Floatcuda:01"
    assert emulated.where(torch.zeros(2)) == "cpucpu"


def test_writes_reach_the_callers_tensor(emulated: types.ModuleType) -> None:
    base = torch.zeros(4, 3)
    emulated.fill(base[1:3].view(-1), 2.0)
    assert base.tolist() == [[0] * 3, [2] * 3, [2] * 3, [0] * 3]


def test_results_are_poisoned_and_guarded(emulated: types.ModuleType) -> None:
    x = emulation.guarded(torch.randn(3, 4))
    results = emulated.work(x)
    assert torch.equal(results[0], x.flatten())
    assert results[0].data_ptr() == x.data_ptr()
    assert all(emulation.is_guarded(r.data_ptr()) for r in results)
    empty = emulation.empty_guarded((2, 2), torch.float32)
    assert torch.isnan(empty).all()


def test_guarded_copies_keep_shape_strides_and_values() -> None:
    if not os.environ.get(emulation.RUNTIME_VARIABLE):
        pytest.skip(f"{emulation.RUNTIME_VARIABLE} does not name the emulation runtime")
    for x in (
        torch.randn(3, 4).t(),
        torch.tensor(2.5),
        torch.zeros(0, 3),
        torch.arange(6, dtype=torch.bfloat16).view(2, 3)[:, 1:],
        torch.tensor([True, False]),
        torch.ones(1, 3).expand(4, 3),
    ):
        copy = emulation.guarded(x)
        assert copy.shape == x.shape
        assert copy.stride() == x.stride()
        assert torch.equal(copy, x)


def test_memory_is_given_back() -> None:
    if not os.environ.get(emulation.RUNTIME_VARIABLE):
        pytest.skip(f"{emulation.RUNTIME_VARIABLE} does not name the emulation runtime")
    gc.collect()
    tensor = emulation.empty_guarded((1000,), torch.float32)
    address = tensor.data_ptr()
    assert emulation.is_guarded(address)
    view = tensor[10:]
    del tensor
    assert emulation.is_guarded(address)
    del view
    gc.collect()
    assert not emulation.is_guarded(address)
