"""Lowered precision changes the networks only: the laws stay float32, gradients arrive, a scaled loss can go on."""

import numpy as np
import pytest
import torch
from pictures import shapes
from small import same_bits

from softspike import SparseCoder
from softspike.data import PixelRows
from softspike.fitting import Checkpoint
from softspike.generator import ConvGenerator, Dictionary
from softspike.methods import ConvNetworks, Plan, build, method_named
from softspike.objective import BestOfPlain
from softspike.schedule import Constant
from softspike.train import BFloat16, Float16, FullPrecision, Recipe, automatic_precision

PIXELS, _ = shapes(80)


def model(method="thresholded-gaussian-gamma"):
    plan = Plan(64, 6, 0.2, 100, 16, n_samples=3, networks=ConvNetworks((8, 8)))
    return build(method_named(method), plan, 0).coder


def gradients(coder, precision):
    x = torch.from_numpy(PIXELS[:16].reshape(16, 64).astype(np.float32) / 255)
    with precision.lowered(torch.device("cpu")):
        loss = coder.loss(x, 0, torch.Generator().manual_seed(1))
    precision.backward(loss.total)
    return loss, {name: parameter.grad for name, parameter in coder.named_parameters()}


@pytest.mark.parametrize("precision", [FullPrecision(), BFloat16()])
def test_laws_and_loss_are_float32(precision):
    coder, seen = model(), []
    coder.posterior.register_forward_hook(lambda _, given, out: seen.append((given[0], out.sampled.loc)))
    coder.generator.register_forward_hook(lambda _, given, out: seen.append((given[0], out)))
    loss, found = gradients(coder, precision)
    assert {tensor.dtype for pair in seen for tensor in pair} == {torch.float32}
    assert {value.dtype for value in loss} == {torch.float32}
    assert all(gradient.dtype == torch.float32 for gradient in found.values())


def test_networks_are_lowered():
    coder, seen = model(), []
    for part in (coder.encoder.layers[0], coder.generator.affine, coder.generator.convolutions[0]):
        part.register_forward_hook(lambda _, given, out: seen.append(out.dtype))
    gradients(coder, BFloat16())
    assert set(seen) == {torch.bfloat16}


def test_scoring_without_gradient_takes_none_away():
    """Autocast may keep lowered weights of the scoring pass, which has no gradient: the winner's pass needs its own."""
    _, plain = gradients(model(), FullPrecision())
    _, lowered = gradients(model(), BFloat16())
    for name in plain:
        assert lowered[name] is not None, name
        assert bool(lowered[name].isfinite().all())
    # The same direction: bfloat16 has 8 bits, and another winner now and then.
    whole = [torch.cat([g.flatten() for g in found.values()]) for found in (plain, lowered)]
    assert torch.nn.functional.cosine_similarity(*whole, dim=0) > 0.9


def coder(**changes):
    options = {
        "n_components": 6, "method": "thresholded-gaussian", "generator": "conv", "batch_size": 16, "n_samples": 2,
        "max_steps": 8, "random_state": 0, "device": "cpu",
    }  # fmt: skip
    return SparseCoder(**{**options, **changes})


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("method", ["thresholded-gaussian", "spike-and-slab"])
def test_checkpoints_go_on_bit_for_bit(precision, method):
    """Running statistics, channels-last moments of Adam and the scale of the loss are all in a checkpoint."""
    rows, kept = PixelRows(PIXELS), []
    whole = coder(precision=precision, method=method, mirrored=True)
    whole.fit_rows(rows, on_checkpoint=lambda *state: kept.append(Checkpoint(*state)), checkpoint_every=3)
    assert [state.step for state in kept] == [3, 6, 8]
    assert ("precision.scale" in kept[0].tensors) == (precision == "float16")
    again = coder(precision=precision, method=method, mirrored=True).fit_rows(rows, resume=kept[0])
    assert same_bits(whole.model_tensors(), again.model_tensors())


def test_an_overflow_costs_a_step_and_halves_the_scale():
    precision, parameter = Float16("cpu", first_scale=2.0**16), torch.nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    for factor in (torch.inf, 1.0):
        optimizer.zero_grad()
        precision.backward(parameter * factor)
        precision.unscale(optimizer)
        precision.step(optimizer)
    assert float(parameter.detach()) == pytest.approx(0.9)
    assert float(precision.state()["scale"]) == 2.0**15


def test_a_steered_parameter_sees_the_true_gradient():
    """The level of the default method is moved by the model, not by the optimiser: its gradient is unscaled as well."""
    precision, own, steered = Float16("cpu"), torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([own], lr=0.1)
    precision.backward(2 * own + 3 * steered)
    precision.unscale(optimizer, [steered])
    assert float(own.grad) == 2
    assert float(steered.grad) == 3


def test_what_automatic_means():
    cpu = torch.device("cpu")
    assert isinstance(automatic_precision(ConvGenerator((8, 8), 3), cpu), FullPrecision)
    assert isinstance(automatic_precision(Dictionary(8, 3), torch.device("cuda")), FullPrecision)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_deep_models_train_in_mixed_precision():
    device = torch.device("cuda")
    assert isinstance(automatic_precision(ConvGenerator((8, 8), 3), device), BFloat16 | Float16)
    trained = coder(device="cuda", max_steps=30).fit_rows(PixelRows(PIXELS))
    assert np.isfinite(trained.score(PIXELS.reshape(80, -1).astype(np.float32) / 255))


def test_recipe_of_the_paper():
    plan = Plan(64, 6, 0.2, 100, 16, networks=ConvNetworks((8, 8), rate=Constant(3e-4)))
    built = build(method_named("gaussian"), plan, 0)
    optimizer = built.recipe.build(built.coder.parameter_groups())
    assert isinstance(built.recipe, Recipe)
    for group in optimizer.param_groups:
        assert (group["lr"], group["betas"], group["weight_decay"]) == (3e-4, (0.5, 0.999), 1e-5)
    assert not isinstance(built.coder.objective, BestOfPlain)
