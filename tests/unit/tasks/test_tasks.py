"""The example tasks keep the format and cannot be passed by an answer that does no work."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from task_folder import Task, all_tasks, load_module

torch = pytest.importorskip("torch", reason="the example tasks need torch")

TASKS = all_tasks()
FAMILIES = {
    "elementwise",
    "activation",
    "reduction",
    "softmax",
    "normalisation",
    "matmul",
    "convolution",
    "scan",
    "histogram",
    "transpose",
    "attention",
    "loss",
}
BINDING = re.compile(
    r"(input|output)\[\d+\]|(input|output)\[\d+\]\.shape\[\d+\]"
    r"|(input|output)\[\d+\]\.numel|init\[\d+\]|param\[[A-Za-z0-9_.]+\]"
)
WEIGHT_SEED = 11


def each_task() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)


class Case:
    """One seed of a task at reduced shapes; answers in the task's dtype and in double."""

    def __init__(self, task: Task, seed: int) -> None:
        self.module = load_module(task.oracle, task.id, task.config.get("scaled_shapes", {}))
        torch.manual_seed(WEIGHT_SEED)
        self.model = self.module.Model(*self.module.get_init_inputs())
        torch.manual_seed(seed)
        self.inputs = self.module.get_inputs()
        self.answer = self.run(self.inputs)
        self.double = self.run([to(x, torch.float64) for x in self.inputs], torch.float64)

    def run(self, inputs: list[Any], dtype: Any = None) -> Any:
        model = self.model if dtype is None else copy.deepcopy(self.model).to(dtype)
        with torch.no_grad():
            return model(*[x.clone() for x in inputs])

    def accepts(self, candidate: Any) -> bool:
        """Bound by the error of the answer in the task's own dtype, with room to spare."""
        if candidate.shape != self.answer.shape:
            return False
        if not self.answer.is_floating_point():
            return bool(torch.equal(candidate, self.answer))
        scale = self.double.abs().max()
        bound = 16 * (self.answer.double() - self.double).abs().max() + 4e-6 * scale
        return bool(((candidate.double() - self.double).abs() <= bound).all())


def to(x: Any, dtype: Any) -> Any:
    return x.to(dtype) if x.is_floating_point() else x


def test_every_family_of_the_set_has_a_task() -> None:
    assert {task.config["family"] for task in TASKS} >= FAMILIES


def test_both_contracts_are_used() -> None:
    assert {task.contract for task in TASKS} == {"modelnew", "cuda"}


def test_ids_are_unique_and_name_the_folder() -> None:
    assert [task.id for task in TASKS] == [task.folder.name for task in TASKS]


@each_task()
def test_all_three_views_are_there(task: Task) -> None:
    assert all(text.strip() for text in task.views.values())


@each_task()
def test_the_entry_binds_every_parameter(task: Task) -> None:
    entry = task.config.get("entry")
    assert (entry is not None) == (task.contract == "cuda")
    if entry is None:
        return
    prototype = " ".join(entry["prototype"].split())
    match = re.fullmatch(r"void (\w+)\((.*)\)", prototype)
    assert match, prototype
    parameters = [part.strip() for part in match.group(2).split(",")]
    names = {re.split(r"[ *]", part)[-1] for part in parameters}
    streams = {part.split()[-1] for part in parameters if part.startswith("cudaStream_t ")}
    assert set(entry["bindings"]) == names - streams
    for name, binding in entry["bindings"].items():
        assert BINDING.fullmatch(binding), f"{name}: {binding}"


@each_task()
def test_prose_views_name_the_interface(task: Task) -> None:
    if task.contract == "cuda":
        words = list(task.config["entry"]["bindings"])
        words = [word for word in words if len(word) > 1]
    else:
        words = ["Interface", "forward("]
    for view in ("description", "spec"):
        missing = [word for word in words if word not in task.views[view]]
        assert not missing, f"{view}: {missing}"


@each_task()
def test_full_shapes_fit_a_gpu(task: Task) -> None:
    module = load_module(task.oracle, task.id)
    # On the meta device nothing is allocated; data-dependent programs only build their inputs.
    with torch.device("meta"):
        inputs = module.get_inputs()
    total = sum(x.numel() * x.element_size() for x in inputs)
    assert 8_000_000 <= total <= 300_000_000


@each_task()
def test_the_reference_is_deterministic(task: Task) -> None:
    case = Case(task, 3)
    assert torch.equal(case.answer, case.run(case.inputs))
    assert torch.equal(case.answer, Case(task, 3).answer)


@each_task()
def test_the_reference_leaves_its_inputs_alone(task: Task) -> None:
    case = Case(task, 3)
    inputs = [x.clone() for x in case.inputs]
    with torch.no_grad():
        case.model(*inputs)
    assert all(torch.equal(a, b) for a, b in zip(inputs, case.inputs, strict=True))


@each_task()
def test_answers_are_finite_and_vary(task: Task) -> None:
    answer = Case(task, 3).answer.double()
    assert torch.isfinite(answer).all()
    assert answer.std() > 1e-3 * answer.abs().max()


@each_task()
def test_the_own_answer_is_accepted(task: Task) -> None:
    case = Case(task, 3)
    assert case.accepts(case.answer)


@each_task()
def test_constants_do_not_pass(task: Task) -> None:
    case = Case(task, 3)
    assert not case.accepts(torch.zeros_like(case.answer))
    mean = torch.full_like(case.answer, case.answer.double().mean().item())
    assert not case.accepts(mean)


@each_task()
def test_no_input_passes_as_the_answer(task: Task) -> None:
    case = Case(task, 3)
    for x in case.inputs:
        flat = x.reshape(-1)
        if flat.numel() >= case.answer.numel():
            candidate = flat[: case.answer.numel()].reshape(case.answer.shape)
            assert not case.accepts(candidate.to(case.answer.dtype))


@each_task()
def test_the_answer_to_other_inputs_does_not_pass(task: Task) -> None:
    case = Case(task, 3)
    assert not case.accepts(Case(task, 4).answer)


@each_task()
def test_every_input_matters(task: Task) -> None:
    case = Case(task, 3)
    other = Case(task, 4)
    for position in range(len(case.inputs)):
        inputs = list(case.inputs)
        inputs[position] = other.inputs[position]
        assert not case.accepts(case.run(inputs)), f"input {position}"


@each_task()
def test_a_low_precision_version_does_not_pass(task: Task) -> None:
    case = Case(task, 3)
    if not case.answer.is_floating_point() or task.config.get("reduced_precision", False):
        pytest.skip("integers, or the task accepts low precision")
    inputs = [to(x, torch.bfloat16) for x in case.inputs]
    low = case.run(inputs, torch.bfloat16).to(case.answer.dtype)
    assert not case.accepts(low)
