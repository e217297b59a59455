"""Cases of samples that are whole Python files."""

from typing import Any

import pytest
import torch
from sample_case import FILE_CASES, normal


def negate(names: dict[str, Any]) -> None:
    x = normal(7, 100)
    assert torch.equal(names["ModelNew"]()(x.cuda()), -x)


def row_sum(names: dict[str, Any]) -> None:
    f, x = names["extension"].row_sum, normal(5, 300)
    torch.testing.assert_close(f(x), x.sum(1))
    torch.testing.assert_close(f(x.t()), x.sum(0))  # not contiguous
    with pytest.raises(RuntimeError, match="x must have 2 dimensions, got 1"):
        f(x[0])
    with pytest.raises(RuntimeError, match="x must be float32"):
        f(x.double())


def dispatched_scale(names: dict[str, Any]) -> None:
    f = names["extension"].scale
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = normal(6, 50, dtype=dtype)
        for view in (x, x.t(), x[:, ::2]):
            torch.testing.assert_close(f(view, 0.5), view * 0.5, check_stride=False)
    assert f(torch.empty(0, 3), 2.0).shape == (0, 3)


FILE_CASES |= {"negate_file": negate, "row_sum": row_sum, "dispatched_scale": dispatched_scale}
