"""Your own distribution: a Gumbel posterior in thirty lines, trained by the same loop as everything else."""

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.distributions import Gumbel

from softspike import SparseCoder
from softspike.data import photograph_patches
from softspike.encoder import LinearEncoder
from softspike.generator import Dictionary
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.posterior import Beliefs, Posterior, noise, place
from softspike.prior import NormalPrior

STEPS = 1000


class GumbelPosterior(Posterior):
    """q(s|x) = Gumbel(μ(x), b(x)): one linear head for μ, one for log b."""

    def __init__(self, width: int, n_components: int):
        super().__init__()
        self.location, self.log_scale = nn.Linear(width, n_components), nn.Linear(width, n_components)

    def forward(self, h: Tensor, step: int | None = None) -> Beliefs:
        law = Gumbel(self.location(h), self.log_scale(h).clamp(-20, 20).exp(), validate_args=False)
        return Beliefs(sampled=law, settled=law)


@noise.register
def _(law: Gumbel, n_samples: int, generator: torch.Generator | None = None) -> Tensor:
    u = torch.rand((n_samples, *law.batch_shape), generator=generator, device=law.loc.device)
    return -torch.log(-torch.log(u.clamp(1e-7, 1 - 1e-7)))


@place.register
def _(law: Gumbel, noise: Tensor) -> Tensor:
    return law.loc + law.scale * noise


X, unseen = photograph_patches(10_000, 500, size=8)
model = VariationalCoder(
    encoder=LinearEncoder(64), posterior=GumbelPosterior(64, 64), prior=NormalPrior(variance=0.1),
    generator=Dictionary(64, 64), objective=BestOf(n_samples=10), beta=1e-3,
)  # fmt: skip
coder = SparseCoder(64, method=model, max_steps=STEPS, random_state=0).fit(X)
print(f"explained variance of unseen patches by the posterior's mean: {coder.score(unseen):.3f}")
coder.plot_components(image_shape=(8, 8))
plt.show()
