"""Closed-form divergences of the laws torch does not know, registered with `torch.distributions.kl_divergence`.

Normal‖Normal, Laplace‖Laplace, Gamma‖Gamma and the mixed Normal/Laplace pairs come with torch.
"""

from torch import Tensor
from torch.distributions import kl_divergence, register_kl
from torch.nn.functional import logsigmoid

from softspike.posterior.spike_slab import SpikeSlab

__all__ = ["bernoulli_kl"]


def bernoulli_kl(logits: Tensor, prior_logits: Tensor) -> Tensor:
    """KL(Bern(γ) ‖ Bern(γ₀)) = γ log(γ/γ₀) + (1−γ) log((1−γ)/(1−γ₀)), from logits."""
    gamma = logits.sigmoid()
    on = logsigmoid(logits) - logsigmoid(prior_logits)
    off = logsigmoid(-logits) - logsigmoid(-prior_logits)
    return gamma * on + (1 - gamma) * off


@register_kl(SpikeSlab, SpikeSlab)
def _spike_slab_pair(q: SpikeSlab, p: SpikeSlab) -> Tensor:
    """γ·KL(slab ‖ slab₀) + KL(Bern(γ) ‖ Bern(γ₀))."""
    return q.activation_probability * kl_divergence(q.slab, p.slab) + bernoulli_kl(q.logits, p.logits)
