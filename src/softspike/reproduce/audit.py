"""All figures of one trained cell that need no gradients: the right measures, and the published ones."""

from typing import Any

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.data import TensorRows
from softspike.generator import atoms_of
from softspike.metric import (
    active_count,
    explained_variance,
    feature_collapse,
    gaussian_total_correlation,
    jaccard_index,
    mean_bound,
    multi_information,
    never_active,
    posterior_collapse,
    prior_codes,
    published_jaccard_distance,
    published_loss,
    used_components,
)
from softspike.model import VariationalCoder
from softspike.reproduce.codes import Codes, code_patches, deterministic_codes, repeated_draws
from softspike.reproduce.setting import Data

__all__ = ["audit"]

_ASIDE = 4000  # training patches that set the cut
_HISTOGRAM = 200  # bins of the Jaccard index over patches


@torch.no_grad()
def audit(coder: Coder, data: Data, n_samples: int) -> dict[str, Any]:
    """Of the codes of the validation patches, as numbers that JSON can hold."""
    x, atoms = data.valid, atoms_of(coder.generator)
    codes = code_patches(coder, x, n_samples)
    settled = deterministic_codes(coder, x, data.train[:_ASIDE], active_count(codes.one))
    figures: dict[str, Any] = {
        "one_sample": _rate(x, atoms, codes.one),
        "best_sample": _rate(x, atoms, codes.best),
        "deterministic": _rate(x, atoms, settled),
        "n_components": atoms.shape[1],
        "bound": mean_bound(coder, TensorRows(x), 200, device=x.device)
        if isinstance(coder, VariationalCoder)
        else None,
        "total_correlation": gaussian_total_correlation(codes.best),
        "jaccard": jaccard_figures(coder, x),
    }
    return {**figures, **_published(coder, x, codes)}


def _rate(x: Tensor, atoms: Tensor, codes: Tensor) -> dict[str, float]:
    return {"explained_variance": explained_variance(x, codes @ atoms.T), "active": active_count(codes)}


def _published(coder: Coder, x: Tensor, codes: Codes) -> dict[str, Any]:
    """The paper's own measures, each with its baseline."""
    loss = published_loss(x, atoms_of(coder.generator), codes.best)
    shared = multi_information(codes.best)
    prior = None
    if isinstance(coder, VariationalCoder):
        random = torch.Generator(device=x.device).manual_seed(2)
        prior = multi_information(prior_codes(coder, len(x), random)).published
    return {
        "loss": {**loss._asdict(), "codes": loss.codes, "total": loss.total},
        "multi_information": {"published": shared.published, "corrected": shared.corrected, **shared._asdict()},
        "prior_multi_information": prior,
        "collapse": {
            "posterior": None if codes.kl is None else posterior_collapse(codes.kl),
            "feature": feature_collapse(codes.best),
            "never_active": never_active(codes.best),
        },
    }


def jaccard_figures(coder: Coder, x: Tensor, n_draws: int = 20) -> dict[str, Any]:
    """Over the used components: the index of repeated draws, the same between draws for different inputs (what chance
    gives), the published distance, and how the index spreads over inputs. None where no component is used."""
    used = used_components(atoms_of(coder.generator))
    if not bool(used.any()):  # nothing to be consistent about
        nothing = dict.fromkeys(("index", "between_inputs", "published_distance"))
        return {**nothing, "used_components": 0, "histogram": [0] * _HISTOGRAM}
    index, chance, distance = [], [], []
    for z in repeated_draws(coder, x, n_draws):
        kept = z[..., used]
        index.append(jaccard_index(kept))
        distance.append(published_jaccard_distance(kept))
        others = torch.stack([draw.roll(j, 0) for j, draw in enumerate(kept)])
        if z.shape[1] >= n_draws:  # each place now holds draws for n_draws different inputs
            chance.append(jaccard_index(others))
    values = torch.cat(index)
    return {
        "index": float(values.mean()),
        "between_inputs": float(torch.cat(chance).mean()) if chance else None,
        "published_distance": float(torch.cat(distance).mean()),
        "used_components": int(used.sum()),
        "histogram": torch.histc(values, _HISTOGRAM, 0, 1).long().tolist(),
    }
