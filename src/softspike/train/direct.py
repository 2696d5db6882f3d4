"""Steps of the paper's models on a CPU with their gradients written out, into memory that stays.

Autograd finds the same gradients, in new memory at every step, which a perceptron of a million weights pays for in
caches; and it makes some forty small operations of what is a few loops here.
"""

import torch
from torch import Tensor, nn

from softspike.coder import Loss
from softspike.encoder import LinearEncoder, MLPEncoder
from softspike.generator import Dictionary, UnitNormDictionary
from softspike.layers.affine import affine, back, fast, hidden_layers, knows_bfloat16
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.objective.compiled import draw_key, knows, worth
from softspike.posterior import GaussianPosterior, LaplacePosterior
from softspike.posterior.beliefs import LOG_LIMIT
from softspike.threshold import SLOPES
from softspike.train.descent import descent_of
from softspike.train.order import step_random
from softspike.train.precision import BFloat16, FullPrecision
from softspike.train.step import Step
from softspike.train.team import Alone

__all__ = ["DirectStep", "direct"]


def direct(one: Step) -> bool:
    """Whether gradients are written out for this step: the perceptron or no encoder, a dictionary, BestOf(J), alone."""
    coder = one.coder
    return (
        type(coder) is VariationalCoder
        and type(coder.encoder) in (MLPEncoder, LinearEncoder)
        and type(coder.posterior) in (GaussianPosterior, LaplacePosterior)
        and type(coder.generator) in (Dictionary, UnitNormDictionary)
        and type(coder.objective) is BestOf
        and isinstance(one.team, Alone)
        and (type(one.precision) is FullPrecision or (type(one.precision) is BFloat16 and knows_bfloat16()))
        and one.device.type == "cpu"
        and not one.steered
        and all(parameter.requires_grad for parameter in coder.parameters())
        and worth(coder.objective.n_samples, one.recipe.batch_size, coder.generator.n_components)
        and _known(coder)
    )


@torch.no_grad()
def _known(coder: VariationalCoder) -> bool:
    """Whether there is compiled code for all of it; an input of zeros tells."""
    x = torch.zeros(1, coder.generator.n_features, dtype=next(coder.parameters()).dtype)
    return fast(x) and knows(coder.evidence(x, 0))


class DirectStep:
    """What `Step` does where `direct` says yes; equal to it up to rounding, from the same random numbers."""

    def __init__(self, one: Step):
        coder = one.coder
        assert isinstance(coder, VariationalCoder)
        assert isinstance(coder.generator, Dictionary | UnitNormDictionary)
        assert isinstance(coder.posterior, LaplacePosterior | GaussianPosterior)
        assert isinstance(coder.objective, BestOf)
        assert coder.threshold is not None
        self.one, self.coder, self.n_samples = one, coder, coder.objective.n_samples
        self.posterior, self.threshold, self.dictionary = coder.posterior, coder.threshold, coder.generator
        head = self.posterior.log_scale if isinstance(self.posterior, LaplacePosterior) else self.posterior.log_variance
        self.layers = [layer for layer in coder.encoder.modules() if isinstance(layer, nn.Linear)]
        self.heads = [self.posterior.location, head]
        self.low = type(one.precision) is BFloat16
        own = [layer.weight for layer in [*self.layers, *self.heads]]
        own += [layer.bias for layer in [*self.layers, *self.heads]]
        self.used = [part.detach().bfloat16() if self.low else part.detach() for part in own]
        self.descent = descent_of(one, list(zip(own, self.used, strict=True)) if self.low else ())

    @torch.no_grad()
    def __call__(self, x: Tensor, step: int) -> Loss:
        self.one.recipe.set_rates(self.one.optimizer, step)
        loss = self._gradients(x, step)
        self.descent.finish()
        return loss

    def _gradients(self, x: Tensor, step: int) -> Loss:
        """Forwards and backwards; all gradients go to the descent."""
        from softspike.kernels.cpu.heads import head_slopes_of, scales_of  # numba takes a second to load
        from softspike.kernels.cpu.winner import winner_of

        coder, posterior, atoms = self.coder, self.posterior, self.dictionary.weight
        hidden, location, raw = self._through_networks(x)
        if laplace := isinstance(posterior, LaplacePosterior):
            scaling = 1.0, posterior.warm_up(step), LOG_LIMIT  # samples are drawn at ω·b
        else:
            scaling = 0.5, 1.0, LOG_LIMIT
        settled, scale = scales_of(raw, *scaling)
        w = winner_of(
            x, location, scale, settled, self.threshold.level.value, coder.prior.scale, atoms, self.n_samples,
            draw_key(step_random(self.one.seed, step)), laplace,
        )  # fmt: skip

        unit, n = 2 / x.shape[1], len(x)
        r = w.rest * (-unit / n)  # ∂/∂x̂ of the mean misfit
        by_heads = head_slopes_of(
            back(r, atoms), w.noise, w.codes, w.by_location, w.by_scale, coder.beta / n, raw, settled, *scaling,
            SLOPES[type(self.threshold.gradient)],
        )  # fmt: skip
        misfit, kl = w.misfit.mean(), w.kl.mean()
        loss = Loss(misfit + coder.beta * kl + unit * self.dictionary.penalty(), misfit, kl, w.active.mean())
        decay = 2 * unit * self.dictionary.frobenius if isinstance(self.dictionary, Dictionary) else 0.0
        self.descent.learn(atoms, r, w.codes, decay)
        self._into_networks(hidden, *by_heads)
        return loss

    def _through_networks(self, x: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        """The encoder's layers, and the outputs of the two heads in float32."""
        n = len(self.layers)
        weights, biases = self.used[: n + 2], self.used[n + 2 :]
        hidden = hidden_layers(x.to(weights[0].dtype), weights[:n], biases[:n])
        location, raw = (affine(hidden[-1], weights[k], biases[k]).float() for k in (n, n + 1))
        return hidden, location, raw

    def _into_networks(self, hidden: list[Tensor], *by_heads: Tensor) -> None:
        """∂/∂W and ∂/∂b of the heads, whose outputs have these slopes, and of the encoder's layers before them."""
        from softspike.kernels.cpu.relu import relu_back_  # numba takes a second to load

        grads, n = [grad.to(hidden[-1].dtype) for grad in by_heads], len(self.layers)
        grad = back(grads[0], self.used[n]).add_(back(grads[1], self.used[n + 1])) if self.layers else grads[0]
        for head, by_head, by_low in zip(self.heads, by_heads, grads, strict=True):
            torch.sum(by_head, 0, out=self.descent.room(head.bias))
            self.descent.learn(head.weight, by_low, hidden[-1])
        for k in range(n - 1, -1, -1):
            relu_back_(grad, hidden[k + 1], self.descent.room(self.layers[k].bias))
            before = back(grad, self.used[k]) if k > 0 else grad
            self.descent.learn(self.layers[k].weight, grad, hidden[k])
            grad = before
