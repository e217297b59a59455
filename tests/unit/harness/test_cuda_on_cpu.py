from collections.abc import Iterator

import pytest
import torch
from harness import cuda_on_cpu


@pytest.fixture
def emulated() -> Iterator[None]:
    with cuda_on_cpu.emulated():
        yield


@pytest.mark.usefixtures("emulated")
class TestInside:
    def test_tensors_made_on_cuda_hold_values(self) -> None:
        for tensor in (
            torch.ones(3, device="cuda"),
            torch.ones(3, device=torch.device("cuda", 0)),
            torch.ones(3).cuda(),
            torch.ones(3).to("cuda:0"),
            torch.ones(3).to(device="cuda", dtype=torch.float32),
            torch.tensor([1.0, 1.0, 1.0], device="cuda"),
            torch.zeros(3, pin_memory=True) + 1,
        ):
            assert tensor.sum().item() == 3
            assert tensor.is_cuda
            assert str(tensor.device) == "cuda:0"
            assert tensor.device.type == "cuda"

    def test_a_device_taken_from_a_tensor_can_be_used(self) -> None:
        x = torch.ones(3)
        assert torch.empty_like(x, device=x.device).shape == (3,)
        assert torch.arange(4, device=x.device).tolist() == [0, 1, 2, 3]

    def test_modules_move_and_run(self) -> None:
        model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LSTM(2, 4)).cuda()
        model.to(torch.device("cuda"))
        assert model(torch.ones(5, 3).cuda())[0].shape == (5, 4)

    def test_the_default_device_may_be_cuda(self) -> None:
        with torch.device("cuda"):
            assert torch.rand(2).shape == (2,)

    def test_generators_streams_and_events_work(self) -> None:
        generator = torch.Generator(device="cuda").manual_seed(3)
        first = torch.rand(2, generator=generator, device="cuda")
        again = torch.rand(2, generator=generator.manual_seed(3))
        assert torch.equal(first, again)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):
            start.record()
            end.record()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        assert start.elapsed_time(end) >= 0

    def test_the_gpu_describes_itself(self) -> None:
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_properties(0).multi_processor_count > 0

    def test_graphs_say_that_they_are_not_supported(self) -> None:
        with pytest.raises(RuntimeError, match="CUDAGraph is not supported"):
            torch.cuda.CUDAGraph()


def test_nothing_stays_behind() -> None:
    before = (torch.cuda.is_available, torch.Generator, torch.backends.cudnn.is_acceptable)
    with cuda_on_cpu.emulated():
        assert torch.cuda.is_available is not before[0]
    assert (torch.cuda.is_available, torch.Generator, torch.backends.cudnn.is_acceptable) == before
    assert str(torch.ones(1).device) == "cpu"


def test_torch_compiles_parts_can_be_imported() -> None:
    """As libraries of models do when they are imported: it makes a table of torch's functions."""
    with cuda_on_cpu.emulated():
        from torch._dynamo import trace_rules

        assert trace_rules.get_torch_obj_rule_map()
