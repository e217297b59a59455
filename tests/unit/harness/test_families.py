import pytest
import torch
from harness import families


def test_native_is_untouched_and_unknown_is_an_error() -> None:
    x = [torch.rand(4)]
    assert families.apply("native", x, 1) is x
    with pytest.raises(KeyError):
        families.apply("strange", x, 1)


@pytest.mark.parametrize("family", families.NAMES)
def test_triangular_and_symmetric_matrices_stay_so(family: str) -> None:
    upper = torch.triu(torch.rand(40, 40) + 0.1)
    assert torch.equal(families.apply(family, upper, 1).triu(), families.apply(family, upper, 1))
    symmetric = torch.rand(40, 40)
    symmetric = symmetric + symmetric.t()
    changed = families.apply(family, symmetric, 1)
    assert torch.equal(changed, changed.t())


@pytest.mark.parametrize("family", families.NAMES)
def test_labels_distributions_and_integers_stay(family: str) -> None:
    labels = torch.randint(0, 2, (200,)).float() * 2 - 1
    rows = torch.rand(8, 20).softmax(-1)
    index = torch.randint(0, 9, (200,))
    changed = families.apply(family, [labels, rows, index], 1)
    assert torch.equal(changed[0], labels)
    assert torch.equal(changed[1], rows)
    assert torch.equal(changed[2], index)


def test_the_families_are_what_they_say() -> None:
    x = torch.rand(1000) + 0.01
    assert torch.equal(families.apply("small", x, 1), x / 1024)
    assert torch.equal(families.apply("large", x, 1), x * 32)
    assert 0.02 < (families.apply("sparse", x, 1) != 0).float().mean() < 0.3
    assert families.apply("constant", x, 1).unique().numel() == 1
    signed = families.apply("signed", x, 1)
    assert (signed < 0).any()
    assert (signed > 0).any()


def test_the_same_seed_gives_the_same_values_and_half_stays_half() -> None:
    x = torch.rand(100).half()
    first = families.apply("sparse", x, 5)
    assert torch.equal(first, families.apply("sparse", x, 5))
    assert first.dtype is torch.float16
