"""q(s|x) = N(μ(x), σ²(x))."""

from torch import Tensor, nn
from torch.distributions import Normal

from softspike.posterior.beliefs import LOG_LIMIT, Beliefs, Posterior
from softspike.schedule import Time

__all__ = ["GaussianPosterior"]


class GaussianPosterior(Posterior):
    """One linear head for μ and one for log σ²: s = μ + σε."""

    def __init__(self, width: int, n_components: int):
        super().__init__()
        self.location = nn.Linear(width, n_components)
        self.log_variance = nn.Linear(width, n_components)

    def forward(self, h: Tensor, step: Time | None = None) -> Beliefs:
        law = Normal(
            self.location(h), (0.5 * self.log_variance(h).clamp(-LOG_LIMIT, LOG_LIMIT)).exp(), validate_args=False
        )
        return Beliefs(law, law)
