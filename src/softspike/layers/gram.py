"""AᵀAz by the cheaper of two ways."""

from collections.abc import Callable

from torch import Tensor

__all__ = ["gram_product"]


def gram_product(atoms: Tensor) -> Callable[[Tensor], Tensor]:
    """z (B, d) ↦ AᵀAz for atoms A (D, d): one product with AᵀA where d ≤ 2D, else one with A and one with Aᵀ."""
    if atoms.shape[1] > 2 * atoms.shape[0]:
        return lambda z: (z @ atoms.T) @ atoms
    gram = atoms.T @ atoms
    return lambda z: z @ gram
