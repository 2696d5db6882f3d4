"""The best of J samples as one would write it by hand: plain torch, all J on the tape. Nothing here is the library's.

The paper's models with two heads, once they are warm, with the published recipe: a perceptron, Laplace or Normal noise,
a threshold on it with its gradient straight through, one product for all J codes, the least of J losses.
`tests/test_benchmarks.py` holds it against the library: the same losses and weights from the same random numbers.
`FirstBestOf` is the same loss as one writes it first, by `torch.distributions`.
"""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Laplace, Normal, kl_divergence
from torch.nn.functional import softshrink
from torch.optim import SGD

from benchmarks.bare import one_cycle

__all__ = ["BareBestOf", "BareTraining", "FirstBestOf"]


class BareBestOf(nn.Module):
    """Perceptron, two heads and a dictionary; Laplace or Normal codes, behind a threshold or not."""

    def __init__(
        self,
        n_features: int,
        n_components: int,
        widths: Sequence[int],
        prior: float,
        level: float | None,
        laplace: bool,
    ):
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in zip([n_features, *widths], widths, strict=False):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.encoder = nn.Sequential(*layers)
        self.location, self.log_scale = (nn.Linear(widths[-1], n_components) for _ in range(2))  # Normal: log σ²
        self.atoms = nn.Parameter(nn.functional.normalize(torch.randn(n_features, n_components), dim=0))
        self.prior, self.level, self.laplace = prior, level, laplace

    def inference(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.parameters() if parameter is not self.atoms]

    def losses(self, x: Tensor, n_samples: int, beta: float, random: Generator | None = None) -> Tensor:
        """minⱼ (mean over features of (x − Azⱼ)²) + β·KL of each input, (B,)."""
        h = self.encoder(x)
        mu, raw = self.location(h), self.log_scale(h).clamp(-20.0, 20.0)
        scale = raw.exp() if self.laplace else (0.5 * raw).exp()
        noise = scale * self.standard_noise((n_samples, *mu.shape), x.dtype, random)
        z = s = mu + noise
        if self.level is not None:
            kept = softshrink(noise.detach(), self.level)
            z = torch.addcmul(kept, kept != 0, mu) + (s - s.detach())  # as published: dz/dμ = 2 where z ≠ 0
        misfit = (x - z @ self.atoms.T).square().mean(-1)
        return misfit.min(0).values + beta * self.divergence(mu, scale).sum(-1)

    def standard_noise(self, shape: tuple[int, ...], dtype: torch.dtype, random: Generator | None) -> Tensor:
        if not self.laplace:
            return torch.randn(shape, generator=random, dtype=dtype)
        u = torch.rand(shape, generator=random, dtype=dtype) - 0.5
        return (1 - 2 * u.abs()).clamp_min_(1e-6).log_().copysign_(u)  # −sign(u)·log(1 − 2|u|)

    def divergence(self, mu: Tensor, scale: Tensor) -> Tensor:
        """KL(q(s|x) ‖ p(s)) of each component."""
        ratio = scale / self.prior
        if not self.laplace:
            return 0.5 * (ratio.square() + (mu / self.prior).square() - 1) - ratio.log()
        size = mu.abs()
        return size / self.prior + ratio * (-size / scale).exp() - ratio.log() - 1


class FirstBestOf(BareBestOf):
    """The same model by `torch.distributions`; its random numbers are torch's own, from the global generator."""

    def losses(self, x: Tensor, n_samples: int, beta: float, random: Generator | None = None) -> Tensor:
        h = self.encoder(x)
        mu, raw = self.location(h), self.log_scale(h).clamp(-20.0, 20.0)
        law = Laplace if self.laplace else Normal
        q = law(mu, raw.exp() if self.laplace else (0.5 * raw).exp())
        z = s = q.rsample((n_samples,))
        if self.level is not None:
            kept = softshrink(s - mu, self.level).detach()
            z = kept + (kept != 0) * mu + (s - s.detach())
        misfit = (x - z @ self.atoms.T).square().mean(-1)
        kl = kl_divergence(q, law(torch.zeros_like(mu), self.prior)).sum(-1)
        return (misfit + beta * kl).min(0).values


class BareTraining:
    """SGD with Nesterov momentum for the networks and without for the dictionary; both rates by their schedules."""

    def __init__(
        self, model: BareBestOf, n_steps: int, n_samples: int = 20, beta: float = 1e-2, decay: float = 1e-4,
        share: float = 1.0,
    ):  # fmt: skip
        self.model, self.n_samples, self.beta = model, n_samples, beta
        half = len(model.atoms) / 2  # ½·SSE of an input over its mean squared error, by which the published rates go
        self.rate, self.one_cycle = share * 0.5 * half, one_cycle(share * 1e-2, n_steps, 0.05, 1 / 25, 4e-8)
        self.epoch = max(round(800 * n_steps / 240_000), 1)
        groups = [
            {"params": model.inference(), "momentum": 0.9, "nesterov": True},
            {"params": [model.atoms], "weight_decay": 2 * decay / half},
        ]
        self.optimizer = SGD(groups, lr=0.0, fused=True)

    def step(self, x: Tensor, t: int, random: Generator | None = None) -> Tensor:
        networks, dictionary = self.optimizer.param_groups
        networks["lr"], dictionary["lr"] = self.one_cycle(t), self.rate * 0.99 ** (t // self.epoch)
        loss = self.model.losses(x, self.n_samples, self.beta, random).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, rows: Tensor, n_steps: int, batch_size: int = 100) -> None:
        """So many steps over rows in memory, in a new order in every epoch."""
        order: Sequence[Tensor] = []
        for t in range(n_steps):
            if t % (len(rows) // batch_size) == 0:
                order = torch.randperm(len(rows)).split(batch_size)
            self.step(rows[order[t % (len(rows) // batch_size)]], t)
