"""The role that runs a task's reference program. Untrusted like any other program.

{"op": "load", "source", "device", "memory", "scale", "scaled_shapes", "weight_seed", "weights_on":
"cpu" | "cuda" | "auto" (the GPU where constructing the model on the CPU takes long)}; answer {"ok":
true, "weights_on": "cpu" | "cuda", "init": node, "shapes": {name: value} (those reduced), "sizes":
{name: value} (all, as the source has them), "families": [...], "notes": [...], "multiply_adds" (of
one call), "parameter_bytes", "case_bytes" (of inputs and outputs)} with descriptors [init tree], or
{"ok": false, "verdict": "INVALID_TASK" | "UNSUPPORTED" | "DEVICE_MEMORY", "error"}. "memory" says
where the trees of cases lie: "host" (memfds) or "device" (device_memory.py).

{"op": "case", "seed", "family", "weight_seed"? (of a Model made for this case alone), "key"?,
"want_parameters"?, "float64"? (unless "always": only where a run in it was seen to be quick),
"max_bytes"? (of one tree)}; answer {"ok": true, "inputs", "expected",
"expected64" | null, "parameters" | null, "reduction", "fresh", "notes"} with
descriptors [inputs tree, expected tree, expected64 tree if not null, parameters tree if not
null]. "fresh" are the leaves of the inputs that a key may change (timing.changeable); with "key"
they are changed as in a timed call.

Times, on a GPU only (timing.py): {"op": "time_begin", "seed", "compiled": bool}; answer
{"ok": true, "launch_us" (time of a call that does almost nothing), "tf32": {"matmul", "cudnn"},
"notes"}. {"op": "time_sample", "key"}; answer {"ok": true, "event_us", "joined_us", "host_us"}.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness import (
    cuda_on_cpu,
    device_kernels,
    device_memory,
    errors,
    families,
    measure,
    program,
    scaling,
    shapes,
    timing,
    wire,
)

# What a reduced program may cost on the emulated device, which does some 0.2e9
# multiply-adds a second and core: a fraction of a second per run.
MAX_MULTIPLY_ADDS = 24_000_000
MAX_ELEMENTS = 1_000_000
# What it may cost where nothing smaller runs.
HARD_MULTIPLY_ADDS = 12_000_000_000
HARD_ELEMENTS = 200_000_000
# Time to look for shapes.
SEARCH_SECONDS = 40.0

# Longer runs in float64 on a GPU are for the cases that need them: GPUs have few units for it, and
# libraries few fast kernels.
QUICK_SECONDS = 0.05

# A constructor that takes longer draws its weights on the GPU: the CPU's generator gives some 10^8
# numbers a second, and each process of an evaluation constructs its model.
SLOW_CONSTRUCTION_SECONDS = 0.5

_NEVER = float("inf")

# Calls that tell what launching alone takes.
_LAUNCH_SAMPLES = 15

# Errors that no other shape will cure.
_NOT_SHAPES = (NameError, ImportError, SyntaxError, AttributeError, NotImplementedError)


class InvalidTask(Exception):
    pass


class Unsupported(Exception):
    pass


@dataclass
class Instance:
    """The program at certain shapes, constructed."""

    loaded: program.Program
    init: list[Any]
    model: torch.nn.Module
    weights_on: str  # "cpu" or "cuda": whose generator gave them
    cost: measure.Measure
    case_bytes: int


def _sequence(value: Any, function: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise InvalidTask(f"{function}() returned {type(value).__name__}, not a list")
    return list(value)


class Reference:
    def __init__(self) -> None:
        self._contexts = contextlib.ExitStack()
        self._instance: Instance | None = None
        self._model64: torch.nn.Module | None = None
        self._float64_seconds = _NEVER  # of the quickest run
        self._quick = _NEVER
        self._buffers: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._device = "emulated"
        self._memory = "host"
        self._weights_on = "cpu"
        self._path: str | None = None
        self._driver: device_kernels.Driver | None = None
        self._session: timing.Session | None = None

    # Loading

    def load(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        self._device = message["device"]
        self._memory = message["memory"]
        self._contexts.enter_context(torch.no_grad())
        if self._device == "emulated":
            self._contexts.enter_context(cuda_on_cpu.emulated())
        else:
            self._driver = device_kernels.Driver()
            self._quick = QUICK_SECONDS
            self._weights_on = message["weights_on"]
        notes: list[str] = []
        try:
            sizes = shapes.Sizes(message["source"])
            instance, changed = self._choose(message, sizes, notes)
            self._instance = instance
            self._buffers = [(b, b.clone()) for b in instance.model.buffers()]
            writer = wire.TreeWriter(wire.FileStorage("init"))
            node = writer.encode(instance.init)
            if instance.weights_on != "cpu":
                notes.append("weights are drawn on the GPU, since the CPU takes long for them")
            reply = {
                "ok": True,
                "init": node,
                "shapes": changed,
                "sizes": sizes.values(),
                "families": list(families.NAMES),
                "notes": notes,
                "multiply_adds": instance.cost.multiply_adds,
                "case_bytes": instance.case_bytes,
                "weights_on": instance.weights_on,
                "parameter_bytes": sum(
                    tensor.numel() * tensor.element_size()
                    for tensor in instance.model.state_dict().values()
                    if isinstance(tensor, torch.Tensor)
                ),
            }
            self._give_memory_back()
            return reply, [writer.finish()]
        except InvalidTask as error:
            return _refused("INVALID_TASK", str(error)), []
        except Unsupported as error:
            return _refused("UNSUPPORTED", str(error)), []
        except wire.UnsupportedValue as error:
            return _refused("UNSUPPORTED", f"get_init_inputs() gives {error}"), []
        except BaseException as error:
            return self._failed(error), []

    def _choose(
        self, message: dict[str, Any], sizes: shapes.Sizes, notes: list[str]
    ) -> tuple[Instance, dict[str, int]]:
        weight_seed = message["weight_seed"]
        scale = message["scale"]
        if scale >= 1.0:
            return self._construct(message["source"], weight_seed), {}
        own = sizes.values()
        fixed = {
            sizes.aliases.get(name, name): int(value)
            for name, value in message["scaled_shapes"].items()
        }
        unknown = sorted(set(fixed) - set(own))
        if unknown:
            raise InvalidTask(
                f"scaled_shapes names {', '.join(unknown)}: no integer of that name is assigned "
                "at module level"
            )

        # What fails before any shape is used is no matter of shapes.
        self._path = program.load(message["source"], "reference").path

        def attempt(values: Mapping[str, int]) -> Instance:
            return self._construct(sizes.source_with(values), weight_seed)

        return search(attempt, own, scale, fixed, notes)

    def _construct(self, source: str, weight_seed: int) -> Instance:
        """Loads, constructs and runs once."""
        loaded = program.load(source, "reference")
        self._path = loaded.path
        module = loaded.module
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not hasattr(module, name):
                raise InvalidTask(f"the reference program defines no {name}")
        init = _sequence(module.get_init_inputs(), "get_init_inputs")
        model, weights_on = self._first_model(module, init, weight_seed)
        before = [(b, b.clone()) for b in model.buffers()]
        torch.manual_seed(0)
        inputs = self._inputs(module)
        with measure.Measure() as cost:
            result = model(*inputs)
        cost.elements += sum(tensor.numel() for tensor in timing.leaves(inputs))
        _restore(before)
        if next(timing.leaves(result), None) is None:
            raise InvalidTask("forward returned no tensor")
        case_bytes = _bytes(inputs) + _bytes(result)
        return Instance(loaded, init, model, weights_on, cost, case_bytes)

    def _first_model(
        self, module: Any, init: list[Any], weight_seed: int
    ) -> tuple[torch.nn.Module, str]:
        """With what its weights are drawn on."""
        if self._weights_on != "auto":
            return self._model(module, init, weight_seed, self._weights_on), self._weights_on
        started = time.monotonic()
        model = self._model(module, init, weight_seed, "cpu")
        if time.monotonic() - started > SLOW_CONSTRUCTION_SECONDS:
            try:
                return self._model(module, init, weight_seed, "cuda"), "cuda"
            except Exception as error:  # it mixes in what only a CPU has
                if errors.verdict_of(error, "") == "DEVICE_MEMORY":
                    raise
        return model, "cpu"

    def _model(
        self, module: Any, init: list[Any], weight_seed: int, weights_on: str
    ) -> torch.nn.Module:
        torch.manual_seed(weight_seed)
        with program.drawing_on(weights_on):
            model = module.Model(*copy.deepcopy(init))
        if not isinstance(model, torch.nn.Module):
            raise InvalidTask("Model is no torch.nn.Module")
        if self._device == "cuda":
            model.cuda()
        return model

    @contextlib.contextmanager
    def _weights(self, weight_seed: int | None) -> Iterator[None]:
        """Inside, the program has the weights that `weight_seed` gives; None leaves its own."""
        if weight_seed is None:
            yield
            return
        assert self._instance is not None
        kept = self._instance, self._model64, self._buffers
        instance = self._instance
        module, on = instance.loaded.module, instance.weights_on
        model = self._model(module, instance.init, weight_seed, on)
        self._instance = replace(instance, model=model)
        self._model64 = None
        self._buffers = [(b, b.clone()) for b in model.buffers()]
        try:
            yield
        finally:
            self._instance, self._model64, self._buffers = kept

    def _inputs(self, module: Any) -> list[Any]:
        if self._device != "cuda":
            return _sequence(module.get_inputs(), "get_inputs")
        # Made where they are used: the CPU's generator takes seconds for large ones.
        state = torch.get_rng_state(), torch.cuda.get_rng_state()
        try:
            with torch.device("cuda"):
                inputs = module.get_inputs()
        except (TypeError, RuntimeError) as error:
            if errors.verdict_of(error, "") == "DEVICE_MEMORY":
                raise
            # It mixes in what only a CPU has (NumPy, a generator of its own).
            torch.set_rng_state(state[0])
            torch.cuda.set_rng_state(state[1])
            inputs = module.get_inputs()
        return [_on_gpu(value) for value in _sequence(inputs, "get_inputs")]

    def _storage(self, name: str) -> wire.Storage:
        """Of a tree of a case."""
        if self._memory == "host":
            return wire.FileStorage(name)
        assert self._driver is not None
        return device_memory.DeviceStorage(self._driver)

    def _is_slow_in_float64(self) -> bool:
        return self._quick < self._float64_seconds < _NEVER

    def _finish_work(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()

    def _give_memory_back(self) -> None:
        # Others share the GPU, and torch keeps what was freed.
        if self._device == "cuda":
            torch.cuda.empty_cache()

    def _failed(self, error: BaseException) -> dict[str, Any]:
        path = self._path
        if isinstance(error, program.LoadFailed):
            path, error = error.path, program.cause(error)
        if errors.verdict_of(error, "") == "DEVICE_MEMORY":
            return _refused("DEVICE_MEMORY", errors.describe(error, path))
        verdict = "UNSUPPORTED" if isinstance(error, ImportError) else "INVALID_TASK"
        return _refused(
            verdict, errors.describe(error, path).replace("solution.py", "reference.py")
        )

    # Cases

    def case(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        try:
            with self._weights(message.get("weight_seed")):
                return self._case(message)
        except BaseException as error:
            return self._failed(error), []

    def _case(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        instance = self._instance
        assert instance is not None  # the daemon loads first
        seed = message["seed"]
        notes: list[str] = []
        trees = wire.Trees(self._storage)
        try:
            torch.manual_seed(seed)
            inputs = self._inputs(instance.loaded.module)
            inputs = families.apply(message["family"], inputs, seed)
            fresh = timing.changeable(inputs)
            if message.get("key") is not None:
                inputs = timing.changed(inputs, fresh, message["key"])
            most = message.get("max_bytes", sys.maxsize)
            _check_size(inputs, "inputs", most)
            reply: dict[str, Any] = {"ok": True, "notes": notes}
            reply["inputs"] = trees.add("inputs", inputs)
            _restore(self._buffers)
            torch.manual_seed(seed)
            expected = instance.model(*copy.deepcopy(inputs))
            self._finish_work()
            _check_size(expected, "outputs", most)
            reply["expected"] = trees.add("expected", expected)
            reply["expected64"] = None
            expected64 = None
            if _bytes(expected, as_float64=True) > most:
                notes.append("no expected values in float64: they are too large")
            elif (
                message.get("float64") != "always" and self._quick < self._float64_seconds < _NEVER
            ):
                notes.append("expected values in float64 for the public seeds only: it is slow")
            else:
                started = time.monotonic()
                expected64 = self._run_in_float64(inputs, expected, seed, notes)
                self._finish_work()
                # The quickest: others may use the device too, and the first run loads libraries.
                self._float64_seconds = min(self._float64_seconds, time.monotonic() - started)
            if expected64 is not None:
                reply["expected64"] = trees.add("expected64", expected64)
            reply["parameters"] = None
            if message.get("want_parameters"):
                _restore(self._buffers)
                reply["parameters"] = trees.add("parameters", dict(instance.model.state_dict()))
            reply["reduction"] = instance.cost.reduction
            reply["fresh"] = fresh
            del inputs, expected, expected64
            self._give_memory_back()
            return reply, trees.take()
        except wire.UnsupportedValue as error:
            return _refused("UNSUPPORTED", f"the reference program gives {error}"), []
        except Unsupported as error:
            return _refused("UNSUPPORTED", str(error)), []
        except BaseException as error:
            return self._failed(error), []
        finally:
            trees.close()

    # Times

    def time_begin(self, message: dict[str, Any]) -> dict[str, Any]:
        instance = self._instance
        assert instance is not None  # the daemon loads first
        if self._driver is None:
            return _refused("UNSUPPORTED", "an emulated device has no times")
        seed = message["seed"]
        try:
            self._session = None
            self._model64 = None  # its memory is wanted
            self._give_memory_back()
            torch.manual_seed(seed)
            inputs = self._inputs(instance.loaded.module)
            kernels = device_kernels.load_kernels(self._driver)
            clock = device_kernels.CudaClock(self._driver, kernels)
            model: Any = instance.model
            if message["compiled"]:
                # One process with one thread, and nobody's home.
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = "/tmp/inductor"
                os.environ["TRITON_CACHE_DIR"] = "/tmp/triton"
                os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
                model = torch.compile(instance.model)

            def bind(copies: list[Any]) -> Callable[[], Any]:
                _restore(self._buffers)
                torch.manual_seed(seed)
                return lambda: model(*copies)

            fresh = timing.changeable(inputs)
            self._session = timing.Session(clock, bind, inputs, fresh)
            probe = torch.zeros(1, device="cuda")
            empty = timing.Session(clock, lambda _: probe.zero_, [], [])
            launches = sorted(empty.sample(0).event_us for _ in range(_LAUNCH_SAMPLES))
            return {
                "ok": True,
                "launch_us": launches[len(launches) // 2],
                "tf32": {
                    "matmul": bool(torch.backends.cuda.matmul.allow_tf32),
                    "cudnn": bool(torch.backends.cudnn.allow_tf32),
                },
                "notes": [] if kernels is not None else [device_kernels.WITHOUT_KERNELS],
            }
        except BaseException as error:
            return self._failed(error)

    def time_sample(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._session is not None
        try:
            return self._session.sample(message["key"]).reply()
        except BaseException as error:
            return self._failed(error)

    def _run_in_float64(
        self, inputs: list[Any], expected: Any, seed: int, notes: list[str]
    ) -> Any | None:
        """None, with a note, where the program cannot be run so."""
        assert self._instance is not None
        _restore(self._buffers)
        try:
            if self._model64 is None:
                self._model64 = copy.deepcopy(self._instance.model).double()
            model = self._model64
            if len(list(model.buffers())) != len(self._buffers):
                raise RuntimeError("a call has changed how many buffers the model has")
            for (_, value), buffer in zip(self._buffers, model.buffers()):
                buffer.copy_(value)
            torch.manual_seed(seed)
            torch.set_default_dtype(torch.float64)
            result = model(*_in_float64(copy.deepcopy(inputs)))
        except Exception as error:
            last_line = str(error).strip().splitlines()[:1]
            notes.append(f"no expected values in float64: {''.join(last_line)[:200]}")
            return None
        finally:
            torch.set_default_dtype(torch.float32)
        pairs = zip(timing.leaves(expected), timing.leaves(result))
        if any(e.is_floating_point() and r.dtype is not torch.float64 for e, r in pairs):
            notes.append("no expected values in float64: the program rounds to another type")
            return None
        return result


def search(
    attempt: Any,
    own: Mapping[str, int],
    scale: float,
    fixed: Mapping[str, int],
    notes: list[str],
) -> tuple[Instance, dict[str, int]]:
    """The largest shapes within the budget of the first kind of reduction that runs.

    `attempt` constructs and runs the program at given sizes. Raises Unsupported, or what
    the program raised when no other shape would cure it.
    """
    started = time.monotonic()
    fallback: tuple[Instance, scaling.Rung] | None = None
    too_large: str | None = None
    last_error: BaseException | None = None
    first_rungs: list[scaling.Rung] = [scaling.Rung("given sizes", 0, fixed)] if fixed else []
    ladders: Iterator[list[scaling.Rung]] = scaling.ladder(own, scale, fixed)
    for rungs in ([first_rungs] if fixed else []) + list(ladders):
        best: tuple[Instance, scaling.Rung] | None = None
        failures = 0
        for rung in rungs:
            if time.monotonic() - started > SEARCH_SECONDS:
                break
            try:
                instance = attempt(rung.changed)
            except (InvalidTask, wire.UnsupportedValue):
                raise
            except BaseException as error:
                cause = program.cause(error) if isinstance(error, program.LoadFailed) else error
                if isinstance(cause, _NOT_SHAPES):
                    raise
                last_error = cause
                failures += 1
                # Nets with many strides want 64 or more; beyond that it is not the extent.
                if best is not None or failures > 4:
                    break
                continue
            cost = instance.cost
            if cost.multiply_adds > HARD_MULTIPLY_ADDS or cost.elements > HARD_ELEMENTS:
                too_large = f"with {rung.kind} reduced a run still takes {_words(cost)}"
                break
            if cost.multiply_adds > MAX_MULTIPLY_ADDS or cost.elements > MAX_ELEMENTS:
                if fallback is None or _effort(cost) < _effort(fallback[0].cost):
                    fallback = (instance, rung)
                break
            best = (instance, rung)
        if best is not None:
            return best[0], dict(best[1].changed)
        if rungs[0].kind == scaling.THOROUGH and (fallback is not None or too_large is not None):
            break  # every other kind reduces less
    if fallback is not None:
        instance, rung = fallback
        notes.append(
            f"the smallest shapes that run ({rung.kind} reduced) still take "
            f"{_words(instance.cost)} a run"
        )
        return instance, dict(rung.changed)
    reason = too_large or "nothing in it looks like a size"
    if too_large is None and last_error is not None:
        reason = errors.describe(last_error, None)
    raise Unsupported(f"the shapes of the reference program cannot be reduced: {reason}")


def _words(cost: measure.Measure) -> str:
    return f"{cost.multiply_adds:.2g} multiply-adds and {cost.elements:.2g} elements"


def _effort(cost: measure.Measure) -> int:
    # An element costs a thread of its own, some tens of multiply-adds.
    return cost.multiply_adds + 32 * cost.elements


def _restore(buffers: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for buffer, value in buffers:
        buffer.copy_(value)


def _in_float64(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.is_complex():
            return value.to(torch.complex128)
        return value.double() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(_in_float64(item) for item in value)
    if isinstance(value, dict):
        return {key: _in_float64(item) for key, item in value.items()}
    return value


def _bytes(value: Any, as_float64: bool = False) -> int:
    return sum(
        tensor.numel() * (8 if as_float64 else tensor.element_size())
        for tensor in timing.leaves(value)
    )


def _check_size(value: Any, what: str, most: int) -> None:
    """The daemon takes no larger trees."""
    if _bytes(value) > most:
        raise Unsupported(
            f"the task's {what} take {_bytes(value)} bytes, this worker takes up to {most}; "
            "smaller shapes (scale) can be judged"
        )


def _on_gpu(value: Any) -> Any:
    """With every tensor on the GPU."""
    if isinstance(value, torch.Tensor):
        return value.cuda()
    if isinstance(value, (list, tuple)):
        return type(value)(_on_gpu(item) for item in value)
    if isinstance(value, dict):
        return {key: _on_gpu(item) for key, item in value.items()}
    return value


def _refused(verdict: str, text: str) -> dict[str, Any]:
    return {"ok": False, "verdict": verdict, "error": text}


def serve(channel: wire.Channel) -> None:
    reference = Reference()
    while (received := channel.receive()) is not None:
        message, _ = received
        descriptors: list[int] = []
        op = message["op"]
        if op == "load":
            reply, descriptors = reference.load(message)
        elif op == "case":
            reply, descriptors = reference.case(message)
        elif op == "time_begin":
            reply = reference.time_begin(message)
        else:
            reply = reference.time_sample(message)
        channel.send(reply, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
