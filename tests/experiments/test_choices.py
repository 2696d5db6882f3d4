"""Variants of the default model that differ from it in what they say, and in nothing else."""

import pytest
import torch
from experiments.choices import CHOICES, Drawn, Weighted
from experiments.workers import names_of
from small import QUICK, small_data

from softspike import SparseCoder
from softspike.objective import Expected, Terms


def terms_of(objective) -> Terms:
    x = small_data()
    coder = SparseCoder(**QUICK, max_steps=5, verbose=False).fit(x)
    with torch.no_grad():
        evidence = coder.coder_.evidence(coder.standardiser_(torch.from_numpy(x)), 0)
        return objective(evidence, torch.Generator().manual_seed(0))


def test_the_misfit_of_samples_is_what_is_expected() -> None:
    """4,000 draws of each input; their mean over inputs to 1 %, the rest of the bound is the same to 1e-6."""
    drawn, expected = terms_of(Drawn(4000)), terms_of(Expected())
    assert float(drawn.misfit.mean()) == pytest.approx(float(expected.misfit.mean()), rel=0.01)
    for name in ("kl", "active", "active_slope"):
        torch.testing.assert_close(getattr(drawn, name), getattr(expected, name), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("weight", "rise", "weighs"), [(1.0, 0, 1.0), (0.5, 0, 0.5), (1.0, 4, 0.25)])
def test_the_divergence_weighs_what_it_is_said_to(weight: float, rise: int, weighs: float) -> None:
    """At the first batch; to 1e-5."""
    found, plain = terms_of(Weighted(weight, rise)), terms_of(Expected())
    torch.testing.assert_close(found.loss, plain.loss + (weighs - 1) * plain.kl, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_trains(name: str) -> None:
    x = small_data()
    coder = SparseCoder(**QUICK, method=CHOICES[name], max_steps=20, verbose=False).fit(x)
    assert 1 <= coder.transform(x).nnz / len(x) <= 6


def test_a_name_that_is_unknown_is_told_with_those_that_are_not() -> None:
    assert names_of(["one", "two"])("two,one") == ["two", "one"]
    with pytest.raises(Exception, match="'three' is unknown, expected names of: one, two"):
        names_of(["one", "two"])("one,three")
