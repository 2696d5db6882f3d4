"""The gradient signal-to-noise ratio of a trained cell."""

import copy
from statistics import mean
from typing import Any

import torch

from softspike.generator import Dictionary
from softspike.metric import gradient_snr, snr_floor
from softspike.model import VariationalCoder
from softspike.reproduce.setting import Data, Setting

__all__ = ["snr_figures"]


def snr_figures(coder: VariationalCoder, data: Data, setting: Setting) -> dict[str, Any]:
    """Of inference network and generator at the end of training: repeated draws for fixed batches of validation
    patches, averaged over parameters and then over batches.

    The gradient is that of the bound, without the penalty on the dictionary. The published scripts divide it by the
    number of batches before they add 1e-9 to its deviation, which is a guard so many times as large: `published`.
    """
    study, found = setting.study, []
    guards = (1e-9, 1e-9 * (len(data.valid) // study.batch_size))
    bound = copy.deepcopy(coder)
    assert isinstance(bound.generator, Dictionary)
    bound.generator.frobenius = 0.0
    for number in range(setting.snr_batches):
        x = data.valid[number * study.batch_size : (number + 1) * study.batch_size]
        random = torch.Generator(device=x.device).manual_seed(number)

        def loss(_: int, x: torch.Tensor = x, random: torch.Generator = random) -> torch.Tensor:
            return bound.loss(x, study.n_steps, random).total

        found.append(gradient_snr(loss, bound.parameter_groups(), setting.snr_passes, guards))
    plain, published = ({name: mean(f[name][k] for f in found) for name in found[0]} for k in (0, 1))
    return {**plain, "published": published, "passes": setting.snr_passes, "floor": snr_floor(setting.snr_passes)}
