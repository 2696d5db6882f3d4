"""How much of a known truth was found: latents, dictionary and supports, matched one to one."""

from typing import NamedTuple

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

__all__ = [
    "DictionaryRecovery",
    "Matching",
    "SupportScores",
    "absolute_correlation",
    "absolute_cosine",
    "dictionary_recovery",
    "latent_recovery",
    "match",
    "support_scores",
]


class Matching(NamedTuple):
    """Pairs of one-to-one partners, of the shorter side's number."""

    found: Tensor  # (n,) columns of what was learned
    truth: Tensor  # (n,) columns of the truth


class DictionaryRecovery(NamedTuple):
    cosine: float  # mean over true atoms of |cos| with their partner
    share: float  # of true atoms whose partner has |cos| > 0.9


class SupportScores(NamedTuple):
    precision: float  # of the entries found active, the share that truly is
    recall: float  # of the entries truly active, the share that was found
    f1: float  # their harmonic mean


def match(similarity: Tensor) -> Matching:
    """The one-to-one assignment of rows (found) to columns (truth) of largest total similarity (the Hungarian one)."""
    found, truth = linear_sum_assignment(similarity.detach().double().cpu().numpy(), maximize=True)
    return Matching(torch.from_numpy(found), torch.from_numpy(truth))


def absolute_correlation(found: Tensor, truth: Tensor) -> Tensor:
    """|Pearson correlation| of every column of found (n, d) with every column of truth (n, m); 0 for a constant one."""
    a, b = (_unit(codes.double() - codes.double().mean(0)) for codes in (found, truth))
    return (a.T @ b).abs()


def absolute_cosine(atoms: Tensor, truth: Tensor) -> Tensor:
    """|cos| of every column of atoms (D, d) with every column of truth (D, m); 0 for a zero one."""
    return (_unit(atoms.double()).T @ _unit(truth.double())).abs()


def latent_recovery(found: Tensor, truth: Tensor) -> float:
    """The mean over true latents of |correlation| with their partner: codes (n, d) against codes (n, m).

    A true latent left without a partner, or matched with a constant one, counts as 0.
    """
    similarity = absolute_correlation(found, truth)
    return float(similarity[match(similarity)].sum()) / truth.shape[1]


def dictionary_recovery(atoms: Tensor, truth: Tensor) -> DictionaryRecovery:
    """Atoms (D, d) against true atoms (D, m), in columns."""
    similarity = absolute_cosine(atoms, truth)
    cosines = similarity[match(similarity)]
    m = truth.shape[1]
    return DictionaryRecovery(float(cosines.sum()) / m, float((cosines > 0.9).sum()) / m)


def support_scores(found: Tensor, truth: Tensor, matching: Matching) -> SupportScores:
    """Non-zeros of found (n, d) against those of truth (n, m), pooled over all entries.

    Entries of a component without a partner are never right: they lower the precision, or the recall.
    """
    active, true = found != 0, truth != 0
    right = float((active[:, matching.found] & true[:, matching.truth]).sum())
    precision, recall = right / max(int(active.sum()), 1), right / max(int(true.sum()), 1)
    return SupportScores(precision, recall, 2 * right / max(int(active.sum()) + int(true.sum()), 1))


def _unit(columns: Tensor) -> Tensor:
    norm = columns.norm(dim=0)
    # Below rounding a centred constant is no direction.
    return torch.where(norm > 1e-12 * len(columns) ** 0.5, columns / norm.clamp_min(1e-300), 0.0)
