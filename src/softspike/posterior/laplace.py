"""q(s|x) = Laplace(μ(x), b(x))."""

from torch import Tensor, nn
from torch.distributions import Laplace

from softspike.posterior.beliefs import LOG_LIMIT, Beliefs, Posterior
from softspike.schedule import Constant, Schedule, Time

__all__ = ["LaplacePosterior"]


class LaplacePosterior(Posterior):
    """One linear head for μ and one for log b. While training, the sampled scale is ω(step)·b; the KL is that of b."""

    def __init__(self, width: int, n_components: int, warm_up: Schedule = Constant(1.0)):
        super().__init__()
        self.location = nn.Linear(width, n_components)
        self.log_scale = nn.Linear(width, n_components)
        self.warm_up = warm_up

    def forward(self, h: Tensor, step: Time | None = None) -> Beliefs:
        location, scale = self.location(h), self.log_scale(h).clamp(-LOG_LIMIT, LOG_LIMIT).exp()
        settled = Laplace(location, scale, validate_args=False)
        if step is None:
            return Beliefs(settled, settled)
        return Beliefs(Laplace(location, self.warm_up(step) * scale, validate_args=False), settled)
