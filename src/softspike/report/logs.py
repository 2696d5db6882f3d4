"""What training writes down as it goes: one line of numbers per logged step, to as many places as are wanted."""

import csv
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from softspike.disk import open_own, refuse_link
from softspike.generator import LinearGenerator
from softspike.report.figure import mosaic, picture_shape
from softspike.report.progress import components_of
from softspike.train import Progress

__all__ = ["LOGS", "CsvFile", "Log", "LogFile", "TensorBoard", "check_log", "metrics_of", "open_log"]

Line = dict[str, float | None]


def metrics_of(progress: Progress, seconds: float) -> Line:
    """A step's numbers: the terms of the loss, the share of active components, the model's gauges, rates, the time."""
    loss = {name: float(value) for name, value in progress.loss._asdict().items()}
    share = loss["active"] / components_of(progress)
    gauges = {name: float(value) for name, value in progress.coder.gauges().items()}
    rates = {f"rate_{group['name']}": float(group["lr"]) for group in progress.optimizer.param_groups}
    line = {"step": progress.step, **loss, "active_share": share, **gauges, **rates, "seconds": round(seconds, 3)}
    # JSON has no NaN: a level that has not been placed yet is null.
    return {name: value if math.isfinite(value) else None for name, value in line.items()}


class LogFile(Protocol):
    """A place for the lines of a run, beside metrics.jsonl."""

    def write(self, line: Mapping[str, Any]) -> None: ...

    def picture(self, step: int, atoms: np.ndarray) -> None:
        """The dictionary as it is at a checkpoint, atoms (d, D) in rows."""

    def close(self) -> None: ...


class Log:
    """Tells every place about every logged step; the clock goes on from the `seconds` of a resumed run."""

    def __init__(self, append: Callable[[Line], object], files: Sequence[LogFile] = (), seconds: float = 0.0):
        self.append, self.files, self.begun = append, files, time.monotonic() - seconds

    def logged(self, progress: Progress) -> None:
        line = metrics_of(progress, self.seconds)
        self.append(line)
        for file in self.files:
            file.write(line)

    @property
    def seconds(self) -> float:
        """Since the run began, without the pauses before it went on."""
        return time.monotonic() - self.begun

    def saved(self, progress: Progress) -> None:
        for file in self.files:
            if isinstance(progress.coder.generator, LinearGenerator):
                file.picture(progress.step, progress.coder.generator.atoms.detach().T.float().cpu().numpy())

    def close(self) -> None:
        for file in self.files:
            file.close()

    def begin_again(self, fresh: "Log") -> None:
        """Go on as another log of the same run does, one that was opened at an earlier step."""
        self.close()
        self.append, self.files, self.begun = fresh.append, fresh.files, fresh.begun


class CsvFile:
    """metrics.csv: a header, then a row per logged step. A resumed run's earlier rows are written again."""

    def __init__(self, path: Path, earlier: Sequence[Mapping[str, Any]] = ()):
        own = open_own(path, os.O_WRONLY | os.O_TRUNC)
        self._file = open(own, "w", newline="", encoding="utf-8")  # noqa: SIM115  (open as long as training runs)
        self._writer: csv.DictWriter[str] | None = None
        for line in earlier:
            self.write(line)

    def write(self, line: Mapping[str, Any]) -> None:
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(line), restval="", extrasaction="ignore")
            self._writer.writeheader()
        self._writer.writerow({name: "" if value is None else value for name, value in line.items()})
        self._file.flush()  # people watch it grow

    def picture(self, step: int, atoms: np.ndarray) -> None: ...

    def close(self) -> None:
        self._file.close()


class TensorBoard:
    """Event files: scalars grouped as loss/…, code/…, rate/…, and a picture of the dictionary at each checkpoint."""

    def __init__(self, folder: Path, image_shape: tuple[int, ...] | None = None, start: int = 0):
        refuse_link(folder, "a folder of the run's own")
        self._writer = _summary_writer()(str(folder), purge_step=start + 1 if start else None)
        self._shape = image_shape

    def write(self, line: Mapping[str, Any]) -> None:
        for name, value in line.items():
            if name != "step" and value is not None:
                self._writer.add_scalar(_tag(name), value, int(line["step"]))

    def picture(self, step: int, atoms: np.ndarray) -> None:
        tiles = mosaic(atoms, picture_shape(atoms.shape[1], self._shape))
        self._writer.add_image("dictionary", tiles.clip(0, 1), step, dataformats="HW" if tiles.ndim == 2 else "HWC")

    def close(self) -> None:
        self._writer.close()


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError(
            "--log tensorboard needs the package tensorboard, which is not installed; "
            "pip install 'softspike[tensorboard]'"
        ) from error
    return SummaryWriter


_GROUPS = {"total": "loss/total", "misfit": "loss/misfit", "kl": "loss/kl", "level": "threshold/level",
           "price": "threshold/price", "active": "code/active", "active_share": "code/active_share"}  # fmt: skip


def _tag(name: str) -> str:
    return f"rate/{name.removeprefix('rate_')}" if name.startswith("rate_") else _GROUPS.get(name, name)


def _csv(folder: Path, earlier: Sequence[Mapping[str, Any]], image_shape: tuple[int, ...] | None) -> LogFile:
    return CsvFile(folder / "metrics.csv", earlier)


def _tensorboard(folder: Path, earlier: Sequence[Mapping[str, Any]], image_shape: tuple[int, ...] | None) -> LogFile:
    return TensorBoard(folder / "tensorboard", image_shape, int(earlier[-1]["step"]) if earlier else 0)


LOGS: dict[str, Callable[..., LogFile]] = {"csv": _csv, "tensorboard": _tensorboard}


def check_log(name: str) -> None:
    """Raise ValueError where there is no such log, or where what it needs is not installed."""
    if name not in LOGS:
        raise ValueError(f"--log is {name!r}, expected one of: {', '.join(LOGS)}")
    if name == "tensorboard":
        _summary_writer()


def open_log(
    name: str, folder: Path, earlier: Sequence[Mapping[str, Any]] = (), image_shape: tuple[int, ...] | None = None
) -> LogFile:
    """The log of that name in a run folder, after the lines that are there already."""
    return LOGS[name](folder, earlier, image_shape)
