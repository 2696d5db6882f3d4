"""Pursuits of a batch: compiled on a CPU where there is enough to do, plain elsewhere."""

import torch
from torch import Tensor

from softspike.kernels.compiled import WIDEST_GRAM, accepts
from softspike.solver.omp_compiled import pursue_compiled
from softspike.solver.omp_plain import Pursuit, pursue_plainly
from softspike.solver.scale import unit_and_norm

__all__ = ["pursue"]

_NUMBERS = 2**27  # entries of the bases and triangles that plain pursuits hold at a time: half a gigabyte
_WORTH_IT = 2**18  # entries of Aᵀr looked at; with fewer, loading compiled code takes longer than the pursuit


@torch.no_grad()
def pursue(x: Tensor, atoms: Tensor, counts: Tensor, stop: Tensor | float) -> Pursuit:
    """Pursuits of x (B, D) on atoms (D, d) of unit norm, or 0, up to counts (B,) of atoms or ‖r‖² ≤ stop.

    Signals are brought to unit norm first, so that none is too small or too large for its squares. What is not finite
    is pursued as 0.
    """
    signals, norms = unit_and_norm(x, dim=1)
    energy = norms.double().square()
    floor = torch.as_tensor(stop, dtype=torch.float64, device=x.device).reshape(-1, 1) / energy
    floor = floor.expand_as(energy)[:, 0]
    work = int(counts.sum()) * atoms.shape[1]
    enough = work >= _WORTH_IT and atoms.shape[1] <= min(WIDEST_GRAM, work // atoms.shape[1])
    if enough and accepts(x):
        found = pursue_compiled(signals, atoms, counts, floor)
    else:
        found = _in_parts(signals, atoms, counts, floor)
    return found._replace(
        coefficients=found.coefficients * norms,
        projections=found.projections * norms,
        energies=found.energies * energy,
    )


def _in_parts(signals: Tensor, atoms: Tensor, counts: Tensor, floor: Tensor) -> Pursuit:
    """The plain pursuits of as many rows at a time as memory allows."""
    longest = int(counts.max()) if len(counts) else 0
    n_rows = max(_NUMBERS // max(longest * (longest + len(atoms)), 1), 1)
    parts = zip(signals.split(n_rows), counts.split(n_rows), floor.split(n_rows), strict=True)
    found = [pursue_plainly(x, atoms, own, stop, longest) for x, own, stop in parts]
    return found[0] if len(found) == 1 else Pursuit(*(torch.cat(values) for values in zip(*found, strict=True)))
