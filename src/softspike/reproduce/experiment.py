"""What a table or figure of the paper is made of."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softspike.coder import Coder
from softspike.report.grid import Grid
from softspike.reproduce.audit import audit
from softspike.reproduce.cell import BEST, METHODS, Cell, Method, Sampling, Variant
from softspike.reproduce.rows import Measured, longest
from softspike.reproduce.setting import Data, Setting

__all__ = ["Atoms", "Experiment", "Report", "Scope", "variants_of"]

Atoms = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Scope:
    """What of an experiment was asked for."""

    setting: Setting
    variants: Sequence[Variant]
    seeds: Sequence[int]
    methods: Sequence[Method]
    samplings: Sequence[Sampling]


@dataclass(frozen=True)
class Report:
    grids: Sequence[Grid]
    findings: Sequence[str]  # sentences that follow from the figures


class Experiment(ABC):
    """Cells to train, a measurement of each, and what their figures add up to."""

    name: str
    title: str
    kind = "audit"  # measurements of one kind are shared between experiments
    methods: Sequence[str] = tuple(METHODS)  # those that it is about
    samplings: Sequence[str] = (BEST.name,)
    compares_switches = False  # whether a page of results shows conventions with one switch set otherwise

    @abstractmethod
    def cells(self, scope: Scope) -> list[Cell]: ...

    def measure(self, coder: Coder, cell: Cell, data: Data, setting: Setting) -> Mapping[str, Any]:
        """The figures of a trained cell."""
        return audit(coder, data, cell.n_samples)

    @abstractmethod
    def report(self, rows: Sequence[Measured], setting: Setting, atoms: Atoms) -> Report:
        """Tables and sentences; `atoms` are the dictionaries (D, d) by cell."""

    def pictured(self, rows: Sequence[Measured]) -> Sequence[Measured]:
        """The rows that a page of results shows pictures of."""
        return longest(rows)

    @abstractmethod
    def draw(self, rows: Sequence[Measured], setting: Setting, path: Path, atoms: Atoms) -> list[Path]:
        """Pictures, the first at `path`; returns those drawn."""


def variants_of(rows: Sequence[Measured]) -> list[Variant]:
    """In the order they come."""
    return list({row.cell.variant.name: row.cell.variant for row in rows}.values())
