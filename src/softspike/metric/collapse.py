"""Components that say nothing: by their divergence from the prior, by their size, by never being active."""

from torch import Tensor

__all__ = ["feature_collapse", "never_active", "posterior_collapse"]


def posterior_collapse(kl: Tensor, epsilon: float = 1e-2, delta: float = 5e-2) -> float:
    """The share of components with KL(q(sᵢ|x) ‖ p) ≤ ε on at least 1 − δ of the inputs; kl (N, d) in nats."""
    return _share_below(kl, epsilon, delta)


def feature_collapse(codes: Tensor, epsilon: float = 1e-2, delta: float = 5e-2) -> float:
    """The share of components with |zᵢ| ≤ ε on at least 1 − δ of the inputs; codes (N, d).

    As published: a healthy component that is active on fewer than δ of the inputs counts as collapsed.
    """
    return _share_below(codes.abs(), epsilon, delta)


def never_active(codes: Tensor) -> float:
    """The share of components that are zero on every one of these N inputs: truly of no use to them."""
    return float((codes == 0).all(0).double().mean())


def _share_below(sizes: Tensor, epsilon: float, delta: float) -> float:
    return float(((sizes <= epsilon).double().mean(0) >= 1 - delta).double().mean())
