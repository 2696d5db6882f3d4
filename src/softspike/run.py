"""The run folder: the only code besides `data` that touches the disk.

run/config.json          what was trained, on what, with which settings
    metrics.jsonl        one line per logged step
    diverged.json        where and why training failed, if it did
    checkpoints/         the last two training states, each written atomically and checksummed
    model.safetensors    the finished model
    summary.json, dictionary.png, report.html, metrics.csv, tensorboard/
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

__all__ = ["FORMAT", "RunError", "RunFolder"]

FORMAT = 1
_KEPT_CHECKPOINTS = 2


class RunError(ValueError):
    """A run folder is missing, damaged, in use, or of another format."""


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
        self._lock = open(self.path / ".lock", "w")  # noqa: SIM115  (held open for as long as the claim)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunError(f"{self.path} is in use by another process; wait for it or choose another folder") from error
        return self

    def unlock(self) -> None:
        """Give the folder up before the process ends."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def in_use(self) -> bool:
        """Whether a process is training here now."""
        try:
            with open(self.path / ".lock") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False  # no lock, no run
        return False

    def config(self) -> dict[str, Any]:
        config = self.read_json("config.json")
        if config.get("format") != FORMAT:
            raise RunError(_wrong_format(self.path, config.get("format")))
        return config

    # ── small files ──

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        write_atomically(self.path / name, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")

    def read_json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.is_file():
            raise RunError(f"{self.path} is not a run folder: it has no {name}; give the folder that -o named")
        try:
            content = json.loads(path.read_bytes())
        except ValueError as error:
            raise RunError(f"{path} is not readable as JSON ({error}); restore it or train again") from error
        if not isinstance(content, dict):
            raise RunError(
                f"{path} holds a JSON {type(content).__name__}, expected an object; restore it or train again"
            )
        return content

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        with open(self.path / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The lines that are whole."""
        path = self.path / "metrics.jsonl"
        return _whole_lines(path) if path.exists() else []

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
            kept = [line for line in _whole_lines(path) if line["step"] <= step]
            write_atomically(path, "".join(json.dumps(line) + "\n" for line in kept).encode())

    # ── tensors ──

    def save_model(self, tensors: Mapping[str, Tensor]) -> None:
        write_tensors(self.path / "model.safetensors", tensors, {})

    def load_model(self) -> dict[str, Tensor]:
        return read_tensors(self.path / "model.safetensors")[0]

    def save_checkpoint(self, step: int, tensors: Mapping[str, Tensor]) -> None:
        folder = self.path / "checkpoints"
        folder.mkdir(exist_ok=True)
        write_tensors(folder / f"step-{step:09d}.safetensors", tensors, {"step": str(step)})
        for old in self.checkpoints()[_KEPT_CHECKPOINTS:]:
            old.unlink()

    def latest(self) -> tuple[int | None, dict[str, Tensor]] | None:
        """The finished model as (None, tensors), else the newest whole checkpoint as (step, tensors), else None."""
        return (None, self.load_model()) if (self.path / "model.safetensors").exists() else self.last_checkpoint()

    def checkpoints(self) -> list[Path]:
        """Their files, newest first."""
        return sorted((self.path / "checkpoints").glob("step-*.safetensors"), reverse=True)

    def last_checkpoint(self) -> tuple[int, dict[str, Tensor]] | None:
        """The newest checkpoint that is whole, as (step, tensors); damaged ones are passed over."""
        for path in self.checkpoints():
            try:
                tensors, metadata = read_tensors(path)
            except RunError:
                continue
            return int(metadata["step"]), tensors
        return None


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the target, flush to disk, rename: a crash leaves the old file or the new one, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    named = {**metadata, "format": str(FORMAT)}
    signed = {**named, "sha256": _digest(plain, named)}
    # One entry only: several are written in a random order, and the same model should be the same bytes.
    write_atomically(path, save(plain, {"softspike": json.dumps(signed, sort_keys=True)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata, after their checksum agrees."""
    if not path.is_file():
        raise RunError(f"{path} does not exist; the run did not finish, or this is not a run folder")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {}).get("softspike", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (it is not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise RunError(f"{path} is damaged ({error}); restore it or train again") from error
    if metadata.get("format") != str(FORMAT):
        raise RunError(_wrong_format(path, metadata.get("format")))
    if metadata.pop("sha256", None) != _digest(tensors, metadata):
        raise RunError(f"{path} is damaged (its checksum does not agree); restore it or train again")
    return tensors, metadata


def _wrong_format(path: Path, found: Any) -> str:
    return (
        f"{path} has format {found!r}, this version of softspike reads format {FORMAT}; "
        "train again, or use the version that wrote it"
    )


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    hashed = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        hashed.update(f"{name}:{value.dtype}:{tuple(value.shape)};".encode())
        hashed.update(value.reshape(-1).view(torch.uint8).numpy().data if value.numel() else b"")
    return hashed.hexdigest()


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    lines = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            content = json.loads(line)
        except ValueError:
            break
        if not isinstance(content, dict) or "step" not in content:
            break
        lines.append(content)
    return lines
