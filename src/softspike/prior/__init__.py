"""What q is compared with, and the divergences torch does not know."""

from softspike.prior.laws import LaplacePrior, LearnedSpikeSlabPrior, NormalPrior, Prior, SpikeSlabPrior

__all__ = ["LaplacePrior", "LearnedSpikeSlabPrior", "NormalPrior", "Prior", "SpikeSlabPrior"]
