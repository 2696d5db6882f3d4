"""Atoms moved to where they fit codes best, and what to do with those that no small move mends."""

from softspike.refit.merged import Merged
from softspike.refit.shared import Shared
from softspike.refit.sheared import Sheared
from softspike.refit.step import Refit

__all__ = ["Merged", "Refit", "Shared", "Sheared"]
