"""Rows of tables as measuring would leave them."""

from softspike.reproduce.cell import BEST, METHODS, VARIANTS, Cell
from softspike.reproduce.paper import TABLE1
from softspike.reproduce.rows import Measured

SCRIPTS = VARIANTS["scripts"]


def record(figures, diverged=None, steps=240_000):
    return {"training": {"diverged": diverged, "steps": steps}, "figures": figures}


def row(cell, *figures, diverged=0):
    lost = [record(None, {"step": 3, "cause": "the loss is not finite"})] * diverged
    return Measured(cell, [record(figure) for figure in figures] + lost)


def table1_row(name, n_samples, loss_factor=1.0, mi_factor=1.0):
    """The paper's own figures, times a factor."""
    paper = TABLE1[name, None if name == "fista" else n_samples]
    figures = {
        "loss": {"total": paper.loss * loss_factor},
        "multi_information": {"published": paper.multi_information * mi_factor},
        "best_sample": {"active": 20.0},
        "n_components": 256,
    }
    return row(Cell(METHODS[name], BEST, n_samples, SCRIPTS, 0), figures)
