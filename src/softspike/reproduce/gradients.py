"""The gradient signal-to-noise ratio of a trained cell."""

import copy
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from softspike.generator import Dictionary
from softspike.metric import gradient_snr, snr_floor
from softspike.model import VariationalCoder
from softspike.posterior import SpikeSlabPosterior
from softspike.reproduce.setting import Data, Setting
from softspike.schedule import Constant

__all__ = ["snr_figures"]

_AT_A_TIME = 4000  # patches of the whole set whose gradient is taken at once: their samples fit a gigabyte


def snr_figures(coder: VariationalCoder, data: Data, setting: Setting) -> dict[str, Any]:
    """Of inference network and generator at the end of training, over repeated draws for the same patches.

    The gradient is that of the bound, without the penalty on the dictionary: of batches as in training, averaged over
    parameters and then over batches, and `published`, of the whole validation set. For that one the published scripts
    also lower the temperature of the spike to 0.01, where training ends at 0.5; `whole` keeps it.
    """
    size, batches = setting.study.batch_size, range(setting.snr_batches)
    found = [_ratios(_bound(coder), data.valid[k * size : (k + 1) * size], k, setting) for k in batches]
    whole = _ratios(_bound(coder), data.valid, 0, setting)
    spiky = isinstance(coder.posterior, SpikeSlabPosterior)
    return {
        **{name: mean(ratios[name] for ratios in found) for name in whole},
        "whole": whole,
        "published": _ratios(_bound(coder, temperature=0.01), data.valid, 0, setting) if spiky else whole,
        "passes": setting.snr_passes,
        "floor": snr_floor(setting.snr_passes),
    }


def _bound(coder: VariationalCoder, temperature: float | None = None) -> VariationalCoder:
    """A copy whose loss is the bound alone; a spike of another temperature where one is given."""
    bound = copy.deepcopy(coder)
    assert isinstance(bound.generator, Dictionary)
    bound.generator.frobenius = 0.0
    if temperature is not None:
        assert isinstance(bound.posterior, SpikeSlabPosterior)
        bound.posterior.temperature = Constant(temperature)
    return bound


def _ratios(bound: VariationalCoder, x: Tensor, seed: int, setting: Setting) -> dict[str, float]:
    random = torch.Generator(device=x.device).manual_seed(seed)
    parts = x.chunk(-(-len(x) // _AT_A_TIME))

    def loss(number: int) -> Tensor:
        return bound.loss(parts[number % len(parts)], setting.study.n_steps, random).total

    return gradient_snr(loss, bound.parameter_groups(), setting.snr_passes, len(parts))
