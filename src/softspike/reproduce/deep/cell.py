"""What is trained: a method, a dimension, a share of active components, whose conventions, which seed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from softspike.methods import Built, ConvNetworks, Plan, build, method_named
from softspike.model import VariationalCoder
from softspike.posterior import SpikeSlabPosterior
from softspike.reproduce.cell import Variant
from softspike.reproduce.deep.setting import DeepSetting
from softspike.threshold import CentredSoft

__all__ = ["DENSE", "METHODS", "Asked", "DeepCell", "cells_of"]

METHODS = {
    "gaussian": "Gaussian",
    "spike-and-slab": "Spike-and-slab",
    "thresholded-gaussian": "Thresholded Gaussian",
    "thresholded-gaussian-gamma": "Thresholded Gaussian + Gamma",
    "thresholded-laplacian": "Thresholded Laplacian",
    "thresholded-laplacian-gamma": "Thresholded Laplacian + Gamma",
    "centred-gaussian": "Centred Gaussian (ours)",
    "centred-laplacian": "Centred Laplacian (ours)",
}
DENSE = "gaussian"  # its share of active components is 1 whatever is asked


@dataclass(frozen=True)
class DeepCell:
    """One trained model of the study."""

    method: str
    n_components: int
    share: float
    variant: Variant
    seed: int

    @property
    def name(self) -> str:
        share = [] if self.method == DENSE else [f"p{100 * self.share:g}"]
        departs = [] if self.method in (DENSE, "centred-gaussian", "centred-laplacian") else [self.variant.name]
        return ".".join([self.method, f"d{self.n_components}", *share, *departs, f"s{self.seed}"])

    def build(self, setting: DeepSetting, n_images: int) -> Built:
        """The coder and its recipe, in the study's setting."""
        networks = ConvNetworks(setting.image_shape, setting.mirrored, setting.rate(n_images))
        size, height, channels = setting.image_shape
        plan = Plan(
            size * height * channels, self.n_components, self.share, setting.n_steps(n_images), setting.batch_size,
            setting.n_samples, beta=setting.beta, networks=networks, published_steps=setting.published_steps,
        )  # fmt: skip
        coder, recipe = build(method_named(self.method), plan, self.seed)
        assert isinstance(coder, VariationalCoder)
        self._adopt(coder)
        return Built(coder, replace(recipe, log_every=200, save_every=2**62))

    def _adopt(self, coder: VariationalCoder) -> None:
        """The conventions of the paper's text or of its scripts, where the two differ."""
        if coder.threshold is not None and coder.threshold.law_type is not CentredSoft:
            coder.threshold.gradient = self.variant.conventions.gradient
        if isinstance(coder.posterior, SpikeSlabPosterior):
            coder.posterior.read_spike = self.variant.conventions.read_spike


@dataclass(frozen=True)
class Asked:
    """Which part of a study."""

    methods: Sequence[str]
    dimensions: Sequence[int]  # at the usual share
    shares: Sequence[float]  # at the middle dimension
    variants: Sequence[Variant]
    seeds: Sequence[int]


def cells_of(setting: DeepSetting, asked: Asked) -> list[DeepCell]:
    """Dimensions first, then shares; each cell once."""
    found: dict[str, DeepCell] = {}
    for seed in asked.seeds:
        for variant in asked.variants:
            points = [(d, setting.share) for d in asked.dimensions] + [(setting.middle, p) for p in asked.shares]
            for n_components, share in points:
                for method in asked.methods:
                    cell = DeepCell(method, n_components, share, variant, seed)
                    found.setdefault(cell.name, cell)
    return list(found.values())
