"""Fixed seeds for every test, and the tables of cases on the import path."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

# Kernels run in Triton's interpreter where there is no GPU; it must be known before they are imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# A shell without job control starts what runs in the background deaf to Ctrl-C, which tests of interrupts send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    torch.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Decoded images stay out of the user's cache, also those of commands, whose server inherits this."""
    os.environ["SOFTSPIKE_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def no_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of a short fit is the simulation that probabilities and intervals are calibrated by, after all else is
    learned. Dictionaries, cuts and codes do not depend on it, and tests of these alone do without."""
    from softspike.model import VariationalCoder

    monkeypatch.setattr(VariationalCoder, "_calibrate_by_simulation", lambda *given: None)


@pytest.fixture
def one_refit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last fit of the dictionary takes one step, not up to twenty: for where it does not matter how well it fits."""
    from softspike import fitting

    whole = fitting.refit_dictionary

    def short(coder: Any, plan: Any, *given: Any) -> int:
        return whole(coder, replace(plan, dictionary_refits=min(plan.dictionary_refits, 1)), *given)

    monkeypatch.setattr(fitting, "refit_dictionary", short)


@pytest.fixture(scope="session")
def report_bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every kind, with their data beside them."""
    from pages import bench

    return bench(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def pages(report_bench: Path) -> dict[str, Path]:
    """A page of every kind; nothing is made where there is no browser to open it."""
    from browser import browser
    from pages import all_pages

    browser()
    return all_pages(report_bench)
