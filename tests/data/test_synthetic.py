"""The samples follow the laws they claim; rates are checked within 5 standard deviations (one false alarm in 10⁶)."""

import numpy as np
import pytest
import torch
from experiments.recovery_problems import never_small
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from softspike.data import DataError, power_law_synthetic, synthetic
from softspike.data.synthetic import power_law_rates


@settings(max_examples=25, deadline=None, derandomize=True)
@given(n_sources=st.integers(1, 20), data=st.data(), positive=st.booleans(), seed=st.integers(0, 2**31))
def test_the_sample_is_what_it_says(n_sources, data, positive, seed):
    n_active = data.draw(st.integers(1, n_sources))
    sample = synthetic(30, 7, n_sources, n_active, seed, positive=positive)
    assert sample.x.shape == (30, 7)
    assert sample.dictionary.shape == (7, n_sources)
    assert ((sample.codes != 0).sum(1) == n_active).all()
    assert not positive or (sample.codes >= 0).all()
    torch.testing.assert_close(sample.dictionary.norm(dim=0), torch.ones(n_sources))
    torch.testing.assert_close(sample.x, sample.codes @ sample.dictionary.T)


def test_supports_are_uniform_and_values_normal():
    codes = synthetic(20_000, 4, 10, 3, seed=0, positive=False).codes
    rate = (codes != 0).float().mean(0).numpy()
    np.testing.assert_allclose(rate, 0.3, atol=5 * np.sqrt(0.3 * 0.7 / 20_000))
    assert stats.kstest(codes[codes != 0].numpy(), "norm").pvalue > 1e-3
    folded = synthetic(20_000, 4, 10, 3, seed=1).codes
    assert stats.kstest(folded[folded != 0].numpy(), "halfnorm").pvalue > 1e-3


def test_values_of_another_law_at_uneven_rates():
    """Signed ones of the law that problem i has, at the rates that |N(0, 1)| has them without it."""
    plain, other = (
        power_law_synthetic(20_000, 3, 0, 8, 12, 0.6, 0.0, positive=positive, values=values).codes
        for positive, values in ((True, lambda normal: normal), (False, never_small))
    )
    assert torch.equal(plain != 0, other != 0)
    size = other[other != 0]
    assert stats.kstest(size.abs().numpy(), stats.uniform(0.5, 1).cdf).pvalue > 1e-3
    assert abs(float((size > 0).float().mean()) - 0.5) < 5 * 0.5 / len(size) ** 0.5


def test_values_of_another_law():
    """The one that the recovery experiment's problem i has."""
    codes = synthetic(20_000, 4, 10, 3, seed=0, positive=False, values=never_small).codes
    size = codes[codes != 0].abs().numpy()
    assert stats.kstest(size, stats.uniform(0.5, 1).cdf).pvalue > 1e-3
    assert abs((codes[codes != 0] > 0).float().mean() - 0.5) < 5 * 0.5 / np.sqrt(60_000)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed, noise: synthetic(500, 16, 32, 4, seed, noise=noise),
        lambda seed, noise: power_law_synthetic(500, 4, seed, n_features=16, n_sources=32, noise=noise),
    ],
)
def test_noise_and_seed(make):
    clean, noisy, other = make(0, 0.0), make(0, 0.3), make(1, 0.0)
    assert torch.equal(clean.codes, noisy.codes)
    assert torch.equal(clean.dictionary, noisy.dictionary)
    assert not torch.equal(clean.dictionary, other.dictionary)
    assert (noisy.x - clean.x).std().item() == pytest.approx(0.3, rel=5 / np.sqrt(2 * 8000))


@pytest.mark.parametrize(("mean_active", "exponent"), [(0.5, 1.0), (16, 1.0), (16, 0.0), (40, 2.0), (500, 1.5)])
def test_rates_follow_the_power_law_up_to_one_half(mean_active, exponent):
    rates = power_law_rates(1024, mean_active, exponent).double()
    assert rates.sum().item() == pytest.approx(mean_active, rel=1e-5)
    assert rates.max() <= 0.5
    below = (rates < 0.5).nonzero().flatten()
    scaled = rates[below] * (below + 1.0) ** exponent
    torch.testing.assert_close(scaled, scaled[-1].expand_as(scaled), rtol=1e-5, atol=0)


def test_sources_are_on_at_their_rates_and_pairs_together():
    n, rho = 40_000, 0.6
    sample = power_law_synthetic(n, 6, seed=0, n_features=8, n_sources=21, correlation=rho)
    on, p = (sample.codes != 0).double(), power_law_rates(21, 6).double()
    assert ((on.mean(0) - p).abs() < 5 * (p * (1 - p) / n).sqrt()).all()
    first, second = p[0:20:2], p[1:20:2]
    together = rho * torch.minimum(first, second) + (1 - rho) * first * second
    measured = (on[:, 0:20:2] * on[:, 1:20:2]).mean(0)
    assert ((measured - together).abs() < 5 * (together * (1 - together) / n).sqrt()).all()
    stranger = (on[:, 1] * on[:, 2]).mean()
    assert abs(stranger - p[1] * p[2]) < 5 * (p[1] * p[2] / n).sqrt()


def test_the_default_size():
    sample = power_law_synthetic(64, 16, seed=0)
    assert sample.x.shape == (64, 128)
    assert sample.codes.shape == (64, 1024)


BAD = [
    (lambda: synthetic(5, 4, 3, 4, 0), "n_active is 4, expected 1 to n_sources = 3"),
    (lambda: synthetic(5, 4, 3, 0, 0), "n_active is 0, expected 1 to n_sources = 3"),
    (lambda: power_law_synthetic(5, 4, 0, correlation=1.5), "correlation is 1.5, expected 0 to 1"),
    (lambda: power_law_synthetic(5, 600, 0), "mean_active is 600, expected more than 0 and less than 512"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_gets_one_sentence(make, message):
    with pytest.raises(DataError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
