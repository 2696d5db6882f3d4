"""Probabilities and intervals that mean something: learned from data that the model simulates, after all else is."""

from softspike.calibration.intervals import Intervals
from softspike.calibration.law import Calibration
from softspike.calibration.simulation import Inputs, Simulated, simulate, true_rates
from softspike.calibration.simulator import Simulator
from softspike.calibration.sizes import Sizes
from softspike.calibration.unknown import Likeness, Seen, most_alike

__all__ = [
    "Calibration",
    "Inputs",
    "Intervals",
    "Likeness",
    "Seen",
    "Simulated",
    "Simulator",
    "Sizes",
    "most_alike",
    "simulate",
    "true_rates",
]
