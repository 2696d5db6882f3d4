"""4  s → z: thresholds, their laws, their gradients and their levels."""

from softspike.threshold.activity import activity_under_gamma
from softspike.threshold.centred import CentredSoft
from softspike.threshold.cut import level_for_count, nearest_level_for_count
from softspike.threshold.divergence import as_spike_slab
from softspike.threshold.functions import hard_threshold, shifted_soft_threshold, soft_threshold
from softspike.threshold.gradient import SLOPES, DoubledStraightThrough, StraightThrough, Subgradient, ThresholdGradient
from softspike.threshold.hard import Hard, PositiveHard
from softspike.threshold.law import ThresholdedLaw
from softspike.threshold.level import FixedLevel, GammaLevel, Level, level_for_activity
from softspike.threshold.module import Threshold
from softspike.threshold.reweighted import Reweighted
from softspike.threshold.shifted import ShiftedSoft
from softspike.threshold.tracked import TrackedLevel

__all__ = [
    "SLOPES",
    "CentredSoft",
    "DoubledStraightThrough",
    "FixedLevel",
    "GammaLevel",
    "Hard",
    "Level",
    "PositiveHard",
    "Reweighted",
    "ShiftedSoft",
    "StraightThrough",
    "Subgradient",
    "Threshold",
    "ThresholdGradient",
    "ThresholdedLaw",
    "TrackedLevel",
    "activity_under_gamma",
    "as_spike_slab",
    "hard_threshold",
    "level_for_activity",
    "level_for_count",
    "nearest_level_for_count",
    "shifted_soft_threshold",
    "soft_threshold",
]
