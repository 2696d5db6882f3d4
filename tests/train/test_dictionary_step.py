"""Two parameter groups reproduce the published dictionary step: SGD with rate ½ on ½·SSE/B + κ‖A‖².

Our loss is a mean over features plus (2/D)·κ‖A‖², that is 2/D of the published one, so the same step has rate ½·D/2.
"""

import pytest
import torch
from small import small_data
from torch.optim import SGD

from softspike.data import TensorRows
from softspike.encoder import MLPEncoder
from softspike.generator import Dictionary
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.posterior import LaplacePosterior
from softspike.prior import LaplacePrior
from softspike.schedule import Constant, Ramp, StepDecay
from softspike.solver import FistaCoder
from softspike.threshold import FixedLevel, ShiftedSoft, Threshold
from softspike.train import GroupRecipe, Recipe, batch_rows, step_random, train

D, COMPONENTS, BATCH, KAPPA, SEED = 12, 24, 32, 1e-2, 3


def variational():
    encoder = MLPEncoder(D, (32,))
    posterior, threshold = LaplacePosterior(32, COMPONENTS), Threshold(ShiftedSoft, FixedLevel(0.25))
    generator = Dictionary(D, COMPONENTS, frobenius=KAPPA)
    return VariationalCoder(encoder, posterior, LaplacePrior(0.1), generator, BestOf(1), threshold)


def drawn(coder, x, step):
    evidence = coder.evidence(x, step)
    return evidence.codes(evidence.noise(1, step_random(SEED, step)))[0].detach()


CASES = {
    "variational": (variational, drawn),
    "fista": (
        lambda: FistaCoder(Dictionary(D, COMPONENTS, frobenius=KAPPA), penalty=0.5),
        lambda coder, x, step: coder.code(x),
    ),
}


def recipe(n_steps, inference_rate):
    groups = {
        "inference": GroupRecipe(Constant(inference_rate)),
        "generator": GroupRecipe(StepDecay(0.5 * D / 2, 0.99, period=2)),
    }
    return Recipe(n_steps, BATCH, SGD, groups)


@pytest.mark.parametrize("case", CASES)
def test_one_step_is_the_published_step(case):
    build, codes = CASES[case]
    coder, rows = build(), TensorRows(torch.from_numpy(small_data() - 1))
    x = rows.take(batch_rows(SEED, 0, len(rows), BATCH))
    atoms, z = coder.generator.atoms.detach().clone(), codes(coder, x, 0)
    assert 0 < (z != 0).float().mean() < 1

    published = atoms.clone().requires_grad_()
    (0.5 * (x - z @ published.T).square().sum() / BATCH + KAPPA * published.square().sum()).backward()
    expected = atoms - 0.5 * published.grad

    train(coder, rows, recipe(1, inference_rate=0.0), seed=SEED)
    torch.testing.assert_close(coder.generator.atoms.detach(), expected, rtol=1e-5, atol=1e-6)


def test_each_group_follows_its_own_schedule():
    """A rate of 0 leaves the inference network alone, and the dictionary's rate falls as its schedule says."""
    coder, rows = variational(), TensorRows(torch.from_numpy(small_data() - 1))
    before = {name: value.clone() for name, value in coder.state_dict().items()}
    optimizer = train(coder, rows, recipe(5, inference_rate=0.0), seed=SEED)
    rates = {group["name"]: group["lr"] for group in optimizer.param_groups}
    assert rates == {"inference": 0.0, "generator": pytest.approx(3 * 0.99**2)}
    changed = {name for name, value in coder.state_dict().items() if not torch.equal(value, before[name])}
    assert {name.split(".")[0] for name in changed if before[name].isfinite().all()} == {"generator"}


def test_the_first_step_has_the_rate_of_step_0():
    """A schedule that is 0 there, and 1 at the next, moves nothing in one step and something in two."""
    rows, group = TensorRows(torch.from_numpy(small_data() - 1)), GroupRecipe(Ramp(0.0, 1.0))
    for n_steps in (1, 2):
        coder = variational()
        before = [parameter.detach().clone() for parameter in coder.parameters()]
        train(coder, rows, Recipe(n_steps, BATCH, SGD, {"inference": group, "generator": group}), seed=SEED)
        moved = [not torch.equal(old, new) for old, new in zip(before, coder.parameters(), strict=True)]
        assert any(moved) == (n_steps == 2)


def test_the_groups_hold_every_trained_parameter_once():
    coder = variational()
    groups = coder.parameter_groups()
    held = [id(parameter) for group in groups.values() for parameter in group]
    assert sorted(held) == sorted(id(parameter) for parameter in coder.parameters())
    assert [id(p) for p in groups["generator"]] == [id(p) for p in coder.generator.parameters()]
