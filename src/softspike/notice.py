"""Warnings of ours: one sentence each, in the name of whoever called us."""

import sys
import warnings

__all__ = ["Notice", "notice"]

_BETWEEN = ("softspike", "contextlib", "sklearn", "torch")  # packages that stand between a caller and who warns


class Notice(UserWarning):
    """What whoever called should know; the work goes on."""


def notice(sentence: str, category: type[Notice] = Notice) -> None:
    """Warn, as if the line outside of this library that called it did.

    >>> notice("21 rows are too few to keep any aside")                                       # doctest: +SKIP
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)
