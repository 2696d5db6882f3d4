"""How consistent the supports of repeated draws for one input are."""

from torch import Tensor

__all__ = ["jaccard_index", "published_jaccard_distance", "used_components"]


def used_components(atoms: Tensor, least: float = 0.1) -> Tensor:
    """‖aᵢ‖² > 0.1: the components that the paper counts, (d,) of bool from atoms (D, d)."""
    return atoms.square().sum(0) > least


def jaccard_index(codes: Tensor) -> Tensor:
    """1/(J(J−1))·Σ_{m≠n} |Sₘ ∩ Sₙ|/|Sₘ ∪ Sₙ| of codes (J, B, d), S the support: 1 is perfect consistency, (B,).

    Give the used components only: `jaccard_index(z[..., used_components(atoms)])`. Two empty supports agree: 1.
    """
    n = codes.shape[0]
    if n < 2:
        raise ValueError(f"{n} draws were given, expected at least 2 to compare; draw more")
    pairs = _pairwise(codes)
    return (pairs.sum((1, 2)) - pairs.diagonal(dim1=1, dim2=2).sum(1)) / (n * (n - 1))


def published_jaccard_distance(codes: Tensor) -> Tensor:
    """1/J²·Σₘₙ (1 − |Sₘ ∩ Sₙ|/|Sₘ ∪ Sₙ|), every draw's distance 0 from itself included: *lower* is consistent, (B,).

    For comparison only: the published scripts average scipy's Jaccard distance over all pairs under the name of index.
    """
    return 1 - _pairwise(codes).mean((1, 2))


def _pairwise(codes: Tensor) -> Tensor:
    """|Sₘ ∩ Sₙ|/|Sₘ ∪ Sₙ|, (B, J, J)."""
    support = (codes != 0).to(codes.dtype).transpose(0, 1)
    both = support @ support.transpose(1, 2)
    sizes = support.sum(-1)
    either = sizes[:, :, None] + sizes[:, None, :] - both
    return (both / either.clamp_min(1)).where(either > 0, both.new_ones(()))
