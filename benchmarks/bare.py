"""Training steps written out by hand with plain tensors: what the library's layers must not cost.

A rival is one function from the weights to start with to a step: no classes, no distributions, no library code. It must
do the same arithmetic as the method it stands for; `benchmarks.step` checks that before it times anything. To add one,
write the function and give it a line in RIVALS.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn.functional import logsigmoid, relu

__all__ = ["RIVALS", "Setting"]

Weights = dict[str, Tensor]  # named as in the library's state dict
Step = Callable[[Tensor, int, Generator | None], Tensor]  # (x, step number, randomness) → loss


class Setting(NamedTuple):
    """What both sides are given."""

    n_features: int
    n_components: int
    n_active: float
    n_steps: int  # the horizon of the schedules


def one_cycle(peak: float, n_steps: int, rise: float, start: float, end: float) -> Callable[[int], float]:
    """Linear from start·peak to the peak over the first share of the steps, then cosine down to the end."""
    top = rise * n_steps - 1

    def rate(t: int) -> float:
        if t <= top:
            return peak * (start + (1 - start) * t / top)
        return end + (peak - end) * (1 + math.cos(math.pi * (t - top) / (n_steps - 1 - top))) / 2

    return rate


def unrolled(x: Tensor, atoms: Tensor, level: Tensor, rates: Tensor, levels: Tensor, widths: Tensor) -> Tensor:
    """Gated descent on ½‖x − Az‖², no step longer than brings the error back to where it was."""
    gram, slope = atoms.T @ atoms, x @ atoms
    z, mu = torch.zeros_like(slope), rates[0] * slope
    for k in range(len(levels)):
        path = mu * torch.sigmoid((mu.abs() - level * levels[k]) / (level * widths[k])) - z
        bend = path @ gram
        gain = (slope * path).sum(-1, keepdim=True)
        length = (2 * gain / (path * bend).sum(-1, keepdim=True).clamp_min(1e-9)).clamp(0, 1)
        z, slope = z + length * path, slope - length * bend
        mu = z + rates[k + 1] * slope
    return mu


class Bound(NamedTuple):
    nats: Tensor  # (B,)
    noise: Tensor  # v
    count: Tensor  # G
    fall: Tensor  # ∂G/∂λ


def expected(x: Tensor, atoms: Tensor, mu: Tensor, sigma: Tensor, level: Tensor, slab: Tensor, logit: Tensor) -> Bound:
    """The bound of hard-thresholded Gaussians in closed form."""
    a, b, root = (level - mu) / sigma, (level + mu) / sigma, math.sqrt(2 * math.pi)
    at_a, at_b = torch.exp(-0.5 * a.square()) / root, torch.exp(-0.5 * b.square()) / root
    gamma = 0.5 * torch.erfc(a * math.sqrt(0.5)) + 0.5 * torch.erfc(b * math.sqrt(0.5))
    mean = mu * gamma + sigma * (at_a - at_b)
    square = (mu.square() + sigma.square()) * gamma + sigma * ((level + mu) * at_a + (level - mu) * at_b)
    silent = (1 - gamma).clamp_min(1e-7)
    kl = silent * (silent.log() - logsigmoid(-logit)) + gamma * ((slab / sigma).log() - logsigmoid(logit) - 0.5)
    kl = kl - 0.5 * (a * at_a + b * at_b) + square / (2 * slab.square())
    variance = (square - mean.square()).clamp_min(0)
    misfit = ((x - mean @ atoms.T).square().sum(-1) + variance @ atoms.square().sum(0)) / x.shape[1]
    v = misfit.detach().mean()
    nats = 0.5 * x.shape[1] * (misfit / v + torch.log(2 * math.pi * v)) + kl.sum(-1)
    fall = (-(at_a + at_b) / sigma).sum(-1).mean().detach().clamp_max(-1e-3)
    return Bound(nats, v, gamma.sum(-1).mean(), fall)


def bare_hard_gaussian(weights: Weights, setting: Setting) -> Step:
    """The unrolled encoder, hard-thresholded Gaussians, the expected bound, and the level held at its count."""
    names = ["encoder.log_rate", "encoder.log_level", "encoder.log_width", "posterior.log_ratio", "prior.log_scale"]
    log_rate, log_level, log_width, log_ratio, log_slab = others = [weights[name].requires_grad_() for name in names]
    atoms, logit, beta = weights["generator.weight"].requires_grad_(), weights["prior.logit"], weights["beta"]
    level, price = weights["threshold.level.value"].requires_grad_(), weights["threshold.level.price"]
    optimizer = torch.optim.Adam([*others, atoms], lr=0.0)
    rate = one_cycle(4e-3, setting.n_steps, 0.02, 0.01, 0.0)

    def step(x: Tensor, t: int, random: Generator | None) -> Tensor:
        optimizer.param_groups[0]["lr"] = rate(t)
        held = level.detach()
        mu = unrolled(x, atoms, held, log_rate.exp(), log_level.exp(), log_width.clamp(-3.0, 0.5).exp())
        sigma = held * log_ratio.clamp(-5.0, 1.0).exp()
        bound = expected(x, atoms, mu, sigma, level, log_slab.exp(), logit)
        loss = bound.nats.mean() + price * bound.count
        optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            atoms.grad -= atoms * (atoms * atoms.grad).sum(0)
            torch.nn.utils.clip_grad_norm_([*others, atoms], 10.0)
            optimizer.step()
            atoms.div_(atoms.norm(dim=0))
            beta.lerp_(2 * bound.noise / x.shape[1], 1.0 if t == 0 else 0.01)
            own = level.grad - price * bound.fall
            price.lerp_((-own / bound.fall).clamp(-20.0, 50.0), 0.5 if t < 20 else 0.05)
            miss = (bound.count - setting.n_active) / (bound.fall * level)
            level.mul_((-0.3 * miss).clamp(-0.1, 0.1).exp())
            level.grad = None
        return loss.detach()

    return step


def bare_thresholded_laplacian(weights: Weights, setting: Setting) -> Step:
    """The paper's: an MLP, thresholded Laplace noise straight through, one sample, the dictionary's own rate."""
    layers = [(weights[f"encoder.layers.{i}.weight"], weights[f"encoder.layers.{i}.bias"]) for i in range(0, 8, 2)]
    layers += [(weights[f"posterior.{head}.weight"], weights[f"posterior.{head}.bias"]) for head in HEADS]
    atoms, level, prior = weights["generator.weight"], weights["threshold.level.value"], weights["prior.scale"]
    inference = [weight.requires_grad_() for pair in layers for weight in pair]
    groups = [{"params": inference}, {"params": [atoms.requires_grad_()]}]
    optimizer = torch.optim.Adam(groups, lr=0.0)
    rates = [one_cycle(peak, setting.n_steps, 0.05, 1 / 25, 4e-8) for peak in (3e-4, 3e-3)]
    pace, beta = setting.n_steps / 240_000, 1e-2

    def loss_of(x: Tensor, t: int, random: Generator | None) -> Tensor:
        h = x
        for weight, bias in layers[:-2]:
            h = relu(h @ weight.T + bias)
        mu, log_scale = (h @ weight.T + bias for weight, bias in layers[-2:])
        scale = log_scale.clamp(-20.0, 20.0).exp()
        u = torch.rand(mu.shape, generator=random) - 0.5
        warm = min(0.1 + 2e-4 / pace * max(t - round(1500 * pace), 0), 1.0)
        noise = -u.sign() * torch.log((1 - 2 * u.abs()).clamp_min(1e-6)) * (warm * scale)
        fixed = noise.detach()
        kept = fixed.sign() * (fixed.abs() - level).clamp_min(0) + (fixed.abs() > level) * mu.detach()
        s = mu + noise
        z = kept + (s - s.detach())
        ratio = scale / prior
        kl = -ratio.log() + mu.abs() / prior + ratio * torch.exp(-mu.abs() / scale) - 1
        misfit = (x - z @ atoms.T).square().mean(-1)
        return (misfit + beta * kl.sum(-1)).mean() + 2 / x.shape[1] * 1e-4 * atoms.square().sum()

    def step(x: Tensor, t: int, random: Generator | None) -> Tensor:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate(t)
        loss = loss_of(x, t, random)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*inference, atoms], 1.0)
        optimizer.step()
        return loss.detach()

    return step


HEADS = ("location", "log_scale")
RIVALS: dict[str, Callable[[Weights, Setting], Step]] = {
    "hard-gaussian": bare_hard_gaussian,
    "thresholded-laplacian": bare_thresholded_laplacian,
}
