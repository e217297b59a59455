"""The role that runs a solution. It never holds the reference's source or its outputs.

{"op": "load", "contract": "modelnew" | "cuda", "source", "artifact", "entry" | null,
"init": node, "weight_seed", "weights_on": "cpu" | "cuda", "device", "memory", "schedule",
"poison"} with descriptors [init tree, report memfd]; answer {"ok": true} or {"ok": false,
"verdict", "error"}. "memory" says where the other trees lie: "host" (memfds) or "device"
(device_memory.py).

{"op": "run", "inputs": node, "outputs": [{"dtype", "shape"}] | null, "parameters": node |
null, "seed"} with descriptors [inputs tree, parameters tree if not null]; answer {"ok": true,
"outputs", "inputs_after", "aliases", "launches", "work", "findings"} with descriptors
[outputs tree, inputs tree], or {"ok": false, "verdict", "error", "findings"}.

Times, on a GPU only (timing.py): {"op": "time_begin"} is like "run" and has "fresh": [leaves of
the inputs that keys change] too; answer {"ok": true, "notes"}. {"op": "time_sample", "key"};
answer {"ok": true, "event_us", "joined_us", "host_us"}. {"op": "time_outputs"} gives what the last
call gave; answer {"ok": true, "outputs"} with the descriptor of the tree. Each may be
{"ok": false, "verdict", "error"} instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from harness import (
    cpp_extension,
    cuda_entry,
    cuda_on_cpu,
    device_kernels,
    device_memory,
    errors,
    launch_gate,
    program,
    timing,
    wire,
)

# A process that holds more than this between calls gives it back to the GPU.
_KEEP_BYTES = 1 << 30


class Device(Protocol):
    """Where candidates run."""

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy of an input on the device."""

    def adopt(self, model: torch.nn.Module) -> None:
        """Moves a module there, as its own `to` does it."""

    def empty(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        """An output, poisoned."""

    def entry(self, library: str, name: str) -> Callable[..., Any]: ...

    def loading(self, library: str) -> None:
        """A library of the solution is about to be used."""

    def stream(self) -> int: ...

    def before_run(self, shapes: list[dict[str, Any]] | None) -> None:
        """`shapes` are those of the outputs, where they are known."""

    def after_run(self) -> None: ...

    def between_runs(self) -> None:
        """Nothing of the last run is referred to any more."""

    def clock(self) -> timing.Clock:
        """UNSUPPORTED (timing.NoTimes) where there is no time to take."""

    def notes(self) -> list[str]: ...

    def launches(self) -> int | None:
        """Kernels that the solution's libraries launched: in the last call, or on a GPU since
        they were loaded (a graph that was recorded once runs again without them). None: not
        known."""

    def work(self) -> dict[str, int] | None: ...

    def findings(self, raised: bool) -> list[dict[str, Any]]:
        """What the device has to say of the last call (runtime/findings.h), which raised an
        exception or not."""


class EmulatedDevice:
    """Tensors on the CPU in guarded memory; the emulation counts and reports."""

    def __init__(self, schedule: str, poison: int, report_fd: int) -> None:
        from harness import emulation

        self._emulation = emulation
        emulation.configure(schedule, poison, report_fd)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._emulation.guarded(tensor)

    def adopt(self, model: torch.nn.Module) -> None:
        pass

    def empty(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        return self._emulation.empty_guarded(shape, dtype)

    def entry(self, library: str, name: str) -> Callable[..., Any]:
        entry: Callable[..., Any] = self._emulation.raw_entry(library, name)
        return entry

    def loading(self, library: str) -> None:
        pass

    def stream(self) -> int:
        return 0

    def before_run(self, shapes: list[dict[str, Any]] | None) -> None:
        self._emulation.reset_counters()

    def after_run(self) -> None:
        pass

    def between_runs(self) -> None:
        pass

    def clock(self) -> timing.Clock:
        raise timing.NoTimes("an emulated device has no times")

    def notes(self) -> list[str]:
        return []

    def launches(self) -> int | None:
        counted: int = self._emulation.counters()["launches"]
        return counted

    def work(self) -> dict[str, int] | None:
        return self._emulation.counters()

    def findings(self, raised: bool) -> list[dict[str, Any]]:
        return self._emulation.findings()


class CudaDevice:
    """A real GPU, the one that the environment shows. Made before the solution is imported."""

    def __init__(self, poison: int, ablated: bool) -> None:
        self._poison = poison
        self._ablated = ablated
        self._gates: list[launch_gate.LaunchGate] = []
        self.driver = device_kernels.Driver()
        torch.cuda.synchronize()  # makes the context
        self._kernels = device_kernels.load_kernels(self.driver)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to("cuda")

    def adopt(self, model: torch.nn.Module) -> None:
        model.to("cuda")

    def empty(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        tensor = torch.empty(shape, dtype=dtype, device="cuda")
        self._fill(tensor)
        return tensor

    def _fill(self, tensor: torch.Tensor) -> None:
        size = tensor.numel() * tensor.element_size()
        if size == 0:
            return
        if self._kernels is not None:
            self._kernels.poison(tensor.data_ptr(), size, self._poison)
        else:
            tensor.view(-1).view(torch.uint8).fill_(self._poison)

    def entry(self, library: str, name: str) -> Callable[..., Any]:
        self.loading(library)
        entry: Callable[..., Any] = ctypes.CDLL(library)[name]
        return entry

    def loading(self, library: str) -> None:
        gate = launch_gate.LaunchGate(library)
        if self._ablated:
            gate.close()
        self._gates.append(gate)

    def stream(self) -> int:
        return int(torch.cuda.current_stream().cuda_stream)

    def before_run(self, shapes: list[dict[str, Any]] | None) -> None:
        # torch gives a freed block of the right size to who asks next: so memory that the
        # program takes for its outputs holds the poison.
        blocks = [self.empty(s["shape"], wire.DTYPES[s["dtype"]]) for s in shapes or []]
        del blocks

    def after_run(self) -> None:
        torch.cuda.synchronize()

    def between_runs(self) -> None:
        # Others share this GPU, and torch keeps what was freed.
        if torch.cuda.memory_reserved() > _KEEP_BYTES:
            torch.cuda.empty_cache()

    def clock(self) -> timing.Clock:
        return device_kernels.CudaClock(self.driver, self._kernels)

    def notes(self) -> list[str]:
        return [] if self._kernels is not None else [device_kernels.WITHOUT_KERNELS]

    def launches(self) -> int | None:
        return launch_gate.total(self._gates)

    def work(self) -> dict[str, int] | None:
        return None

    def findings(self, raised: bool) -> list[dict[str, Any]]:
        # Of a launch that nobody asked about, the next operation of torch tells.
        codes = [gate.refused() for gate in self._gates if gate.refused()] if raised else []
        return [
            {
                "kind": "illegal_launch",
                "detail": f"a launch was refused with CUDA error {code}, and the program did not "
                "ask about it",
            }
            for code in codes
        ]


class GpuUnusable(Exception):
    """Before any program had a part in it."""


def _gpu(poison: int, ablated: bool) -> CudaDevice:
    try:
        return CudaDevice(poison, ablated)
    except Exception as error:
        if errors.verdict_of(error, "") == "DEVICE_MEMORY":
            raise
        raise GpuUnusable(str(error)) from error


class Manifest:
    """What the compile stage left in the artifact folder."""

    def __init__(self, folder: str, device: Device, device_name: str) -> None:
        self._folder = folder
        self._device = device
        self._device_name = device_name
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
            self._extensions = json.load(file)["extensions"]

    def libraries(self) -> list[str]:
        return [os.path.join(self._folder, e["library"]) for e in self._extensions]

    def module_for(self, request: cpp_extension.ExtensionRequest) -> types.ModuleType:
        """Answers load_inline and load."""
        from harness import binding

        key = request.key()
        for extension in self._extensions:
            if extension["key"] == key:
                if "error" in extension:
                    raise cpp_extension.build_error(request.name, extension["error"])
                library = os.path.join(self._folder, extension["library"])
                self._device.loading(library)
                return binding.load_extension(library, self._device_name)
        raise RuntimeError(
            f"load_inline of {request.name!r}: these sources are not the ones that the file "
            "gave when it was first imported; they must not differ from run to run"
        )


@dataclass
class _Solution:
    """A loaded candidate. `bind` makes one call ready: it gets the inputs, the shapes of the
    outputs and the parameters, and gives what is called."""

    device: Device
    bind: Callable[
        [list[Any], list[dict[str, Any]] | None, dict[str, torch.Tensor]], Callable[[], Any]
    ]
    path: str | None


class Candidate:
    def __init__(self) -> None:
        self._solution: _Solution | None = None
        self._session: timing.Session | None = None
        self._memory: device_kernels.Driver | None = None  # None: trees lie in memfds
        self._contexts = contextlib.ExitStack()

    def load(self, message: dict[str, Any], init: Any, report_fd: int) -> dict[str, Any]:
        path: str | None = None
        try:
            self._contexts.enter_context(torch.no_grad())
            device: Device
            if message["device"] == "emulated":
                self._contexts.enter_context(cuda_on_cpu.emulated())
                device = EmulatedDevice(message["schedule"], message["poison"], report_fd)
            else:
                gpu = _gpu(message["poison"], message["schedule"] == "ablated")
                device = gpu
                if message["memory"] == "device":
                    self._memory = gpu.driver
            manifest = Manifest(message["artifact"], device, message["device"])
            if message["contract"] == "cuda":
                self._solution = _load_entry(message["entry"], manifest, device, init)
                return {"ok": True}
            cpp_extension.install(manifest.module_for)
            loaded = program.load(message["source"], "solution")
            path = loaded.path
            model_class = getattr(loaded.module, "ModelNew", None)
            if model_class is None:
                return _refused("LOAD_ERROR", "the file defines no class ModelNew")
            torch.manual_seed(message["weight_seed"])
            with program.drawing_on(message["weights_on"]):
                model = model_class(*[_placed(v, device) for v in init])
            self._solution = _Solution(device, _model_binder(model, device), path)
            return {"ok": True}
        except GpuUnusable as error:
            return _refused("UNSUPPORTED", f"the GPU cannot be used: {error}")
        except program.LoadFailed as error:
            return errors.reply(program.cause(error), error.path, "LOAD_ERROR")
        except cuda_entry.EntryError as error:
            return _refused("INVALID_TASK", f"entry: {error}")
        except BaseException as error:
            default = "LOAD_ERROR" if message["contract"] == "cuda" else "RUNTIME_ERROR"
            return errors.reply(error, path, default)

    def run(
        self, message: dict[str, Any], descriptors: list[int]
    ) -> tuple[dict[str, Any], list[int]]:
        solution = self._solution
        assert solution is not None  # the daemon loads first
        device = solution.device
        trees = self._trees()
        try:
            placed, weights = self._given(message, descriptors)
            device.before_run(message["outputs"])
            call = solution.bind(placed, message["outputs"], weights)
            torch.manual_seed(message["seed"])
            outputs = call()
            device.after_run()
            reply = {
                "ok": True,
                "outputs": trees.add("outputs", outputs),
                "inputs_after": trees.add("inputs-after", placed),
                "aliases": _aliases(outputs, placed),
                "launches": device.launches(),
                "work": device.work(),
                "findings": device.findings(raised=False),
            }
            del outputs, placed, weights, call
            device.between_runs()
            return reply, trees.take()
        except cuda_entry.EntryError as error:
            return _refused("INVALID_TASK", f"entry: {error}"), []
        except wire.UnsupportedValue as error:
            text = f"forward returned {error}; return plain tensors"
            return {**_refused("RUNTIME_ERROR", text), "findings": device.findings(raised=True)}, []
        except BaseException as error:
            reply = errors.reply(error, solution.path, "RUNTIME_ERROR")
            return {**reply, "findings": device.findings(raised=True)}, []
        finally:
            trees.close()

    def time_begin(self, message: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        solution = self._solution
        assert solution is not None  # the daemon loads first
        device = solution.device
        shapes = message["outputs"]
        try:
            clock = device.clock()
            placed, weights = self._given(message, descriptors)

            def bind(copies: list[Any]) -> Callable[[], Any]:
                device.before_run(shapes)
                call = solution.bind(copies, shapes, weights)
                torch.manual_seed(message["seed"])
                return call

            self._session = timing.Session(clock, bind, placed, message["fresh"])
            return {"ok": True, "notes": device.notes()}
        except timing.NoTimes as error:
            return _refused("UNSUPPORTED", str(error))
        except BaseException as error:
            return errors.reply(error, solution.path, "RUNTIME_ERROR")

    def time_sample(self, key: int) -> dict[str, Any]:
        assert self._session is not None
        assert self._solution is not None
        try:
            return self._session.sample(key).reply()
        except BaseException as error:
            return errors.reply(error, self._solution.path, "RUNTIME_ERROR")

    def time_outputs(self) -> tuple[dict[str, Any], list[int]]:
        assert self._session is not None
        assert self._solution is not None
        try:
            trees = self._trees()
            node = trees.add("outputs", self._session.outputs())
            return {"ok": True, "outputs": node}, trees.take()
        except BaseException as error:
            return errors.reply(error, self._solution.path, "RUNTIME_ERROR"), []

    def _given(
        self, message: dict[str, Any], descriptors: list[int]
    ) -> tuple[list[Any], dict[str, torch.Tensor]]:
        """Inputs and parameters of a call, on the device. Takes over the descriptors."""
        assert self._solution is not None
        device = self._solution.device
        inputs = [_placed(v, device) for v in self._decode(message["inputs"], descriptors[0])]
        if message["parameters"] is None:
            return inputs, {}
        parameters = self._decode(message["parameters"], descriptors[1])
        return inputs, {name: device.place(value) for name, value in parameters.items()}

    def _decode(self, node: wire.Node, descriptor: int) -> Any:
        if self._memory is None:
            return wire.decode(node, descriptor)
        return device_memory.decode(self._memory, node, descriptor)

    def _trees(self) -> wire.Trees:
        memory = self._memory
        # The device is looked up here: one that is emulated hides where tensors are.
        if memory is None:
            return wire.Trees(wire.FileStorage, lambda tensor: str(tensor.device))
        return wire.Trees(
            lambda name: device_memory.DeviceStorage(memory), lambda tensor: str(tensor.device)
        )


def _placed(value: Any, device: Device) -> Any:
    return device.place(value) if isinstance(value, torch.Tensor) else value


def _refused(verdict: str, text: str) -> dict[str, Any]:
    return {"ok": False, "verdict": verdict, "error": text}


def _model_binder(model: Any, device: Device) -> Callable[..., Callable[[], Any]]:
    """Each run starts from the state that the constructor left, whatever runs before it
    did to buffers, so that the order of runs does not matter."""
    if isinstance(model, torch.nn.Module):
        device.adopt(model)
        for tensor in [*model.parameters(), *model.buffers()]:
            if tensor.numel():
                tensor.data = device.place(tensor.data)
        state = [(tensor, tensor.clone()) for tensor in model.buffers()]
    else:
        state = []

    def bind(inputs: list[Any], _shapes: object, _parameters: object) -> Callable[[], Any]:
        for buffer, value in state:
            buffer.copy_(value)
        return lambda: model(*inputs)

    return bind


def _load_entry(
    description: dict[str, Any], manifest: Manifest, device: Device, init: list[Any]
) -> _Solution:
    entry = cuda_entry.parse(description["prototype"], description["bindings"])
    function = device.entry(manifest.libraries()[0], entry.name)

    def bind(
        inputs: list[Any],
        shapes: list[dict[str, Any]] | None,
        parameters: dict[str, torch.Tensor],
    ) -> Callable[[], Any]:
        outputs = [device.empty(s["shape"], wire.DTYPES[s["dtype"]]) for s in shapes or []]
        values = cuda_entry.Values(inputs, outputs, init, parameters)
        passed = cuda_entry.arguments(entry, values, device.stream())

        def call() -> Any:
            cuda_entry.call(function, entry, passed)
            return outputs[0] if len(outputs) == 1 else tuple(outputs)

        return call

    return _Solution(device, bind, None)


def _aliases(outputs: Any, inputs: Any) -> list[dict[str, int]]:
    """Outputs that share memory with an input (or an earlier output, "output")."""

    def memory(tensor: torch.Tensor) -> int:
        return tensor.untyped_storage().data_ptr()

    found = []
    results = list(timing.leaves(outputs))
    for index, tensor in enumerate(results):
        if tensor.numel() == 0:
            continue
        for other, given in enumerate(timing.leaves(inputs)):
            if memory(given) == memory(tensor):
                found.append({"index": index, "input": other})
        for other, earlier in enumerate(results[:index]):
            if memory(earlier) == memory(tensor):
                found.append({"index": index, "output": other})
    return found


def serve(channel: wire.Channel) -> None:
    candidate = Candidate()
    while (received := channel.receive()) is not None:
        message, descriptors = received
        op = message["op"]
        answered: list[int] = []
        if op == "load":
            init = wire.decode(message["init"], descriptors[0])
            reply = candidate.load(message, init, descriptors[1])
        elif op == "time_sample":
            reply = candidate.time_sample(message["key"])
        elif op == "time_outputs":
            reply, answered = candidate.time_outputs()
        elif op == "time_begin":
            reply = candidate.time_begin(message, descriptors)
        else:
            reply, answered = candidate.run(message, descriptors)
        channel.send(reply, answered)
        for descriptor in answered:
            os.close(descriptor)
