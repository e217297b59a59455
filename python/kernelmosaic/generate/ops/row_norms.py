"""LayerNorm, RMSNorm, L1 and L2 normalisation along a dimension."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.line import LineProgram, Pass
from kernelmosaic.generate.cuda.source import HostFunction
from kernelmosaic.generate.ops.base import Context, parameter
from kernelmosaic.generate.ops.lines import MEAN, LineOp
from kernelmosaic.generate.values import Value


class RowNorm(LineOp):
    """LayerNorm, RMSNorm, L1 or L2 normalisation over one dimension.

    With a learned gain (and bias) over that dimension where `affine`.
    """

    def __init__(self, context: Context, x: Value, dim: int, form: str, affine: bool) -> None:
        super().__init__(context, x, dim)
        self.kind = f"{form}_norm"
        self._form = form
        self._eps = context.constant("eps", context.draw.choice([1e-5, 1e-6, 1e-5, 1e-3]))
        if self._eps.is_argument:
            self.constructor.append(self._eps)
        self._attribute = ""
        self._gain = self._bias = ""
        size = x.sizes[dim]
        eps = self._eps.name if self._eps.is_argument else repr(self._eps.value)
        if form == "layer":
            self.constructor.insert(0, size)
            attribute = context.names.unique(context.draw.choice(["norm", "layer_norm", "ln"]))
            extra = "" if affine else ", elementwise_affine=False"
            self.init.append(f"self.{attribute} = nn.LayerNorm({size.name}, eps={eps}{extra})")
            self._attribute = attribute
            if affine:
                self._gain, self._bias = f"self.{attribute}.weight", f"self.{attribute}.bias"
                if context.draw.chance(0.5):
                    self.init.append(f"nn.init.normal_(self.{attribute}.weight, 1.0, 0.2)")
                    self.init.append(f"nn.init.normal_(self.{attribute}.bias, 0.0, 0.2)")
        elif affine:
            self.constructor.insert(0, size)
            attribute = context.names.unique(context.draw.choice(["weight", "gain", "scale"]))
            self.init.append(
                f"self.{attribute} = nn.Parameter(1.0 + 0.2 * torch.randn({size.name}))"
            )
            self._gain = f"self.{attribute}"

    @property
    def repeats(self) -> bool:  # type: ignore[override]
        return self._form in ("rms", "l1", "l2")

    def torch(self, names: Sequence[str]) -> str:
        x, dim, eps = names[0], self.written, self._eps.in_python
        if self._form == "layer":
            return f"self.{self._attribute}({x})"
        text = {
            "rms": f"{x} * torch.rsqrt(torch.mean({x} * {x}, dim={dim}, keepdim=True) + {eps})",
            "l1": f"{x} / (torch.sum(torch.abs({x}), dim={dim}, keepdim=True) + {eps})",
            "l2": f"{x} / (torch.norm({x}, p=2, dim={dim}, keepdim=True) + {eps})",
        }[self._form]
        if not self._gain:
            return text
        after = self.inputs[0].rank - self.dim - 1
        gain = self._gain + (f".view(-1{', 1' * after})" if after else "")
        return f"{text} * {gain}"

    def english(self, names: Sequence[str]) -> str:
        eps = f"`{self._eps.name}`" if self._eps.is_argument else f"{self._eps.value}"
        what = {
            "layer": "Subtract the mean and divide by the square root of the variance (divided by "
            f"the number of elements) plus {eps}",
            "rms": f"Divide by the square root of the mean of squares plus {eps}",
            "l1": f"Divide by (the sum of absolute values plus {eps})",
            "l2": f"Divide by (the Euclidean norm plus {eps})",
        }[self._form]
        text = f"{what}, taken over {self._place(names)}"
        if self._gain and self._bias:
            return f"{text}; then multiply by `{self._gain}` and add `{self._bias}`"
        return f"{text}; then multiply by `{self._gain}`" if self._gain else text

    def latex(self, out: str, names: Sequence[str]) -> str:
        x = names[0]
        eps = r"\varepsilon"
        formula = {
            "layer": rf"\frac{{{x}_r - \mu}}{{\sqrt{{\sigma^2 + {eps}}}}}",
            "rms": rf"\frac{{{x}_r}}{{\sqrt{{\frac1R\sum_s {x}_s^2 + {eps}}}}}",
            "l1": rf"\frac{{{x}_r}}{{\sum_s |{x}_s| + {eps}}}",
            "l2": rf"\frac{{{x}_r}}{{\sqrt{{\sum_s {x}_s^2}} + {eps}}}",
        }[self._form]
        if self._gain:
            formula += r"\,g_r"
        if self._bias:
            formula += " + b_r"
        text = rf"{out}_r = {formula}, \quad \varepsilon = {self._eps.value:g}"
        if self._form == "layer":
            text += rf",\ \mu = \frac1R\sum_s {x}_s,\ \sigma^2 = \frac1R\sum_s ({x}_s - \mu)^2"
        return text + rf" \quad\text{{($r, s$ run over dimension {self.dim})}}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        eps = self._eps.in_cuda
        passes: tuple[Pass, ...]
        if self._form == "layer":
            scale = f"const float factor = 1.0f / sqrtf(squares / length + {eps});"
            passes = (MEAN, Pass("squares", "sum", "(v - mean) * (v - mean)", (scale,)))
            result = "(v - mean) * factor"
        else:
            term = "fabsf(v)" if self._form == "l1" else "v * v"
            norm = {
                "rms": f"sqrtf(total / length + {eps})",
                "l1": f"(total + {eps})",
                "l2": f"(sqrtf(total) + {eps})",
            }[self._form]
            scale = f"const float factor = 1.0f / {norm};"
            passes = (Pass("total", "sum", term, (scale,)),)
            result = "v * factor"
        dtype = self.inputs[0].dtype
        arguments = [*self.constant_arguments([self._eps], "float")]
        learned = []
        if self._gain:
            learned.append(parameter("gain", self._gain, "float32"))
            result = f"{result} * gain[r]"
        if self._bias:
            learned.append(parameter("shift", self._bias, "float32"))
            result = f"{result} + shift[r]"
        assert not learned or dtype == "float32"
        program = LineProgram(self._load(), self._index, passes, result, True)
        return self.line_function(
            name, out, program, "torch::empty_like(x)", epilogue, style, [*learned, *arguments]
        )
