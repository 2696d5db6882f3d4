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
# Of the published rates, which diverge on random data with another encoder than the MLP, or with dense codes.
CALM = {"linear": 0.01, "unrolled": 0.01, "gaussian": 0.01, "laplacian": 0.01, "spike-and-slab": 0.01}
CALM_ALONE = 0.1  # for one sample of the others
Run = Callable[[], None]
# Models by a short name: the encoder in place of the perceptron, or what is added. Others go by their method's name.
METHODS = {
    "mlp": "thresholded-laplacian", "linear": "thresholded-laplacian", "unrolled": "thresholded-laplacian",
    "gamma": "thresholded-laplacian-gamma",
}  # fmt: skip
BY_HAND = ("mlp", "gaussian", "laplacian", "thresholded-gaussian")


class BareMLP(Encoder):
    """The perceptron as torch's layers, one after the other."""

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.layers, self.width = encoder.layers, encoder.width

    def forward(self, x: Tensor) -> Tensor:
        return affine_relu_plainly(x, [layer for layer in self.layers if isinstance(layer, nn.Linear)])


def bare_copy(coder: VariationalCoder, kind: type[BareBestOf] = BareBestOf) -> BareBestOf:
    """The hand-written model with a copy of the weights of one of ours."""
    linear = [layer for layer in coder.encoder.modules() if isinstance(layer, nn.Linear)]
    laplace, threshold, posterior = isinstance(coder.posterior, LaplacePosterior), coder.threshold, coder.posterior
    level = None if threshold is None else float(threshold.level.value)  # type: ignore[attr-defined]
    generator, widths, prior = coder.generator, [layer.out_features for layer in linear], float(coder.prior.scale)
    bare = kind(generator.n_features, generator.n_components, widths, prior, level, laplace)
    own = [layer for layer in bare.encoder if isinstance(layer, nn.Linear)]
    heads = [layer for layer in posterior.children() if isinstance(layer, nn.Linear)]
    bare.to(linear[0].weight.dtype)
    for mine, its in zip([*own, bare.location, bare.log_scale], [*linear, *heads], strict=True):
        mine.load_state_dict(its.state_dict())
    bare.atoms.data.copy_(atoms_of(generator))
    return bare


def share_of(model: str, n_samples: int) -> float:
    """Of the published rates that a model is trained with here."""
    return CALM.get(model, CALM_ALONE if n_samples == 1 else 1.0)


def hand_written(
    model_name: str, n_samples: int, n_steps: int, compiled: bool = False, kind: type[BareBestOf] = BareBestOf
) -> Run:
    """A function that runs so many steps of the loop written by hand, perhaps with its loss compiled by torch."""
    rows, model = made_rows(), bare_copy(built(BestOf(n_samples), model_name), kind)
    if compiled:
        torch.compiler.reset()  # each model is compiled for its own J, none of them as one variant too many
        model.losses = torch.compile(model.losses, dynamic=False)  # type: ignore[method-assign]
    share = share_of(model_name, n_samples)
    BareTraining(model, SETTLING, n_samples, share=share).run(rows, SETTLING)
    return lambda: BareTraining(model, n_steps, n_samples, share=share).run(rows, n_steps)


def made_rows() -> Tensor:
    return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0))


def built(objective: Objective, model: str) -> VariationalCoder:
    coder: Any = build_published(PUBLISHED[METHODS.get(model, model)], Study(), SCRIPTS, objective).coder
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
    for schedule in ("warm_up", "temperature"):
        if hasattr(coder.posterior, schedule):
            setattr(coder.posterior, schedule, Constant(getattr(coder.posterior, schedule).final))
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
        share = share_of(model, getattr(objective, "n_samples", 1))
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
        self.descent.learn(atoms, rest, location)
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
