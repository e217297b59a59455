"""Our own kernels and the driver's interface, over a stand-in for libcuda."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from driver_stand_in import StandIn
from harness import device_kernels


def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> device_kernels.Kernels:
    image = tmp_path / "measure.fatbin"
    image.write_bytes(b"image\0with zeros")
    monkeypatch.setenv(device_kernels.KERNELS_VARIABLE, str(image))
    loaded = device_kernels.load_kernels(device_kernels.Driver())
    assert loaded is not None
    return loaded


def test_poison_fills_what_it_is_given_and_nothing_else(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = kernels(tmp_path, monkeypatch)
    memory = torch.zeros(5_000_000, dtype=torch.uint8)
    loaded.poison(memory.data_ptr() + 3, 4_900_001, 0xFF)
    assert int(memory[:3].sum()) == 0
    assert bool((memory[3:4_900_004] == 0xFF).all())
    assert int(memory[4_900_004:].sum()) == 0


def test_evict_reads_all_and_writes_nothing(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = kernels(tmp_path, monkeypatch)
    buffer = torch.zeros(1 << 20, dtype=torch.uint8)
    sink = torch.zeros(4, dtype=torch.uint8)
    loaded.evict(buffer, sink)
    assert int(sink.sum()) == 0
    # That every word was read shows in what a single bit does.
    for place in (0, 524_301, (1 << 20) - 1):
        buffer[place] = 1
        loaded.evict(buffer, sink)
        assert int(sink.sum()) > 0
        buffer[place] = 0
        sink.zero_()


def test_the_clock_takes_back_persisting_cache_and_empties_the_rest(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = device_kernels.CudaClock(device_kernels.Driver(), kernels(tmp_path, monkeypatch))
    assert clock.l2_bytes == 1 << 20
    clock.empty_cache()
    words = 4 * (1 << 20) // 16
    assert stand_in.log() == ["limit 6000", "reset 0", f"evict {words}"]


def test_events_are_recorded_on_the_current_stream_in_microseconds(stand_in: StandIn) -> None:
    clock = device_kernels.CudaClock(device_kernels.Driver(), None)
    clock.record(0)
    clock.record(1)
    clock.join()
    clock.record(2)
    assert clock.elapsed_us(0, 1) == 250
    assert clock.elapsed_us(0, 2) == 1500
    assert stand_in.log() == ["record on 77"] * 3


def test_an_error_of_the_driver_names_its_call(stand_in: StandIn) -> None:
    clock = device_kernels.CudaClock(device_kernels.Driver(), None)
    stand_in.library.standin_fail(700)
    with pytest.raises(device_kernels.DriverError, match="cuEventRecord: CUDA driver error 700"):
        clock.record(0)


def test_without_a_fat_binary_there_are_no_kernels(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(device_kernels.KERNELS_VARIABLE, raising=False)
    assert device_kernels.load_kernels(device_kernels.Driver()) is None
