"""TopK, BatchTopK, JumpReLU: exact counts, gradients, dead features, and the estimator around them."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from softspike import SparseCoder
from softspike.autoencoder import Autoencoder, BatchTopKAutoencoder, JumpReLUAutoencoder, TopKAutoencoder
from softspike.fitting import Checkpoint
from softspike.generator import UnitNormDictionary
from softspike.notice import Notice

KINDS: list[type[Autoencoder]] = [TopKAutoencoder, BatchTopKAutoencoder, JumpReLUAutoencoder]
NAMES = ["topk", "batchtopk", "jumprelu"]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_name = pytest.mark.parametrize("name", NAMES)
both_signs = pytest.mark.parametrize("positive", [False, True])


def build(kind: type[Autoencoder], target: float = 3.0, positive: bool = False, **options: int) -> Autoencoder:
    return kind(UnitNormDictionary(8, 12), target, positive=positive, **options).double()


def rows(n: int = 60) -> torch.Tensor:
    return torch.randn(n, 8, dtype=torch.float64)


@every_kind
@both_signs
def test_codes_are_the_affine_map_or_zero(kind: type[Autoencoder], positive: bool) -> None:
    coder, x = build(kind, positive=positive), rows()
    coder.calibrate(x, 3.0)
    z, u = coder.code(x), coder.affine(x)
    assert ((z == u) | (z == 0)).all()
    # What passes is larger than what does not, in the scale of the choice.
    level = coder.log_level.exp() if isinstance(coder, JumpReLUAutoencoder) else torch.ones_like(coder.bias)
    size = coder.size(u) / level
    for row, code in zip(size, z, strict=True):
        if (code != 0).any() and (code == 0).any():
            assert row[code != 0].min() >= row[code == 0].max() - 1e-12
    if positive:
        assert (z >= 0).all()


def test_topk_has_exactly_k_active() -> None:
    for k in (1, 3, 12):
        assert ((build(TopKAutoencoder, k).code(rows()) != 0).sum(-1) == k).all()


def test_topk_tells_where_it_misses_what_was_asked_for() -> None:
    """Halves are rounded up; 25.6 of which 26 is nearer than two per cent is met."""
    counts = {2.5: 3, 3.5: 4, 0.2: 1, 9.9: 10}
    assert {asked: build(TopKAutoencoder, asked).k for asked in counts} == counts
    x = rows()
    with pytest.warns(Notice, match=r"topk has 3 active in every row where 2\.5 were asked for"):
        build(TopKAutoencoder, 2.5).calibrate(x, 2.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(TopKAutoencoder, 9.9).calibrate(x, 9.9)


def test_positive_topk_has_at_most_k_active() -> None:
    """Exactly k, but for rows with fewer positive u."""
    coder, x = build(TopKAutoencoder, 5, positive=True), rows()
    expected = (coder.affine(x) > 0).sum(-1).clamp_max(5)
    assert torch.equal((coder.code(x) != 0).sum(-1), expected)


@both_signs
def test_batch_topk_has_k_active_on_average_in_training(positive: bool) -> None:
    coder = build(BatchTopKAutoencoder, 2.5, positive=positive)
    z = coder.activate(coder.affine(rows(60))).codes
    assert int((z != 0).sum()) == 150
    assert len((z != 0).sum(-1).unique()) > 1


@pytest.mark.parametrize("kind", [BatchTopKAutoencoder, JumpReLUAutoencoder])
@both_signs
def test_calibration_meets_the_mean_count(kind: type[Autoencoder], positive: bool) -> None:
    """One unit of the n·d scores is the resolution."""
    coder, x = build(kind, positive=positive), rows(200)
    for target in (1.0, 2.5, 4.0):
        coder.calibrate(x, target)
        assert float((coder.code(x) != 0).sum()) == pytest.approx(200 * target, abs=1)


def test_batch_topk_cut_follows_training() -> None:
    """After many batches the running cut gives about the same count on new rows: within 10 %."""
    coder = build(BatchTopKAutoencoder, 3.0)
    for step in range(50):
        coder.loss(rows(500), step)
    assert float((coder.code(rows(4000)) != 0).sum(-1).double().mean()) == pytest.approx(3.0, rel=0.1)


@every_kind
@both_signs
def test_gradients_are_those_of_the_kept_values(kind: type[Autoencoder], positive: bool) -> None:
    """To W and c: finite differences at a fixed support, 1e-6 in float64."""
    coder, x = build(kind, positive=positive), rows(20)
    coder.loss(x, 0).total.backward()
    support = coder.activate(coder.affine(x)).codes.detach() != 0
    with torch.no_grad():
        for parameter in (coder.weight, coder.bias):
            direction = torch.randn_like(parameter)
            sides = []
            for sign in (1, -1):
                parameter.add_(sign * 1e-5 * direction)
                sides.append((x - coder.generator(coder.affine(x) * support)).square().mean())
                parameter.add_(-sign * 1e-5 * direction)
            slope = (sides[0] - sides[1]) / 2e-5
            torch.testing.assert_close((parameter.grad * direction).sum(), slope, rtol=1e-6, atol=1e-9)


def test_jump_passes_a_rectangle_kernel_to_the_thresholds() -> None:
    """∂/∂log θ = −θ·Σ_b [(∂L/∂z·u + ρ/B)·1(|size − θ| < ε/2)]/ε, ε = θ/2."""
    coder, x = build(JumpReLUAutoencoder), rows(300)
    price = float(coder.price)
    u, level = coder.affine(x).detach(), coder.log_level.detach().exp()
    coder.loss(x, 0).total.backward()
    z = (u * (u.abs() > level)).requires_grad_()
    (slope,) = torch.autograd.grad((x - coder.generator(z)).square().mean(), z)
    count = (z != 0).sum(-1).double().mean()
    steered = price * float(torch.exp(0.02 * (count / 3.0 - 1).clamp(-1, 1)))
    inside = (u.abs() - level).abs() < level / 4
    expected = -(((slope * u + steered / 300) * inside).sum(0)) / 0.5
    torch.testing.assert_close(coder.log_level.grad, expected, rtol=1e-6, atol=1e-12)


def test_jump_price_is_steered_to_the_target() -> None:
    dense, sparse = build(JumpReLUAutoencoder, 3.0), build(JumpReLUAutoencoder, 3.0)
    with torch.no_grad():
        dense.log_level.fill_(-5.0)
        sparse.log_level.fill_(5.0)
    before = float(dense.price)
    for coder in (dense, sparse):
        coder.loss(rows(), 0)
    assert float(dense.price) > before > float(sparse.price)


@every_kind
def test_only_the_dead_are_helped(kind: type[Autoencoder]) -> None:
    """Without dead components the auxiliary loss has no gradient; a dead one receives some."""
    coder, x = build(kind, 1.0, patience=5), rows()
    coder.loss(x, 0)
    u = coder.affine(x)
    coder.silent.zero_()
    (none,) = torch.autograd.grad(coder._auxiliary(u, x), coder.weight, retain_graph=True)
    assert not none.any()
    coder.silent[4] = 6
    (some,) = torch.autograd.grad(coder._auxiliary(u, x), coder.weight)
    assert some[4].any()
    assert not some[[i for i in range(12) if i != 4]].any()


@every_kind
def test_silent_steps_are_counted(kind: type[Autoencoder]) -> None:
    coder = build(kind, 1.0)
    with torch.no_grad():
        coder.weight[2], coder.bias[2] = 0.0, 0.0
    for step in range(3):
        coder.loss(rows(), step)
    assert coder.silent[2] == 3
    assert (coder.silent < 3).any()


@every_kind
def test_normalised_activations(kind: type[Autoencoder]) -> None:
    coder, x = build(kind), rows()
    coder.calibrate(x, 3.0)
    p, z = coder.activation_probability(x), coder.code(x)
    assert torch.equal(p != 0, z != 0)
    assert torch.equal(p.amax(-1)[(z != 0).any(-1)], torch.ones(int((z != 0).any(-1).sum()), dtype=p.dtype))


# ── through the estimator ──


@pytest.fixture(scope="module")
def data() -> np.ndarray:
    """2,400 rows of 24 sources in 16 dimensions, 2 or so active."""
    random = np.random.default_rng(0)
    codes = random.standard_normal((2400, 24)) * (random.random((2400, 24)) < 0.1)
    return (codes @ random.standard_normal((24, 16))).astype(np.float32)


def estimator(name: str, **options: object) -> SparseCoder:
    settings = {"n_active": 3, "max_steps": 300, "batch_size": 128, "random_state": 0, "device": "cpu", **options}
    return SparseCoder(24, method=name, verbose=False, **settings)


@every_name
@both_signs
def test_fit_explains_and_meets_the_count(name: str, positive: bool, data: np.ndarray) -> None:
    """On unseen rows; the count within 10 % for 400 rows."""
    coder = estimator(name, positive=positive).fit(data[:2000])
    codes = coder.transform(data[2000:])
    assert codes.nnz / 400 == pytest.approx(3, rel=0.1)
    assert coder.score(data[2000:]) > 0.5
    if positive:
        assert codes.min() >= 0


@every_name
def test_saved_then_loaded_equals_itself(name: str, data: np.ndarray, tmp_path: Path) -> None:
    coder = estimator(name, max_steps=20).fit(data)
    coder.save(tmp_path / "run")
    again = SparseCoder.load(tmp_path / "run", device="cpu")
    assert (again.transform(data) != coder.transform(data)).nnz == 0


@every_name
def test_resumed_equals_uninterrupted(name: str, data: np.ndarray) -> None:
    from softspike.data import ArrayRows

    saved: dict[int, dict[str, torch.Tensor]] = {}
    whole = estimator(name, max_steps=40).fit_rows(
        ArrayRows(data), on_checkpoint=saved.__setitem__, checkpoint_every=20
    )
    rest = estimator(name, max_steps=40).fit_rows(ArrayRows(data), resume=Checkpoint(20, saved[20]))
    assert np.array_equal(whole.components_, rest.components_)
    assert (whole.transform(data) != rest.transform(data)).nnz == 0


@every_name
@both_signs
def test_an_offset_of_the_data_is_no_part_of_the_codes(name: str, positive: bool) -> None:
    """The decoder's bias is the mean: data moved by 5 in every column has the same codes, to what float32 leaves."""
    x = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    here, there = (
        SparseCoder(12, n_active=3, method=name, positive=positive, max_steps=30, random_state=0).fit(data)
        for data in (x, x + 5)
    )
    one, other = here.transform(x), there.transform(x + 5)
    assert abs(one - other).max() < 1e-3
    np.testing.assert_allclose(there.inverse_transform(other), here.inverse_transform(one) + 5, atol=1e-3)
    assert there.score(x + 5) > 0.3
