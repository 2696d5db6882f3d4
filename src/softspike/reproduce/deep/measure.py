"""What is measured of a trained cell, and what is drawn of it."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from softspike.looking import look, traversals
from softspike.metric import (
    feature_collapse,
    gaussian_total_correlation,
    multi_information,
    never_active,
    posterior_collapse,
    prior_codes,
    published_edges,
    summarise,
)
from softspike.metric.frechet import frechet_distance
from softspike.metric.sampled import draws
from softspike.model import VariationalCoder
from softspike.report.pictures import contrast
from softspike.reproduce.deep.features import Features
from softspike.reproduce.deep.images import Images

__all__ = ["draw", "measure"]

_EDGES = 30  # of the histograms of codes in the paper's deep runs
_CALIBRATION, _SHOWN, _ATOMS, _MOVED = 2048, 12, 48, 6


@torch.no_grad()
def measure(
    model: VariationalCoder, images: Images, n_samples: int, share: float, features: Features, device: torch.device
) -> dict[str, Any]:
    """Errors of draws and of the deterministic code, redundancy, Fréchet distances, activity, collapse."""
    parts = list(draws(model, images.test, n_samples, device=device))
    best, one = _mean([part.best for part in parts]), _mean([part.one for part in parts])
    codes, kl = torch.cat([part.codes for part in parts]), torch.cat([part.kl for part in parts])
    real = torch.cat([features(part.x) for part in parts])
    rebuilt = torch.cat([features(part.reconstruction) for part in parts])
    d = codes.shape[1]
    model.calibrate(images.train.take(torch.arange(min(_CALIBRATION, len(images.train)))).to(device), share * d)
    steady = summarise(model, images.test, device)
    return {
        "error": {"best": best, "one": one, "code": steady.error},
        "active_share": {"best": float((codes != 0).double().mean()), "code": steady.active_share},
        "explained_variance": {"code": steady.explained_variance},
        "multi_information": _redundancy(codes),
        "total_correlation": _total_correlation(codes),
        "frechet": {
            "name": features.name,
            "features": features.note,
            "reconstructed": frechet_distance(real, rebuilt),
            "generated": frechet_distance(real, _generated(model, len(real), features, device)),
        },
        "collapse": {
            "posterior": posterior_collapse(kl),
            "feature": feature_collapse(codes),
            "never_active": never_active(codes),
        },
        "n_test": len(codes),
        "n_samples": n_samples,
    }


def _mean(parts: list[Tensor]) -> float:
    return float(torch.cat(parts).double().mean())


def _redundancy(codes: Tensor) -> dict[str, float]:
    found = multi_information(codes, published_edges(_EDGES))
    return {"published": found.published, "corrected": found.corrected}


def _total_correlation(codes: Tensor) -> float | None:
    """None where there are not enough codes to tell."""
    return gaussian_total_correlation(codes) if len(codes) > 2 * codes.shape[1] else None


def _generated(model: VariationalCoder, n: int, features: Features, device: torch.device) -> Tensor:
    """Features of images from the prior alone."""
    random = torch.Generator(device=device).manual_seed(0)
    codes = prior_codes(model, n, random)
    return torch.cat([features(model.generator.preview(part)) for part in codes.split(256)])


@torch.no_grad()
def draw(model: VariationalCoder, images: Images, n_samples: int, device: torch.device) -> dict[str, np.ndarray]:
    """Reconstructions, samples from the prior, the estimated dictionary, the atoms that tell attributes, traversals."""
    seen = look(model, images.train, images.train_labels, n_samples, device)
    first = next(draws(model, images.test, n_samples, device=device))
    random = torch.Generator(device=device).manual_seed(1)
    samples = model.generator.preview(prior_codes(model, _SHOWN, random))
    assert seen.best is not None
    signed = seen.atoms[:, seen.best.component] * seen.best.correlation.sign().to(seen.atoms.dtype)
    strongest = seen.best.component[seen.best.correlation.abs().argsort(descending=True)].tolist()
    moved = traversals(model, seen, list(dict.fromkeys([*strongest, *seen.order.tolist()]))[:_MOVED])
    return {
        "originals": _bytes(first.x[:_SHOWN]),
        "reconstructions": _bytes(first.reconstruction[:_SHOWN]),
        "samples": _bytes(samples),
        "atoms": _atom_bytes(seen.atoms[:, _spread(seen.order)]),
        "attribute_atoms": _atom_bytes(signed),
        "attribute_names": np.array(images.train_labels.names),
        "attribute_components": seen.best.component.cpu().numpy(),
        "attribute_correlations": seen.best.correlation.cpu().numpy(),
        "traversals": _bytes(moved.images),
        "traversed": np.array(moved.components),
    }


def _spread(order: Tensor) -> Tensor:
    """A third of the strongest atoms, and the rest from evenly further down, as the paper shows them."""
    head, tail = order[: _ATOMS // 3], order[_ATOMS // 3 :]
    if len(tail) == 0:
        return head
    places = torch.linspace(0, len(tail) - 1, min(_ATOMS - len(head), len(tail))).round().long()
    return torch.cat([head, tail[places.to(tail.device)]])


def _bytes(images: Tensor) -> np.ndarray:
    return (255 * images.clamp(0, 1)).round().to(torch.uint8).cpu().numpy()


def _atom_bytes(atoms: Tensor) -> np.ndarray:
    return (255 * contrast(atoms.T.cpu().numpy())).round().astype(np.uint8)
