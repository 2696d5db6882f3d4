"""The folder of a deep study: one file of figures for each finished cell, so that several processes can work on it."""

import fcntl
import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from torch import Tensor

from softspike.disk import open_own
from softspike.run import RunError, RunFolder, read_tensors, write_atomically, write_tensors

__all__ = ["DeepStore"]


class DeepStore:
    """config.json               the setting, and a fingerprint of the images
    classifier.safetensors       the network whose features the Fréchet distance compares
    measured/CELL.json           what was measured of a trained cell
    pictures/CELL.npz            what it has learned, as images in bytes
    models/CELL.safetensors      the trained cell, where it was asked for
    """

    def __init__(self, path: Path):
        self.path, self.folder = path, RunFolder(path)

    def open(self, setting: Mapping[str, Any], label: str, fingerprint: str, features: str) -> None:
        """Begin the study, or go on with it; a folder of another setting, other images or features is refused."""
        own = {**setting, "images": fingerprint, "label": label, "features": features}
        for name in ("measured", "pictures", "models"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        if not (self.path / "config.json").exists():
            self.folder.write_json("config.json", own)
        before = self.config()
        for name, value in own.items():
            if before.get(name, value) != value:
                other = f"{name} = {before.get(name)!r}, not {value!r}"
                raise RunError(f"{self.path} holds a study with {other}; choose another folder")

    def config(self) -> dict[str, Any]:
        return self.folder.read_json("config.json")

    @contextmanager
    def claimed(self, cell: str) -> Iterator[bool]:
        """Whether this process may work on the cell: it is not finished, and no other process is at it."""
        with self._lock(cell) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            yield not self.done(cell)

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """One process at a time; the others wait."""
        with self._lock(name) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _lock(self, name: str) -> BinaryIO:
        return open(open_own(self.path / "models" / f".{name}.lock", os.O_RDWR), "r+b")

    def done(self, cell: str) -> bool:
        return (self.path / "measured" / f"{cell}.json").exists()

    def record(self, cell: str, content: Mapping[str, Any], pictures: Mapping[str, np.ndarray]) -> None:
        """Pictures first: a cell is finished when its figures are there."""
        if pictures:
            buffer = io.BytesIO()
            named: dict[str, Any] = dict(pictures)
            np.savez_compressed(buffer, **named)
            write_atomically(self.path / "pictures" / f"{cell}.npz", buffer.getvalue())
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(self.path / "measured" / f"{cell}.json", text.encode() + b"\n")

    def measured(self) -> dict[str, dict[str, Any]]:
        """cell → its figures, of all that are finished."""
        return {path.stem: json.loads(path.read_bytes()) for path in sorted((self.path / "measured").glob("*.json"))}

    def pictures(self, cell: str) -> dict[str, np.ndarray]:
        path = self.path / "pictures" / f"{cell}.npz"
        if not path.exists():
            return {}
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    def save_tensors(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        write_tensors(self.path / f"{name}.safetensors", tensors, {})

    def load_tensors(self, name: str) -> dict[str, Tensor] | None:
        path = self.path / f"{name}.safetensors"
        return read_tensors(path)[0] if path.exists() else None
