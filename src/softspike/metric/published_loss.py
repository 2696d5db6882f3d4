"""The paper's validation loss, taken apart, beside what coding nothing costs."""

from typing import NamedTuple

from torch import Tensor

__all__ = ["PublishedLoss", "published_loss"]


class PublishedLoss(NamedTuple):
    """½‖x − Az‖² + λ‖z‖₁ + κ‖A‖²_F in its parts, averaged over samples."""

    misfit: float  # ½‖x − Az‖²
    magnitude: float  # λ‖z‖₁
    norm: float  # κ‖A‖²_F, the same for every sample
    zero: float  # what z = 0 costs without the norm: ½·E‖x‖², half the number of features on standardised data

    @property
    def codes(self) -> float:
        """The part that the codes decide."""
        return self.misfit + self.magnitude

    @property
    def total(self) -> float:
        """As the paper's Table 1 has it."""
        return self.misfit + self.magnitude + self.norm


def published_loss(
    x: Tensor, atoms: Tensor, codes: Tensor, penalty: float = 20.0, frobenius: float = 1e-3
) -> PublishedLoss:
    """½‖x − Az‖² + λ‖z‖₁ + κ‖A‖²_F of x (N, D), atoms (D, d) and codes (N, d).

    Not invariant to the scale of A: doubling A and halving z halves the second term. And z = 0 is a code too: a method
    above `zero` is worse, by this measure, than coding nothing.
    """
    return PublishedLoss(
        misfit=float(0.5 * (x - codes @ atoms.T).square().sum(-1).double().mean()),
        magnitude=penalty * float(codes.abs().sum(-1).double().mean()),
        norm=frobenius * float(atoms.double().square().sum()),
        zero=float(0.5 * x.square().sum(-1).double().mean()),
    )
