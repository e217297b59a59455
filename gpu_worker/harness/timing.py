"""Times single calls of a program on a GPU. Shared by the candidate and reference roles.

The daemon asks for one call at a time and keeps the statistics: what is said here about
time comes from a process with untrusted code in it, so the daemon also bounds each answer by
its own clock, and picks after a call whether it wants to see what that call gave.

One call (Session.sample): fresh copies of the inputs, changed by a key that the daemon just
made up; buffers and random generator as before every call; outputs poisoned where we allocate
them; L2 emptied and nothing of it set aside; device idle; then

    event 0 | the call | event 1, device-wide join, event 2

`event_us` is from 0 to 1 on the current stream, `joined_us` from 0 to 2, so that work on other
streams counts too, and `host_us` the host's clock around the same. A copy of the outputs is
taken right after the join: what is written later is not seen.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from harness import families

# Elements of an input that take the value of others: at most this many, and no more than one in
# eight.
CHANGED_ELEMENTS = 4096

# Cycles that a program leaves may hold memory of the GPU.
_CALLS_PER_COLLECTION = 32

# Factors that a key chooses from.
_SHRINK_STEPS = 512

_WHOLE_NUMBERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_NUMBERS = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.complex128,
)


class NoTimes(Exception):
    """The device has none."""


class Clock(Protocol):
    """What a session needs of a device (device_kernels.CudaClock; tests have another)."""

    def empty_cache(self) -> None:
        """Evicts all that L2 holds, and takes back what is set aside in it."""

    def join(self) -> None:
        """Waits for everything on the device."""

    def record(self, event: int) -> None: ...

    def elapsed_us(self, start: int, end: int) -> float: ...

    def now_us(self) -> float:
        """The host's clock."""


@dataclass(frozen=True)
class Sample:
    event_us: float
    joined_us: float
    host_us: float

    def reply(self) -> dict[str, Any]:
        return {
            "ok": True,
            "event_us": self.event_us,
            "joined_us": self.joined_us,
            "host_us": self.host_us,
        }


# Gets the inputs of one call, makes it ready (outputs, arguments), gives the call itself.
Bind = Callable[[list[Any]], Callable[[], Any]]


class Session:
    """`fresh` are the leaves (as `leaves` counts them) of `inputs` that keys change."""

    def __init__(self, clock: Clock, bind: Bind, inputs: list[Any], fresh: Sequence[int]) -> None:
        self._clock = clock
        self._bind = bind
        self._inputs = inputs
        self._fresh = frozenset(fresh)
        # The copies of the call before live until the next one has its own: other addresses.
        self._last_copies: list[Any] = []
        self._outputs: Any = None
        self._calls = 0
        gc.disable()  # not in the middle of a call

    def sample(self, key: int) -> Sample:
        if self._calls % _CALLS_PER_COLLECTION == 0:
            gc.collect()
        self._calls += 1
        self._outputs = None
        copies = changed(self._inputs, self._fresh, key)
        call = self._bind(copies)
        self._last_copies = copies
        clock = self._clock
        clock.empty_cache()
        clock.join()
        start = clock.now_us()
        clock.record(0)
        outputs = call()
        clock.record(1)
        clock.join()
        clock.record(2)
        clock.join()
        end = clock.now_us()
        self._outputs = _copied(outputs)
        del outputs, call
        return Sample(clock.elapsed_us(0, 1), clock.elapsed_us(0, 2), end - start)

    def outputs(self) -> Any:
        """What the last call gave, as it was when its time was taken."""
        return self._outputs


def leaves(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)


def changeable(value: Any) -> list[int]:
    """Indexes of the leaves whose elements may take each other's values: not those with a
    structure that a program may rely on (symmetry, rows that are distributions, offsets)."""
    return [index for index, tensor in enumerate(leaves(value)) if _is_changeable(tensor)]


def _is_changeable(tensor: torch.Tensor) -> bool:
    if tensor.numel() < 2:
        return False
    if tensor.dtype in _WHOLE_NUMBERS:
        flat = tensor.flatten()
        return not bool((flat[1:] >= flat[:-1]).all())
    if tensor.dtype not in _NUMBERS:
        return False
    if tensor.is_complex():
        return not families.is_symmetric(tensor)
    return families.is_free(tensor) and not families.is_symmetric(tensor)


def changed(inputs: list[Any], fresh: frozenset[int] | Sequence[int], key: int) -> list[Any]:
    """Copies of `inputs`; in the leaves `fresh` some elements take the value of others, and
    numbers that are not whole shrink by up to an eighth, so that a sum over all of them moves too.

    The same on every device. Zeros stay where they are, and no new ones come.
    """
    counter = iter(range(1 << 30))

    def walk(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            copy = value.clone()
            index = next(counter)
            if index in fresh:
                _change(copy, (key ^ (index * 0x9E3779B97F4A7C15)) & (2**63 - 1))
            return copy
        if isinstance(value, (list, tuple)):
            return type(value)(walk(item) for item in value)
        if isinstance(value, dict):
            return {name: walk(item) for name, item in value.items()}
        return value

    return [walk(value) for value in inputs]


def _change(tensor: torch.Tensor, key: int) -> None:
    size = tensor.numel()
    generator = torch.Generator().manual_seed(key)
    count = max(1, min(CHANGED_ELEMENTS, size // 8))
    # Distinct, or the result would depend on the order of writes.
    targets = torch.unique(torch.randint(size, (count,), generator=generator))
    sources = torch.randint(size, targets.shape, generator=generator)
    to, of = _places(tensor, targets), _places(tensor, sources)
    old, new = tensor[to], tensor[of]
    tensor[to] = torch.where((old != 0) & (new != 0), new, old)
    if tensor.dtype in _NUMBERS:
        tensor.mul_(1 - (key % _SHRINK_STEPS) / (8 * _SHRINK_STEPS))


def _places(tensor: torch.Tensor, flat: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Subscripts of elements counted in C order, whatever the strides are."""
    flat = flat.to(tensor.device)
    places = []
    for extent in reversed(tensor.shape):
        places.append(flat % extent)
        flat = flat // extent
    return tuple(reversed(places))


# Taken before a program could exchange them.
_DETACH: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.detach
_CLONE: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.clone


def _copied(value: Any) -> Any:
    if type(value) is torch.Tensor:
        return _CLONE(_DETACH(value))
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(item) for item in value)
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return value
