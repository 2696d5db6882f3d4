"""From rows and a plan to a fitted coder: one, several together, or on and on with a stream."""

from softspike.fitting.device import pick_device
from softspike.fitting.dictionary import refit_dictionary
from softspike.fitting.fitted import Checkpoint, Fitted, check_size, prepare, restore
from softspike.fitting.rows import fit_rows
from softspike.fitting.several import Start, best_of, fit_several
from softspike.fitting.stream import Stream

__all__ = [
    "Checkpoint",
    "Fitted",
    "Start",
    "Stream",
    "best_of",
    "check_size",
    "fit_rows",
    "fit_several",
    "pick_device",
    "prepare",
    "refit_dictionary",
    "restore",
]
