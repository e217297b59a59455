"""Losses: one number for everything, or one for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.line import LineProgram, Pass, line_function, whole_function
from kernelmosaic.generate.cuda.source import ELEMENTS, HostFunction
from kernelmosaic.generate.ops.base import Context, Op, like, tensor
from kernelmosaic.generate.values import Size, Value


@dataclass(frozen=True)
class PairLoss:
    """Mean over elements of a function of prediction `v` and target `u`."""

    english: str
    torch: tuple[str, ...]
    cuda: str
    latex: str


PAIR_LOSSES: dict[str, PairLoss] = {
    "mse": PairLoss(
        "the mean squared difference",
        ("F.mse_loss({x}, {t})", "torch.mean(({x} - {t}) ** 2)"),
        "(v - u) * (v - u)",
        r"({x}_i - {t}_i)^2",
    ),
    "l1_loss": PairLoss(
        "the mean absolute difference",
        ("F.l1_loss({x}, {t})", "torch.mean(torch.abs({x} - {t}))"),
        "fabsf(v - u)",
        r"|{x}_i - {t}_i|",
    ),
    "smooth_l1": PairLoss(
        "the mean of the smooth L1 (Huber) loss with threshold 1",
        ("F.smooth_l1_loss({x}, {t})", "F.huber_loss({x}, {t})"),
        "(fabsf(v - u) < 1.0f ? 0.5f * (v - u) * (v - u) : fabsf(v - u) - 0.5f)",
        r"h({x}_i - {t}_i),\ h(d) = d^2/2 \text{{ if }} |d| < 1 \text{{ else }} |d| - 1/2",
    ),
    "hinge": PairLoss(
        "the mean hinge loss max(0, 1 - prediction * target)",
        ("torch.mean(torch.clamp(1 - {x} * {t}, min=0))", "F.relu(1.0 - {x} * {t}).mean()"),
        "fmaxf(1.0f - v * u, 0.0f)",
        r"\max(0, 1 - {x}_i {t}_i)",
    ),
    "bce_logits": PairLoss(
        "the mean binary cross entropy between the sigmoid of the prediction and the "
        "sigmoid of the target",
        ("F.binary_cross_entropy_with_logits({x}, torch.sigmoid({t}))",),
        "(fmaxf(v, 0.0f) - v / (1.0f + expf(-u)) + log1pf(expf(-fabsf(v))))",
        r"\ln(1 + e^{{{x}_i}}) - {x}_i\,\frac{{1}}{{1 + e^{{-{t}_i}}}}",
    ),
    "log_cosh": PairLoss(
        "the mean log-cosh loss",
        ("torch.mean(torch.log(torch.cosh({x} - {t})))",),
        "(fabsf(v - u) + log1pf(expf(-2.0f * fabsf(v - u))) - 0.6931471805599453f)",
        r"\ln\cosh({x}_i - {t}_i)",
    ),
}


class MeanLoss(Op):
    """One number: the mean of a pair loss over all elements."""

    styles = 2
    fuses = False

    def __init__(self, context: Context, x: Value, target: Value, form: str) -> None:
        super().__init__(context, [x, target])
        self.kind = form
        self._loss = PAIR_LOSSES[form]
        self._torch = context.draw.choice(self._loss.torch)

    @property
    def repeats(self) -> bool:  # type: ignore[override]
        return self._torch.count("{x}") > 1

    @property
    def sizes(self) -> tuple[Size, ...]:
        return ()

    def torch(self, names: Sequence[str]) -> str:
        return self._torch.format(x=names[0], t=names[1])

    def english(self, names: Sequence[str]) -> str:
        return (
            f"Compute {self._loss.english} of {names[0]} (prediction) and {names[1]} "
            f"(target): one number, a tensor without dimensions"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        term = self._loss.latex.format(x=names[0], t=names[1])
        return rf"{out} = \frac1N\sum_i {term}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        assert not epilogue.steps
        x, target = self.inputs
        launch = self.launch(name, out, [tensor("x", x), tensor("target", target)], [], epilogue)
        load = [
            f"const float v = {ELEMENTS[x.dtype].load('x[i]')};",
            f"const float u = {ELEMENTS[target.dtype].load('target[i]')};",
        ]
        return whole_function(launch, "x.numel()", self._loss.cuda, load, "total / n", style)


ROW_LOSSES = ("cross_entropy", "kl_div", "cosine_similarity", "squared_distance", "triplet")


class RowLoss(Op):
    """One number for each row of (rows, columns) inputs."""

    styles = 3

    def __init__(self, context: Context, inputs: Sequence[Value], form: str) -> None:
        super().__init__(context, inputs)
        self.kind = form
        if form == "triplet":
            self._margin = context.constant("margin", context.draw.number(0.2, 2.0, 1))
            if self._margin.is_argument:
                self.constructor.append(self._margin)

    @property
    def sizes(self) -> tuple[Size, ...]:
        return self.inputs[0].sizes[:1]

    repeats = True

    def torch(self, names: Sequence[str]) -> str:
        x, t = names[0], names[1]
        if self.kind == "triplet":
            positive = f"(({x} - {t}) ** 2).sum(dim=1)"
            negative = f"(({x} - {names[2]}) ** 2).sum(dim=1)"
            return f"torch.relu({positive} - {negative} + {self._margin.in_python})"
        return {
            "cross_entropy": f'F.cross_entropy({x}, {t}, reduction="none")',
            "kl_div": (
                f"(F.softmax({t}, dim=1) * (F.log_softmax({t}, dim=1) - F.log_softmax({x}, "
                f"dim=1))).sum(dim=1)"
            ),
            "cosine_similarity": f"F.cosine_similarity({x}, {t}, dim=1)",
            "squared_distance": f"torch.sum(({x} - {t}) ** 2, dim=1)",
        }[self.kind]

    def english(self, names: Sequence[str]) -> str:
        x, t = names[0], names[1]
        return {
            "cross_entropy": (
                f"For each row compute the cross entropy of the logits {x} with the class "
                f"index {t}: minus the logarithm of the softmax at that class"
            ),
            "kl_div": (
                f"For each row compute the Kullback-Leibler divergence of the softmax of {t} "
                f"from the softmax of {x}: the sum of q (ln q - ln p), with q the softmax of "
                f"{t} and p that of {x}"
            ),
            "cosine_similarity": (
                f"For each row compute the cosine of the angle between {x} and {t}: their dot "
                f"product over the product of their Euclidean norms, each at least 1e-8"
            ),
            "squared_distance": (
                f"For each row compute the squared Euclidean distance of {x} and {t}"
            ),
            "triplet": (
                f"For each row compute max(0, squared distance of {x} and {t} - squared "
                f"distance of {x} and {names[-1]} + margin), with the margin {self._margin_text()}"
            ),
        }[self.kind]

    def _margin_text(self) -> str:
        if self.kind != "triplet":
            return ""
        return f"`{self._margin.name}`" if self._margin.is_argument else f"{self._margin.value}"

    def latex(self, out: str, names: Sequence[str]) -> str:
        x, t = names[0], names[1]
        return {
            "cross_entropy": rf"{out}_m = \ln\sum_r e^{{{x}_{{mr}}}} - {x}_{{m,{t}_m}}",
            "kl_div": (
                rf"{out}_m = \sum_r q_{{mr}}(\ln q_{{mr}} - \ln p_{{mr}}),\quad p = "
                rf"\operatorname{{softmax}}_r({x}),\ q = \operatorname{{softmax}}_r({t})"
            ),
            "cosine_similarity": (
                rf"{out}_m = "
                rf"\frac{{\sum_r {x}_{{mr}} {t}_{{mr}}}}"
                rf"{{\max(\|{x}_m\|_2, 10^{{-8}})\max(\|{t}_m\|_2, 10^{{-8}})}}"
            ),
            "squared_distance": rf"{out}_m = \sum_r ({x}_{{mr}} - {t}_{{mr}})^2",
            "triplet": (
                rf"{out}_m = \max\bigl(0, \sum_r ({x}_{{mr}} - {t}_{{mr}})^2 - \sum_r "
                rf"({x}_{{mr}} - {names[-1]}_{{mr}})^2 + m\bigr)"
            )
            + (rf",\quad m = {self._margin.value:g}" if self.kind == "triplet" else ""),
        }[self.kind]

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        index = "line * length + r"
        load = [f"float v = x[{index}];"]
        names = ["x", "target", "negative"][: len(self.inputs)]
        if self.kind != "cross_entropy":
            load.append(f"const float u = target[{index}];")
        passes: tuple[Pass, ...]
        if self.kind == "cross_entropy":
            passes = (Pass("largest", "max", "v"), Pass("total", "sum", "expf(v - largest)"))
            result = "largest + logf(total) - x[line * length + target[line]]"
        elif self.kind == "kl_div":
            passes = (
                Pass("largest", "max", "v"),
                Pass("target_largest", "max", "u"),
                Pass("total", "sum", "expf(v - largest)"),
                Pass(
                    "target_total",
                    "sum",
                    "expf(u - target_largest)",
                    (
                        "const float log_p = largest + logf(total);",
                        "const float log_q = target_largest + logf(target_total);",
                    ),
                ),
                Pass("divergence", "sum", "expf(u - log_q) * ((u - log_q) - (v - log_p))"),
            )
            result = "divergence"
        elif self.kind == "cosine_similarity":
            passes = (
                Pass("dot", "sum", "v * u"),
                Pass("left", "sum", "v * v"),
                Pass("right", "sum", "u * u"),
            )
            result = "dot / (fmaxf(sqrtf(left), 1e-8f) * fmaxf(sqrtf(right), 1e-8f))"
        elif self.kind == "squared_distance":
            passes = (Pass("total", "sum", "(v - u) * (v - u)"),)
            result = "total"
        else:
            load.append(f"const float w = negative[{index}];")
            passes = (
                Pass("near", "sum", "(v - u) * (v - u)"),
                Pass("far", "sum", "(v - w) * (v - w)"),
            )
            result = f"fmaxf(near - far + {self._margin.in_cuda}, 0.0f)"
        arguments = [tensor(n, value) for n, value in zip(names, self.inputs)]
        if self.kind == "triplet":
            arguments += self.constant_arguments([self._margin], "float")
        launch = self.launch(name, out, arguments, [], epilogue)
        program = LineProgram(tuple(load), index, passes, result, False)
        return line_function(
            launch, like("x", ["x.size(0)"]), "x.size(0)", "x.size(1)", program, epilogue, style
        )
