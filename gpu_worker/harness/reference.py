"""The role that runs a task's reference program. Untrusted like any other program.

{"op": "load", "source", "device", "scale", "scaled_shapes", "weight_seed"}; answer
{"ok": true, "init": node, "shapes": {name: value} (those reduced), "sizes": {name: value}
(all, as the source has them), "families": [...], "notes": [...]} with
descriptors [init tree], or {"ok": false, "verdict": "INVALID_TASK" | "UNSUPPORTED", "error"}.

{"op": "case", "seed", "family", "want_parameters"?}; answer {"ok": true, "inputs",
"expected", "expected64" | null, "parameters" | null, "reduction", "notes"} with descriptors
[inputs tree, expected tree, expected64 tree if not null, parameters tree if not null].
"""

from __future__ import annotations

import contextlib
import copy
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from harness import cuda_on_cpu, errors, families, measure, program, scaling, shapes, wire

# What a reduced program may cost on the emulated device, which does some 0.2e9
# multiply-adds a second and core: a fraction of a second per run.
MAX_MULTIPLY_ADDS = 24_000_000
MAX_ELEMENTS = 1_000_000
# What it may cost where nothing smaller runs.
HARD_MULTIPLY_ADDS = 12_000_000_000
HARD_ELEMENTS = 200_000_000
# Time to look for shapes.
SEARCH_SECONDS = 40.0

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
    cost: measure.Measure


def _sequence(value: Any, function: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise InvalidTask(f"{function}() returned {type(value).__name__}, not a list")
    return list(value)


class Reference:
    def __init__(self) -> None:
        self._contexts = contextlib.ExitStack()
        self._instance: Instance | None = None
        self._model64: torch.nn.Module | None = None
        self._buffers: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._device = "emulated"
        self._path: str | None = None

    # Loading

    def load(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        self._device = message["device"]
        self._contexts.enter_context(torch.no_grad())
        if self._device == "emulated":
            self._contexts.enter_context(cuda_on_cpu.emulated())
        notes: list[str] = []
        try:
            sizes = shapes.Sizes(message["source"])
            instance, changed = self._choose(message, sizes, notes)
            self._instance = instance
            self._buffers = [(b, b.clone()) for b in instance.model.buffers()]
            writer = wire.TreeWriter("init")
            node = writer.encode(instance.init)
            reply = {
                "ok": True,
                "init": node,
                "shapes": changed,
                "sizes": sizes.values(),
                "families": list(families.NAMES),
                "notes": notes,
            }
            return reply, [writer.descriptor]
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
        torch.manual_seed(weight_seed)
        model = module.Model(*copy.deepcopy(init))
        if not isinstance(model, torch.nn.Module):
            raise InvalidTask("Model is no torch.nn.Module")
        if self._device == "cuda":
            model.cuda()
        before = [(b, b.clone()) for b in model.buffers()]
        torch.manual_seed(0)
        inputs = self._inputs(module)
        with measure.Measure() as cost:
            result = model(*inputs)
        cost.elements += sum(tensor.numel() for tensor in _tensors(inputs))
        _restore(before)
        if next(_tensors(result), None) is None:
            raise InvalidTask("forward returned no tensor")
        return Instance(loaded, init, model, cost)

    def _inputs(self, module: Any) -> list[Any]:
        if self._device == "cuda":
            # Made where they are used: the CPU's generator takes seconds for large ones.
            with torch.device("cuda"):
                return _sequence(module.get_inputs(), "get_inputs")
        return _sequence(module.get_inputs(), "get_inputs")

    def _failed(self, error: BaseException) -> dict[str, Any]:
        path = self._path
        if isinstance(error, program.LoadFailed):
            path, error = error.path, program.cause(error)
        verdict = "UNSUPPORTED" if isinstance(error, ImportError) else "INVALID_TASK"
        return _refused(
            verdict, errors.describe(error, path).replace("solution.py", "reference.py")
        )

    # Cases

    def case(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        instance = self._instance
        assert instance is not None  # the daemon loads first
        seed = message["seed"]
        notes: list[str] = []
        try:
            torch.manual_seed(seed)
            inputs = self._inputs(instance.loaded.module)
            inputs = families.apply(message["family"], inputs, seed)
            writers = [wire.TreeWriter("inputs"), wire.TreeWriter("expected")]
            reply: dict[str, Any] = {"ok": True, "notes": notes}
            reply["inputs"] = writers[0].encode(inputs)
            _restore(self._buffers)
            torch.manual_seed(seed)
            expected = instance.model(*copy.deepcopy(inputs))
            reply["expected"] = writers[1].encode(expected)
            reply["expected64"] = None
            expected64 = self._run_in_float64(inputs, expected, seed, notes)
            if expected64 is not None:
                writers.append(wire.TreeWriter("expected64"))
                reply["expected64"] = writers[-1].encode(expected64)
            reply["parameters"] = None
            if message.get("want_parameters"):
                _restore(self._buffers)
                writers.append(wire.TreeWriter("parameters"))
                reply["parameters"] = writers[-1].encode(dict(instance.model.state_dict()))
            reply["reduction"] = instance.cost.reduction
            return reply, [writer.descriptor for writer in writers]
        except wire.UnsupportedValue as error:
            return _refused("UNSUPPORTED", f"the reference program gives {error}"), []
        except BaseException as error:
            return self._failed(error), []

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
            for (_, value), buffer in zip(self._buffers, model.buffers(), strict=True):
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
        pairs = zip(_tensors(expected), _tensors(result), strict=False)
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


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _refused(verdict: str, text: str) -> dict[str, Any]:
    return {"ok": False, "verdict": verdict, "error": text}


def serve(channel: wire.Channel) -> None:
    reference = Reference()
    while (received := channel.receive()) is not None:
        message, _ = received
        handle = reference.load if message["op"] == "load" else reference.case
        reply, descriptors = handle(message)
        channel.send(reply, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
