"""Training steps on a CPU that can be timed: the paper's model with several encoders, and its products alone."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD

from benchmarks.best_of_bare import BareBestOf, BareTraining
from softspike.coder import Loss
from softspike.data import TensorRows
from softspike.encoder import Encoder, LinearEncoder, MLPEncoder, UnrolledEncoder
from softspike.generator import atoms_of
from softspike.layers import affine_relu_plainly
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.model import VariationalCoder
from softspike.objective import BestOf, Objective
from softspike.posterior import LaplacePosterior
from softspike.schedule import Constant, Scaled
from softspike.train import FullPrecision, Precision, Recipe, train
from softspike.train.direct import DirectStep, direct
from softspike.train.step import Step
from softspike.train.team import Alone

ROWS, WIDTH, SETTLING = 1000, 256, 100  # steps before the first that is timed: by then a tenth of the codes is active
CALM = 0.01  # of the published rates, which were made for the MLP: with other encoders they diverge
Run = Callable[[], None]


class BareMLP(Encoder):
    """The perceptron as torch's layers, one after the other."""

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.layers, self.width = encoder.layers, encoder.width

    def forward(self, x: Tensor) -> Tensor:
        return affine_relu_plainly(x, [layer for layer in self.layers if isinstance(layer, nn.Linear)])


def bare_copy(coder: VariationalCoder) -> BareBestOf:
    """The hand-written model with the weights of one of ours, which stay where they are."""
    linear = [layer for layer in coder.encoder.modules() if isinstance(layer, nn.Linear)]
    posterior: Any = coder.posterior
    threshold: Any = coder.threshold
    widths, level, prior = [layer.out_features for layer in linear], threshold.level.value, coder.prior.scale
    bare = BareBestOf(coder.generator.n_features, coder.generator.n_components, widths, float(level), float(prior))
    bare.to(linear[0].weight.dtype)
    own = [layer for layer in bare.encoder if isinstance(layer, nn.Linear)]
    pairs = zip([*own, bare.location, bare.log_scale], [*linear, posterior.location, posterior.log_scale], strict=True)
    for mine, its in pairs:
        mine.load_state_dict(its.state_dict())
    bare.atoms.data.copy_(atoms_of(coder.generator))
    return bare


def hand_written(n_samples: int, n_steps: int, compiled: bool = False) -> Run:
    """The same for the loop written by hand, perhaps with its loss compiled by torch."""
    rows, model = made_rows(), bare_copy(built(BestOf(n_samples), "mlp"))
    if compiled:
        model.losses = torch.compile(model.losses)  # type: ignore[method-assign]
    BareTraining(model, SETTLING, n_samples).run(rows, SETTLING)
    return lambda: BareTraining(model, n_steps, n_samples).run(rows, n_steps)


def made_rows() -> Tensor:
    return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0))


def built(objective: Objective, model: str) -> VariationalCoder:
    method = "thresholded-laplacian-gamma" if model == "gamma" else "thresholded-laplacian"
    coder: Any = build_published(PUBLISHED[method], Study(), SCRIPTS, objective).coder
    if model == "linear":
        coder.encoder = LinearEncoder(WIDTH)
    elif model == "unrolled":
        coder.encoder = UnrolledEncoder(coder.generator, coder.threshold.level, n_steps=4, rate=0.2)
    if model in ("linear", "unrolled"):
        coder.posterior = LaplacePosterior(WIDTH, WIDTH)
        with torch.no_grad():  # exp(−λ/b) = 1/10 from the start
            coder.posterior.location.weight.mul_(0.01)
            coder.posterior.log_scale.weight.mul_(0.01)
            coder.posterior.log_scale.bias.fill_(math.log(float(coder.threshold.level.value) / math.log(10)))
    coder.posterior.warm_up = Constant(1.0)
    return coder


def stepper(
    objective: Objective, n_steps: int, model: str = "mlp", bare: bool = False, precision: Precision = FullPrecision()
) -> Run:
    """A function that runs so many training steps of one model, which has settled."""
    coder = built(objective, model)
    if bare and isinstance(coder.encoder, MLPEncoder):
        coder.encoder = BareMLP(coder.encoder)

    def recipe(n: int) -> Recipe:
        made = build_published(PUBLISHED["thresholded-laplacian"], Study(n_steps=n), SCRIPTS, objective).recipe
        share = CALM if model in ("linear", "unrolled") else 1.0
        groups = {name: replace(group, rate=Scaled(group.rate, share)) for name, group in made.groups.items()}
        return replace(made, groups=groups, optimizer=partial(SGD, fused=False) if bare else made.optimizer)

    rows = TensorRows(made_rows())
    short = recipe(n_steps)
    train(coder, rows, recipe(SETTLING), precision=precision)
    return lambda: train(coder, rows, short, precision=precision) and None


class Products(DirectStep):
    """What every step of this model must do and nothing else: its products with all weights, and their descent."""

    def _gradients(self, x: Tensor, step: int) -> Loss:
        hidden, location, raw = self._through_networks(x)
        atoms, slope = self.dictionary.weight, 1e-6  # so small that weights stay what they are
        rest = (location @ atoms.T).mul_(slope)
        by_codes = rest @ atoms
        torch.mm(rest.T, location, out=self.descent.room(atoms))
        self.descent.arrived(atoms)
        self._into_networks(hidden, by_codes, raw.mul_(slope))
        return Loss(*torch.zeros(4))


def products(n_steps: int, model: str, precision: Precision) -> Run | None:
    """A function that runs so many steps of products alone; None where gradients are not written out."""
    coder = built(BestOf(20), model)
    recipe = build_published(PUBLISHED["thresholded-laplacian"], Study(), SCRIPTS, BestOf(20)).recipe
    one = Step(coder, recipe.build(coder.parameter_groups()), recipe, 0, torch.device("cpu"), precision, Alone())
    if not direct(one):
        return None
    take, x = Products(one), torch.randn(recipe.batch_size, WIDTH)
    take(x, 0)

    def run() -> None:
        for step in range(n_steps):
            take(x, step)

    return run
