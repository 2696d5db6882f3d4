"""The gradient signal-to-noise ratio of a trained cell."""

from typing import Any

import torch

from softspike.metric import gradient_snr, snr_floor
from softspike.model import VariationalCoder
from softspike.reproduce.setting import Data, Setting

__all__ = ["snr_figures"]


def snr_figures(coder: VariationalCoder, data: Data, setting: Setting) -> dict[str, Any]:
    """Of inference network and generator at the end of training: repeated draws for fixed batches of validation
    patches, averaged over parameters and then over batches."""
    study, found = setting.study, []
    for number in range(setting.snr_batches):
        x = data.valid[number * study.batch_size : (number + 1) * study.batch_size]
        random = torch.Generator(device=x.device).manual_seed(number)

        def loss(_: int, x: torch.Tensor = x, random: torch.Generator = random) -> torch.Tensor:
            return coder.loss(x, study.n_steps, random).total

        found.append(gradient_snr(loss, coder.parameter_groups(), setting.snr_passes))
    means = {name: sum(f[name] for f in found) / len(found) for name in found[0]}
    return {**means, "batches": found, "passes": setting.snr_passes, "floor": snr_floor(setting.snr_passes)}
