"""The numbers in which replicas of one family differ: one row each, read by the kernels column by column."""

from dataclasses import astuple, dataclass, fields

import torch
import triton.language as tl
from torch import Tensor

__all__ = ["Settings", "table"]


@dataclass(frozen=True)
class Settings:
    """One replica's constants; what its family has no use for stays 0."""

    n_samples: float  # J
    beta: float  # weight of the KL
    prior_scale: float  # σ₀ or b₀
    level: float = 0.0  # λ, where it is fixed
    level_beta: float = 0.0  # weight of the level's KL
    level_shape: float = 1.0  # α₀ of the Gamma prior
    level_rate: float = 1.0  # β₀ of the Gamma prior
    prior_logit: float = 0.0  # logit γ₀ of the spike's prior
    reading: float = 0.0  # of the spike's head: 0 logit γ, 1 log γ as a logit, 2 log γ = −max(−raw, 0) as a logit
    location_slope: float = 1.0  # dz/dμ on active units: 1, or 2 as in the published scripts
    silent_slope: float = 1.0  # dz/ds on inactive units: 1 straight through, 0 for the subgradient


def table(settings: list[Settings], device: torch.device | str) -> Tensor:
    """(R, number of columns)."""
    return torch.tensor([astuple(row) for row in settings], dtype=torch.float32, device=device)


_NAMES = [field.name for field in fields(Settings)]
COLUMNS = tl.constexpr(len(_NAMES))
N_SAMPLES = tl.constexpr(_NAMES.index("n_samples"))
BETA = tl.constexpr(_NAMES.index("beta"))
PRIOR_SCALE = tl.constexpr(_NAMES.index("prior_scale"))
LEVEL = tl.constexpr(_NAMES.index("level"))
LEVEL_BETA = tl.constexpr(_NAMES.index("level_beta"))
LEVEL_SHAPE = tl.constexpr(_NAMES.index("level_shape"))
LEVEL_RATE = tl.constexpr(_NAMES.index("level_rate"))
PRIOR_LOGIT = tl.constexpr(_NAMES.index("prior_logit"))
READING = tl.constexpr(_NAMES.index("reading"))
LOCATION_SLOPE = tl.constexpr(_NAMES.index("location_slope"))
SILENT_SLOPE = tl.constexpr(_NAMES.index("silent_slope"))
