"""Counter-based random numbers: the published words, and the laws that are made of them."""

import pytest
import torch
from scipy import stats

from softspike.kernels.counter import laplace_noise, normal_noise, philox, standard_gamma, unit

ELEMENTS = torch.arange(100_000)
FULL = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("seed", "counter", "words"),
    [
        (0, (0, 0, 0, 0), (0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48)),
        (FULL | FULL << 32, (FULL,) * 4, (0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662)),
    ],
)
def test_philox_gives_the_published_words(seed, counter, words):
    """Known answers of Philox 4×32-7 from its authors' test vectors."""
    assert tuple(int(word) for word in philox(seed, *counter)) == words


def uniforms(step=0):
    return [unit(word) for word in philox(7, ELEMENTS, 0, step, 0)]


# Kolmogorov–Smirnov at N = 100,000: fixed seeds, so a p-value below 1e-3 is a wrong law and not bad luck.
LAWS = {
    "uniform": (lambda: uniforms()[0], stats.uniform()),
    "normal, first": (lambda: normal_noise(*uniforms()[:2])[0], stats.norm()),
    "normal, second": (lambda: normal_noise(*uniforms()[2:])[1], stats.norm()),
    "Laplace": (lambda: laplace_noise(uniforms()[3]), stats.laplace()),
}
for shape in (0.3, 1.0, 3.0, 50.0):
    LAWS[f"Gamma({shape:g})"] = (
        lambda shape=shape: standard_gamma(3, torch.full((len(ELEMENTS),), shape), ELEMENTS, 5, 11)[2],
        stats.gamma(shape),
    )


@pytest.mark.parametrize("name", LAWS)
def test_noise_follows_its_law(name):
    draw, law = LAWS[name]
    assert stats.kstest(draw().double().numpy(), law.cdf).pvalue > 1e-3


def test_streams_are_not_correlated():
    """Neighbouring steps, groups and lanes: |correlation| < 4/√N."""
    now, later = uniforms(0), uniforms(1)
    drawn = torch.stack([*now, *later]).double()
    correlation = torch.corrcoef(drawn) - torch.eye(8)
    assert float(correlation.abs().max()) < 4 / len(ELEMENTS) ** 0.5
