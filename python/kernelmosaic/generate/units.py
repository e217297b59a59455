"""Functions of one number: torch, CUDA, mathematics and words for the same thing."""

from __future__ import annotations

from dataclasses import dataclass

Range = tuple[float, float]


@dataclass(frozen=True)
class Unit:
    """`{x}` is the argument, other fields are the constants that `constants` gives ranges for."""

    english: str
    torch: tuple[str, ...]
    cuda: str
    latex: str
    module: str = ""
    constants: tuple[tuple[str, Range], ...] = ()


def _unit(
    english: str,
    torch: tuple[str, ...],
    cuda: str,
    latex: str,
    module: str = "",
    **constants: Range,
) -> Unit:
    return Unit(english, torch, cuda, latex, module, tuple(constants.items()))


UNITS: dict[str, Unit] = {
    "relu": _unit(
        "ReLU",
        ("torch.relu({x})", "F.relu({x})", "{x}.clamp(min=0)", "torch.clamp({x}, min=0.0)"),
        "fmaxf({x}, 0.0f)",
        r"\max({x}, 0)",
        "nn.ReLU()",
    ),
    "relu6": _unit(
        "ReLU6",
        ("F.relu6({x})", "torch.clamp({x}, 0.0, 6.0)"),
        "fminf(fmaxf({x}, 0.0f), 6.0f)",
        r"\min(\max({x}, 0), 6)",
        "nn.ReLU6()",
    ),
    "sigmoid": _unit(
        "the logistic sigmoid",
        ("torch.sigmoid({x})", "{x}.sigmoid()"),
        "1.0f / (1.0f + expf(-{x}))",
        r"\frac{{1}}{{1 + e^{{-{x}}}}}",
        "nn.Sigmoid()",
    ),
    "tanh": _unit(
        "the hyperbolic tangent",
        ("torch.tanh({x})", "{x}.tanh()"),
        "tanhf({x})",
        r"\tanh({x})",
        "nn.Tanh()",
    ),
    "gelu": _unit(
        "GELU with the error function",
        ("F.gelu({x})", "0.5 * {x} * (1.0 + torch.erf({x} / 1.4142135623730951))"),
        "0.5f * {x} * (1.0f + erff({x} * 0.7071067811865475f))",
        r"\tfrac12\,{x}\,\bigl(1 + \operatorname{{erf}}({x}/\sqrt2)\bigr)",
        "nn.GELU()",
    ),
    "gelu_tanh": _unit(
        "GELU in its tanh approximation",
        (
            'F.gelu({x}, approximate="tanh")',
            "0.5 * {x} * (1.0 + torch.tanh(0.7978845608028654 * ({x} + 0.044715 * {x} ** 3)))",
        ),
        "0.5f * {x} * (1.0f + tanhf(0.7978845608028654f * ({x} + 0.044715f * {x} * {x} * {x})))",
        r"\tfrac12\,{x}\,\Bigl(1 + \tanh\bigl(\sqrt{{2/\pi}}\,({x} + 0.044715\,{x}^3)\bigr)\Bigr)",
        'nn.GELU(approximate="tanh")',
    ),
    "silu": _unit(
        "SiLU (Swish)",
        ("F.silu({x})", "{x} * torch.sigmoid({x})", "torch.sigmoid({x}) * {x}"),
        "{x} / (1.0f + expf(-{x}))",
        r"\frac{{{x}}}{{1 + e^{{-{x}}}}}",
        "nn.SiLU()",
    ),
    "softplus": _unit(
        "Softplus",
        ("F.softplus({x})",),
        "{x} > 20.0f ? {x} : log1pf(expf({x}))",
        r"\ln(1 + e^{{{x}}})",
        "nn.Softplus()",
    ),
    "mish": _unit(
        "Mish",
        ("F.mish({x})", "{x} * torch.tanh(F.softplus({x}))"),
        "{x} * tanhf({x} > 20.0f ? {x} : log1pf(expf({x})))",
        r"{x}\,\tanh\bigl(\ln(1 + e^{{{x}}})\bigr)",
        "nn.Mish()",
    ),
    "softsign": _unit(
        "Softsign",
        ("F.softsign({x})", "{x} / (1 + torch.abs({x}))"),
        "{x} / (1.0f + fabsf({x}))",
        r"\frac{{{x}}}{{1 + |{x}|}}",
        "nn.Softsign()",
    ),
    "hardsigmoid": _unit(
        "HardSigmoid",
        ("F.hardsigmoid({x})", "torch.clamp(({x} + 3.0) / 6.0, 0.0, 1.0)"),
        "fminf(fmaxf(({x} + 3.0f) / 6.0f, 0.0f), 1.0f)",
        r"\min\bigl(\max(({x} + 3)/6, 0), 1\bigr)",
        "nn.Hardsigmoid()",
    ),
    "hardswish": _unit(
        "HardSwish",
        ("F.hardswish({x})", "{x} * torch.clamp({x} + 3.0, 0.0, 6.0) / 6.0"),
        "{x} * fminf(fmaxf({x} + 3.0f, 0.0f), 6.0f) / 6.0f",
        r"{x}\,\min\bigl(\max({x} + 3, 0), 6\bigr)/6",
        "nn.Hardswish()",
    ),
    "selu": _unit(
        "SELU",
        ("F.selu({x})", "torch.selu({x})"),
        "1.0507009873554805f * ({x} > 0.0f ? {x} : 1.6732632423543772f * expm1f({x}))",
        r"1.0507009873554805\,\bigl(\max({x}, 0) + 1.6732632423543772\min(e^{{{x}}} - 1, 0)\bigr)",
        "nn.SELU()",
    ),
    "logsigmoid": _unit(
        "the logarithm of the sigmoid",
        ("F.logsigmoid({x})",),
        "fminf({x}, 0.0f) - log1pf(expf(-fabsf({x})))",
        r"-\ln(1 + e^{{-{x}}})",
        "nn.LogSigmoid()",
    ),
    "tanhshrink": _unit(
        "Tanhshrink",
        ("F.tanhshrink({x})", "{x} - torch.tanh({x})"),
        "{x} - tanhf({x})",
        r"{x} - \tanh({x})",
        "nn.Tanhshrink()",
    ),
    "abs": _unit("the absolute value", ("torch.abs({x})", "{x}.abs()"), "fabsf({x})", r"|{x}|"),
    "square": _unit(
        "the square", ("torch.square({x})", "{x} * {x}", "{x} ** 2"), "{x} * {x}", r"{x}^2"
    ),
    "sin": _unit("the sine", ("torch.sin({x})", "{x}.sin()"), "sinf({x})", r"\sin({x})"),
    "cos": _unit("the cosine", ("torch.cos({x})", "{x}.cos()"), "cosf({x})", r"\cos({x})"),
    "exp_neg": _unit(
        "the exponential of the negative absolute value",
        ("torch.exp(-torch.abs({x}))", "(-{x}.abs()).exp()"),
        "expf(-fabsf({x}))",
        r"e^{{-|{x}|}}",
    ),
    "gaussian": _unit(
        "the Gaussian bump exp(-x*x)",
        ("torch.exp(-{x} * {x})", "torch.exp(-torch.square({x}))"),
        "expf(-{x} * {x})",
        r"e^{{-{x}^2}}",
    ),
    "log1p_abs": _unit(
        "the logarithm of one plus the absolute value",
        ("torch.log1p(torch.abs({x}))", "torch.log(1.0 + {x}.abs())"),
        "log1pf(fabsf({x}))",
        r"\ln(1 + |{x}|)",
    ),
    "rsqrt": _unit(
        "the reciprocal square root of one plus the square",
        ("torch.rsqrt(1.0 + {x} * {x})", "1.0 / torch.sqrt(1.0 + {x} ** 2)"),
        "1.0f / sqrtf(1.0f + {x} * {x})",
        r"\frac{{1}}{{\sqrt{{1 + {x}^2}}}}",
    ),
    "atan": _unit("the arc tangent", ("torch.atan({x})",), "atanf({x})", r"\arctan({x})"),
    "erf": _unit(
        "the error function", ("torch.erf({x})",), "erff({x})", r"\operatorname{{erf}}({x})"
    ),
    "leaky_relu": _unit(
        "LeakyReLU",
        (
            "F.leaky_relu({x}, negative_slope={negative_slope})",
            "torch.where({x} > 0, {x}, {x} * {negative_slope})",
        ),
        "{x} > 0.0f ? {x} : {x} * {negative_slope}",
        r"\max({x}, 0) + {negative_slope}\min({x}, 0)",
        "nn.LeakyReLU({negative_slope})",
        negative_slope=(0.01, 0.4),
    ),
    "elu": _unit(
        "ELU",
        ("F.elu({x}, alpha={alpha})",),
        "{x} > 0.0f ? {x} : {alpha} * expm1f({x})",
        r"\max({x}, 0) + {alpha}\min(e^{{{x}}} - 1, 0)",
        "nn.ELU({alpha})",
        alpha=(0.3, 2.0),
    ),
    "celu": _unit(
        "CELU",
        ("F.celu({x}, alpha={celu_alpha})",),
        "fmaxf({x}, 0.0f) + fminf(0.0f, {celu_alpha} * expm1f({x} / {celu_alpha}))",
        r"\max({x}, 0) + \min\bigl(0, {celu_alpha}\,(e^{{{x}/{celu_alpha}}} - 1)\bigr)",
        "nn.CELU({celu_alpha})",
        celu_alpha=(0.5, 2.0),
    ),
    "clamp": _unit(
        "clamping to an interval",
        (
            "torch.clamp({x}, {min_value}, {max_value})",
            "F.hardtanh({x}, min_val={min_value}, max_val={max_value})",
            "{x}.clamp({min_value}, {max_value})",
        ),
        "fminf(fmaxf({x}, {min_value}), {max_value})",
        r"\min\bigl(\max({x}, {min_value}), {max_value}\bigr)",
        "nn.Hardtanh({min_value}, {max_value})",
        min_value=(-1.5, -0.3),
        max_value=(0.3, 1.8),
    ),
    "softshrink": _unit(
        "Softshrink",
        ("F.softshrink({x}, {lambd})", "torch.sign({x}) * F.relu(torch.abs({x}) - {lambd})"),
        "{x} > {lambd} ? {x} - {lambd} : ({x} < -{lambd} ? {x} + {lambd} : 0.0f)",
        r"\operatorname{{sign}}({x})\max(|{x}| - {lambd}, 0)",
        "nn.Softshrink({lambd})",
        lambd=(0.1, 0.7),
    ),
    "scale": _unit(
        "multiplication by a number",
        ("{x} * {scale_factor}", "{scale_factor} * {x}"),
        "{x} * {scale_factor}",
        r"{scale_factor}\,{x}",
        scale_factor=(0.25, 3.0),
    ),
    "shift": _unit(
        "addition of a number",
        ("{x} + {offset}", "torch.add({x}, {offset})"),
        "{x} + {offset}",
        r"{x} + {offset}",
        offset=(0.2, 2.5),
    ),
    "divide": _unit(
        "division by a number",
        ("{x} / {divisor}", "torch.div({x}, {divisor})"),
        "{x} / {divisor}",
        r"{x} / {divisor}",
        divisor=(0.5, 4.0),
    ),
    "subtract": _unit(
        "subtraction of a number",
        ("{x} - {subtract_value}",),
        "{x} - {subtract_value}",
        r"{x} - {subtract_value}",
        subtract_value=(0.2, 2.0),
    ),
    "swish_beta": _unit(
        "Swish with a slope",
        ("{x} * torch.sigmoid({beta} * {x})",),
        "{x} / (1.0f + expf(-{beta} * {x}))",
        r"\frac{{{x}}}{{1 + e^{{-{beta}{x}}}}}",
        beta=(0.5, 2.5),
    ),
    "soft_cap": _unit(
        "a soft cap by tanh",
        ("{cap} * torch.tanh({x} / {cap})", "torch.tanh({x} / {cap}) * {cap}"),
        "{cap} * tanhf({x} / {cap})",
        r"{cap}\tanh({x} / {cap})",
        cap=(1.0, 5.0),
    ),
}

# Those that people put after a product or a convolution.
ACTIVATIONS = (
    "relu", "relu6", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu", "softplus", "mish",
    "hardsigmoid", "hardswish", "selu", "leaky_relu", "elu", "celu", "clamp", "softsign",
)  # fmt: skip
ARITHMETIC = ("scale", "shift", "divide", "subtract", "clamp", "soft_cap")
