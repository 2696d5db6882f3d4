"""Fixed seeds for every test, and the tables of cases on the import path."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock

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
    """The last fit of the dictionary takes one step, not up to 200: where it does not matter how well it fits."""
    from softspike.fitting import placing as fitting

    whole = fitting.refit_dictionary

    def short(coder: Any, plan: Any, *given: Any) -> int:
        return whole(coder, replace(plan, dictionary_refits=min(plan.dictionary_refits, 1)), *given)

    monkeypatch.setattr(fitting, "refit_dictionary", short)


def shared(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that is made by the first process of the session that needs it, while others wait for it."""
    own = factory.getbasetemp()
    root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder, done = root / f"shared-{name}", root / f"shared-{name}.done"
    with FileLock(root / f"shared-{name}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # what failed in another process
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def report_bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every kind, with their data beside them; a copy for this process, whose tests write into it."""
    from pages import bench

    copy = tmp_path_factory.mktemp("report") / "bench"
    return shutil.copytree(shared(tmp_path_factory, "report", bench), copy)


@pytest.fixture(scope="session")
def pages(report_bench: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of every kind, only read from."""
    from pages import all_pages

    def make(folder: Path) -> None:
        place = shutil.copytree(report_bench, folder / "bench")
        found = {name: str(page.relative_to(folder)) for name, page in all_pages(place).items()}
        (folder / "pages.json").write_text(json.dumps(found), encoding="utf-8")

    folder = shared(tmp_path_factory, "pages", make)
    return {name: folder / page for name, page in json.loads((folder / "pages.json").read_text("utf-8")).items()}
