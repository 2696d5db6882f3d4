"""On what the deep study runs: the two image sets, the sizes of the paper, and a quick version."""

import math
from dataclasses import dataclass, replace
from typing import Any

from softspike.data.mnist import FASHION_CLASSES
from softspike.schedule import Constant, OneCycle, Schedule

__all__ = ["SETTINGS", "DeepSetting"]

_PAPER_EPOCHS, _PAPER_RATE = 300, 3e-4


@dataclass(frozen=True)
class DeepSetting:
    """Everything about a study that its cells share."""

    name: str
    title: str
    image_shape: tuple[int, int, int]
    dimensions: tuple[int, ...]
    middle: int  # the dimension at which the share of active components is varied
    beta: float
    n_samples: int  # J
    mirrored: bool
    paper_images: int  # that the paper trained on
    public: bool = True  # whether its licence lets its images be shown on a page for everyone
    shares: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5)
    share: float = 0.1  # of active components where the dimension is varied
    batch_size: int = 512
    epochs: int = _PAPER_EPOCHS
    peak_rate: float | None = None  # of a one-cycle schedule; None is the paper's constant rate
    classifier_steps: int = 1500
    most_images: int | None = None  # to train on, for a quick run
    quick: bool = False
    class_names: tuple[str, ...] | None = None  # where the images have classes

    def quickly(self) -> "DeepSetting":
        """The same in small: a check that everything runs, no measurement."""
        return replace(
            self, dimensions=self.dimensions[:1], middle=self.dimensions[0], shares=(0.1, 0.2), n_samples=3,
            batch_size=64, epochs=1, peak_rate=1e-3, classifier_steps=30, most_images=512, quick=True,
        )  # fmt: skip

    @property
    def n_features(self) -> int:
        return math.prod(self.image_shape)

    def n_steps(self, n_images: int) -> int:
        return self.epochs * max(n_images // self.batch_size, 1)

    @property
    def published_steps(self) -> int:
        """The length of the paper's schedule, which warm-ups are measured by."""
        return _PAPER_EPOCHS * (self.paper_images // 512)

    def rate(self, n_images: int) -> Schedule:
        if self.peak_rate is None:
            return Constant(_PAPER_RATE)
        return OneCycle(self.peak_rate, self.n_steps(n_images), rise=0.1, end=0.0)

    def label(self, n_images: int, n_test: int) -> str:
        """What a reader must know before comparing with the paper."""
        epochs = f"{self.epochs} epoch{'s' if self.epochs > 1 else ''}" + (
            "" if self.epochs == _PAPER_EPOCHS else f" (the paper: {_PAPER_EPOCHS})"
        )
        images = f"{n_images:,} images" + (
            "" if n_images == self.paper_images else f" (the paper: {self.paper_images:,})"
        )
        rate = f"constant rate {_PAPER_RATE:g}"
        if self.peak_rate is not None:
            rate = f"one-cycle rate with peak {self.peak_rate:g} (the paper: constant {_PAPER_RATE:g})"
        quick = "quick, not the paper's setting: " if self.quick else ""
        return (
            f"{quick}{self.title}: {epochs} of {images}, {n_test:,} test images, batches of {self.batch_size}, {rate}, "
            f"β = {self.beta:g}, J = {self.n_samples}"
        )

    def plain(self) -> dict[str, Any]:
        """What decides whether two runs are of the same study."""
        return {"set": self.name, "epochs": self.epochs, "peak_rate": self.peak_rate, "quick": self.quick}


SETTINGS = {
    "fashion-mnist": DeepSetting(
        "fashion-mnist", "Fashion-MNIST", (28, 28, 1), (20, 64, 256, 1024), middle=64, beta=1e-2, n_samples=20,
        mirrored=False, paper_images=60_000, class_names=FASHION_CLASSES,
    ),
    "celeba": DeepSetting(
        "celeba", "CelebA", (64, 64, 3), (64, 512, 1024, 2048, 4096), middle=512, beta=1e-3, n_samples=10,
        mirrored=True, paper_images=150_000, public=False,
    ),
}  # fmt: skip
