"""On what the study runs: the paper's patches and sizes, or a small version on the embedded photographs."""

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from softspike.data import ArrayRows, Standardiser, olshausen_patches, photograph_patches
from softspike.methods.published import Study

__all__ = ["FULL", "QUICK", "Data", "Setting", "load_data"]


@dataclass(frozen=True)
class Setting:
    """Everything about an experiment that its cells share."""

    study: Study
    n_train: int
    n_valid: int
    patch_size: int
    snr_passes: int
    snr_batches: int
    many_samples: int = 20  # the larger J of Table 1
    most_samples: int = 100  # the larger J of the sampling study
    quick: bool = False

    def with_steps(self, n_steps: int | None) -> "Setting":
        if n_steps is None:
            return self
        if n_steps < 1:
            raise ValueError(
                f"--steps is {n_steps}, expected a whole number ≥ 1; leave it out for {self.study.n_steps}"
            )
        return replace(self, study=replace(self.study, n_steps=n_steps))

    @property
    def paper_like(self) -> bool:
        """Whether the paper's figures are a fair comparison."""
        return not self.quick

    @property
    def label(self) -> str:
        """What a reader must know before comparing with the paper."""
        steps = f"{self.study.n_steps:,} steps of {self.study.batch_size}"
        sizes = f"{self.n_train:,} / {self.n_valid:,} patches of {self.patch_size}×{self.patch_size}"
        if self.quick:
            where = f"embedded photographs, {sizes}, d = {self.study.n_components}"
            return f"quick: {steps}, {where}: not the paper's setting"
        short = "" if self.study.n_steps == Study().n_steps else f" (the paper: {Study().n_steps:,})"
        return f"{steps}{short}, Olshausen–Field images, {sizes}, d = {self.study.n_components}"

    @property
    def images(self) -> str:
        """The label without the length of training, for what was trained for different lengths."""
        return self.label.partition(", ")[2]

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "label": self.label}


FULL = Setting(Study(), 80_000, 16_000, patch_size=16, snr_passes=1000, snr_batches=2)
# β is such that the noise has the paper's variance, βD/2; at the published dictionary rate the best of many samples
# diverges here, where warm-ups are over after 500 steps.
_SMALL = Study(64, 64, n_steps=2000, widths=(128, 256, 128, 64), beta=4e-2, dictionary_rate=0.125)
QUICK = Setting(_SMALL, 20_000, 2000, patch_size=8, snr_passes=100, snr_batches=1, most_samples=50, quick=True)


@dataclass(frozen=True)
class Data:
    train: Tensor  # (n_train, D), standardised per pixel
    valid: Tensor  # (n_valid, D), with the training statistics

    @property
    def fingerprint(self) -> str:
        """Enough to notice other data."""
        parts = [t[:: max(len(t) // 64, 1)].cpu().numpy().tobytes() for t in (self.train, self.valid)]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def load_data(setting: Setting, path: Path | None, device: torch.device | str) -> Data:
    """Patches of the images at `path`, or of the embedded photographs for a quick run."""
    if setting.quick and path is not None:
        raise ValueError(
            f"--quick takes the embedded photographs, and --data is {path}; leave out one of the two "
            "(--steps makes the study on your images shorter)"
        )
    if setting.quick:
        raw = photograph_patches(setting.n_train, setting.n_valid, setting.patch_size)
        standardiser = Standardiser.fit(ArrayRows(raw.train), per_feature=True)
        return Data(*(standardiser(torch.from_numpy(part)).to(device) for part in raw))
    if path is None:
        raise ValueError(
            "the paper's study needs the Olshausen–Field images: give --data IMAGES.mat (softspike data olshausen says "
            "where they come from), or --quick for a small version on embedded photographs"
        )
    patches = olshausen_patches(path, setting.n_train, setting.n_valid, setting.patch_size)
    return Data(*(torch.from_numpy(part).to(device) for part in patches))
