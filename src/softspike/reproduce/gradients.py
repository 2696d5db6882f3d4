"""The gradient signal-to-noise ratio of a trained cell."""

import copy
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from softspike.generator import Dictionary
from softspike.metric import gradient_snr, snr_floor
from softspike.model import VariationalCoder
from softspike.reproduce.setting import Data, Setting

__all__ = ["snr_figures"]

_AT_A_TIME = 4000  # patches of the whole set whose gradient is taken at once: their samples fit a gigabyte


def snr_figures(coder: VariationalCoder, data: Data, setting: Setting) -> dict[str, Any]:
    """Of inference network and generator at the end of training, over repeated draws for the same patches.

    The gradient is that of the bound, without the penalty on the dictionary: of batches as in training, averaged over
    parameters and then over batches, and `published`, of the whole validation set.
    """
    bound, size = copy.deepcopy(coder), setting.study.batch_size
    assert isinstance(bound.generator, Dictionary)
    bound.generator.frobenius = 0.0
    batches = [data.valid[k * size : (k + 1) * size] for k in range(setting.snr_batches)]
    found = [_ratios(bound, x, seed, setting) for seed, x in enumerate(batches)]
    return {
        **{name: mean(ratios[name] for ratios in found) for name in bound.parameter_groups()},
        "published": _ratios(bound, data.valid, 0, setting),
        "passes": setting.snr_passes,
        "floor": snr_floor(setting.snr_passes),
    }


def _ratios(bound: VariationalCoder, x: Tensor, seed: int, setting: Setting) -> dict[str, float]:
    random = torch.Generator(device=x.device).manual_seed(seed)
    parts = x.chunk(-(-len(x) // _AT_A_TIME))

    def loss(number: int) -> Tensor:
        return bound.loss(parts[number % len(parts)], setting.study.n_steps, random).total

    return gradient_snr(loss, bound.parameter_groups(), setting.snr_passes, len(parts))
