"""The run folder: what lies where in it, who may write there, and that every file appears whole or not at all.

run/config.json          what was trained, on what, with which settings
    metrics.jsonl        one line per logged step
    diverged.json        where and why training failed, if it did
    checkpoints/         the last two training states, each written atomically and checksummed
    model.safetensors    the finished model
    summary.json, dictionary.png, report.html, metrics.csv, tensorboard/
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any

from torch import Tensor

from softspike.disk import NotRegular, named, open_own, refuse_link, write_atomically
from softspike.files import (
    FORMAT,
    RunError,
    is_count,
    read_object,
    read_tensors,
    whole_lines,
    write_tensors,
    wrong_format,
)
from softspike.notice import Notice, notice

__all__ = ["FORMAT", "RunError", "RunFolder", "RunWarning", "read_tensors", "write_atomically", "write_tensors"]

_KEPT_CHECKPOINTS = 2
_NONE_LEFT = "there is no whole checkpoint before it, so that training starts again from step 0"


def _is_settings(value: Any) -> bool:
    return isinstance(value, dict) and (value.get("max_steps") is None or is_count(value["max_steps"]))


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) < 8 and all(map(is_count, value))


def _is_data(value: Any) -> bool:
    return isinstance(value, dict) and (value.get("image_shape") is None or _is_shape(value["image_shape"]))


# What softspike itself writes, where it writes it; anything else was damaged or tampered with.
_CONFIG: dict[str, Callable[[Any], bool]] = {
    "estimator": _is_settings, "data": _is_data, "image_shape": _is_shape, "n_features": is_count, "n_steps": is_count,
    "n_samples_seen": is_count, "feature_names": lambda value: isinstance(value, list),
}  # fmt: skip


class RunWarning(Notice):
    """Something in a run folder is damaged, and something older is used in its place."""


class RunFolder:
    """One folder, one run. Every file appears whole or not at all."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._lock: Any = None

    def refuse_if_taken(self) -> None:
        """Raise where a run is already here, or where no folder can be."""
        if (self.path / "config.json").exists():
            raise RunError(f"{self.path} already holds a run; continue it with --resume or choose another folder")
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path} is a file, expected a folder for the run; choose another name")

    def refuse_if_trained(self) -> None:
        """Raise where a run of `softspike train` is, or is going on: its log and checkpoints are of that model."""
        if self.in_use() or self.checkpoints() or (self.path / "metrics.jsonl").exists():
            raise RunError(
                f"{self.path} holds a run of softspike train, whose log and checkpoints would be those of another "
                "model; choose another folder"
            )

    def create(self, config: Mapping[str, Any]) -> "RunFolder":
        """Start a new run here and claim the folder; refuses a folder that already holds a run."""
        self.refuse_if_taken()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make the folder {self.path} ({error.strerror}); choose another place") from error
        self.lock()
        self.refuse_if_taken()  # another process may have been quicker
        self.write_json("config.json", {"format": FORMAT, **config})
        return self

    def lock(self) -> "RunFolder":
        """Claim the folder for this process until it ends; a second claimant is refused."""
        path = self.path / ".lock"
        with _ours(), named(path):
            refuse_link(self.path / "checkpoints", "a folder of the run's own")
            self._lock = open(open_own(path, os.O_RDWR), "r+b")  # noqa: SIM115  (held open for as long as the claim)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunError(f"{self.path} is in use by another process; wait for it or choose another folder") from error
        self._sweep()
        return self

    def _sweep(self) -> None:
        """Remove what a process that was killed had begun to write; whoever holds the lock owns it."""
        for pattern in (".*.tmp", "checkpoints/.*.tmp"):
            for torn in self.path.glob(pattern):
                with suppress(OSError):
                    torn.unlink()

    def unlock(self) -> None:
        """Give the folder up before the process ends."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def in_use(self) -> bool:
        """Whether a process is training here now."""
        if not (self.path / ".lock").is_file():
            return False  # no lock, no run
        try:
            with open(self.path / ".lock") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def config(self) -> dict[str, Any]:
        """What this folder is of; RunError where it is of another format or, for a coder, not what softspike writes."""
        config = self.read_json("config.json")
        if config.get("format") != FORMAT:
            raise RunError(wrong_format(self.path, config.get("format")))
        for name, fine in _CONFIG.items() if "estimator" in config else ():
            if config.get(name) is not None and not fine(config[name]):
                raise RunError(
                    f"{self.path}/config.json has {str(config[name])[:40]!r} for {name}, which softspike never writes; "
                    "restore it or train again"
                )
        return config

    def coder_config(self) -> dict[str, Any]:
        """The same, where it must be of a trained coder."""
        config = self.config()
        if config.get("estimator") is None:
            raise RunError(f"{self.path} holds no coder; give a folder that softspike train wrote")
        return config

    # ── small files ──

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        write_atomically(self.path / name, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")

    def read_json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.is_file():
            raise RunError(f"{self.path} is not a run folder: it has no {name}; give the folder that -o named")
        return read_object(path)

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        path = self.path / "metrics.jsonl"
        with _ours(), named(path), open(open_own(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The lines that are whole."""
        path = self.path / "metrics.jsonl"
        with _ours():
            return whole_lines(path) if path.exists() else []

    def forget(self, name: str) -> None:
        """Remove a file that no longer holds."""
        (self.path / name).unlink(missing_ok=True)

    def optional_json(self, name: str) -> dict[str, Any] | None:
        """A file that not every run has."""
        return self.read_json(name) if (self.path / name).is_file() else None

    def drop_metrics_after(self, step: int) -> None:
        """Forget lines of steps that a resumed run will do again, and a line torn by a crash."""
        path = self.path / "metrics.jsonl"
        if path.exists():
            kept = [line for line in self.metrics() if line["step"] <= step]
            write_atomically(path, "".join(json.dumps(line) + "\n" for line in kept).encode())

    # ── tensors ──

    def save_model(self, tensors: Mapping[str, Tensor]) -> None:
        write_tensors(self.path / "model.safetensors", tensors, {})

    def load_model(self) -> dict[str, Tensor]:
        if not (self.path / "model.safetensors").exists() and self.checkpoints():
            again = f"softspike train DATA -o {quote(str(self.path))} --resume"
            raise RunError(f"{self.path} holds a run that was stopped before its end; go on with: {again}")
        return read_tensors(self.path / "model.safetensors")[0]

    def save_checkpoint(self, step: int, tensors: Mapping[str, Tensor]) -> None:
        folder = self.path / "checkpoints"
        with _ours(), named(folder):
            refuse_link(folder, "a folder of the run's own")
            folder.mkdir(exist_ok=True)
        newest = folder / f"step-{step:09d}.safetensors"
        write_tensors(newest, tensors, {"step": str(step)})
        # What claims to be ahead was passed over when training went on from before it: damaged, or a course left.
        ahead = [path for path in self.checkpoints() if path.name > newest.name]
        behind = [path for path in self.checkpoints() if path.name <= newest.name]
        for useless in [*ahead, *behind[_KEPT_CHECKPOINTS:]]:
            useless.unlink()

    def latest(self) -> tuple[int | None, dict[str, Tensor]] | None:
        """The finished model as (None, tensors), else the newest whole checkpoint as (step, tensors), else None."""
        return (None, self.load_model()) if (self.path / "model.safetensors").exists() else self.last_checkpoint()

    def checkpoints(self) -> list[Path]:
        """Their files, newest first."""
        return sorted((self.path / "checkpoints").glob("step-*.safetensors"), reverse=True)

    def last_checkpoint(self) -> tuple[int, dict[str, Tensor]] | None:
        """The newest checkpoint that is whole, as (step, tensors); damaged ones are passed over, with a warning."""
        found, damage = None, []
        for path in self.checkpoints():
            try:
                tensors, metadata = read_tensors(path)
                found = _step_of(path, metadata), tensors
                break
            except RunError as error:
                damage.append(str(error).split(";")[0])
        used = f"the checkpoint before it is used, of step {found[0]}" if found else _NONE_LEFT
        for said in damage:
            notice(f"{said}; {used}", RunWarning)
        return found


@contextmanager
def _ours() -> Iterator[None]:
    """What stands in the place of a file of the run, as an error of the run."""
    try:
        yield
    except NotRegular as error:
        raise RunError(str(error)) from error


def _step_of(path: Path, metadata: Mapping[str, Any]) -> int:
    """The step that a checkpoint says it was taken after."""
    step = str(metadata.get("step"))
    if not (step.isascii() and step.isdigit() and len(step) < 16):
        raise RunError(f"{path} is damaged (its step is {step[:20]!r}); restore it or train again")
    return int(step)
