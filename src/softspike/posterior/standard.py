"""The three standard draws that every other is made of, for one model or for several in one batched pass."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

__all__ = ["Generators", "each_of", "standard_gamma", "standard_normal", "standard_uniform"]


class Generators(Generator):
    """One generator for each of R replicas whose losses are one under `torch.func.vmap`.

    The functions below draw for every replica from its own, so that it gets the numbers that it would get alone.
    Other draws do not know of it, and vmap refuses them.
    """

    each: tuple[Generator, ...]

    def __new__(cls, each: Sequence[Generator]) -> "Generators":
        return super().__new__(cls, device=each[0].device)  # type: ignore[call-arg]

    def __init__(self, each: Sequence[Generator]):
        self.each = tuple(each)


def each_of(generator: Generator) -> tuple[Generator, ...]:
    """The generators of all replicas; of one model, its only one."""
    return generator.each if isinstance(generator, Generators) else (generator,)


def standard_normal(like: Tensor, n_samples: int, generator: Generator | None = None) -> Tensor:
    """ε ~ N(0, 1), (J, *like.shape), in the type of `like` and where it lives."""

    def draw(own: Tensor, generator: Generator | None) -> Tensor:
        return torch.randn((n_samples, *own.shape), generator=generator, dtype=own.dtype, device=own.device)

    return _drawn(draw, like, generator)


def standard_uniform(like: Tensor, n_samples: int, generator: Generator | None = None) -> Tensor:
    """u ~ U(0, 1), (J, *like.shape)."""

    def draw(own: Tensor, generator: Generator | None) -> Tensor:
        return torch.rand((n_samples, *own.shape), generator=generator, dtype=own.dtype, device=own.device)

    return _drawn(draw, like, generator)


def standard_gamma(concentration: Tensor, n_samples: int, generator: Generator | None = None) -> Tensor:
    """g ~ Gamma(α, 1), (J, *α.shape), without a gradient to α."""

    def draw(own: Tensor, generator: Generator | None) -> Tensor:
        return torch._standard_gamma(own.expand(n_samples, *own.shape).contiguous(), generator=generator)

    return _drawn(draw, concentration, generator)


Draw = Callable[[Tensor, Generator | None], Tensor]


def _drawn(draw: Draw, like: Tensor, generator: Generator | None) -> Tensor:
    if isinstance(generator, Generators):
        return _DrawnByEach.apply(like.detach(), draw, generator)
    return draw(like.detach(), generator)


class _DrawnByEach(torch.autograd.Function):
    """What vmap does with a draw: it asks each replica's generator, and stacks."""

    @staticmethod
    def forward(like: Tensor, draw: Draw, generators: Generators) -> Tensor:
        raise RuntimeError(f"there are {len(generators.each)} generators, but no replicas where the draw is made")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, None, None], like: Tensor, draw: Draw, generators: Generators) -> Any:
        own = zip(like.movedim(in_dims[0], 0), generators.each, strict=True)
        return torch.stack([draw(part, generator) for part, generator in own]), 0
