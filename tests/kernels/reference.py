"""The plain path fed with the kernels' random numbers: what a fused step must equal."""

import torch

from softspike.kernels.counter import BASE, SPIKE, laplace_noise, normal_noise, philox, standard_gamma, unit
from softspike.objective import BestOf
from softspike.objective.evidence import Noise
from softspike.posterior import LaplacePosterior, SpikeSlabPosterior
from softspike.train.order import batch_rows, noise_key

TINY = torch.finfo(torch.float32).tiny


def noise_of(coder, evidence, seed, step, n_samples):
    """The noise of samples 0 … J − 1, as the kernels draw it."""
    n, d = len(evidence.x), coder.generator.atoms.shape[1]
    element = torch.arange(n * d).reshape(n, d)
    key, groups = noise_key(seed), range(-(-n_samples // 4))

    def words(stream):
        return [[unit(word) for word in philox(key, element, group, step, stream)] for group in groups]

    if isinstance(coder.posterior, LaplacePosterior):
        base = [laplace_noise(u) for four in words(BASE) for u in four]
    else:
        base = [n for a, b, c, d in words(BASE) for n in (*normal_noise(a, b), *normal_noise(c, d))]
    drawn = torch.stack(base[:n_samples])
    if isinstance(coder.posterior, SpikeSlabPosterior):
        spike = torch.stack([torch.logit(u, eps=1e-6) for four in words(SPIKE) for u in four][:n_samples])
        drawn = torch.stack([drawn, spike], dim=-2)
    if evidence.level is None:
        return Noise(drawn, None)
    alpha = evidence.level.concentration.detach()
    levels = [g for group in groups for g in standard_gamma(key, alpha, element, group, step)]
    return Noise(drawn, torch.stack(levels[:n_samples]).clamp_min(TINY))


def train_plainly(coder, rows, recipe, seed):
    """The plain loop with that noise; returns the mean loss terms (misfit, KL, active) of all steps."""
    optimizer, n_samples, sums = recipe.build(coder.parameter_groups()), coder.objective.n_samples, torch.zeros(3)
    for step in range(recipe.n_steps):
        recipe.set_rates(optimizer, step)
        x = rows.take(batch_rows(seed, step, len(rows), recipe.batch_size))
        evidence = coder.evidence(x, step)
        noise = noise_of(coder, evidence, seed, step, n_samples)
        with torch.no_grad():
            winner = evidence.misfit(evidence.codes(noise)).argmin(0)
        terms = BestOf.terms(evidence, noise.pick(winner))
        optimizer.zero_grad()
        (terms.loss.mean() + terms.unit * coder.generator.penalty()).backward()
        optimizer.step()
        sums += torch.stack([terms.misfit.mean(), terms.kl.mean(), terms.active.mean()]).detach()
    return sums / recipe.n_steps
