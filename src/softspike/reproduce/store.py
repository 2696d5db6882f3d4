"""The folder of a study: trained cells, each a file, and what was measured of them. All files appear whole or not."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from softspike.reproduce.setting import Setting
from softspike.run import RunError, RunFolder, read_tensors, write_atomically, write_tensors

__all__ = ["Store"]


class Store:
    """out/config.json            the setting, and a fingerprint of the data
    out/measured-KIND.json        figures of all cells, by kind of measurement
    out/dictionaries.npz          the atoms (D, d) of all cells, float16
    cells/NAME.safetensors        a trained model, with how its training went
    """

    def __init__(self, out: Path, cells: Path | None = None, others: Iterable[Path] = ()):
        self.out, self.cells = RunFolder(out), RunFolder(cells or out / "cells")
        self._others = [RunFolder(path) for path in others]  # folders whose measurements count as well

    @contextmanager
    def opened(self, setting: Setting, fingerprint: str) -> Iterator[None]:
        """Claim the folders for a while; refuses those of another setting, and measurements on other data."""
        try:
            self._open(setting, fingerprint)
            yield
        finally:
            self.cells.unlock()
            self.out.unlock()

    def _open(self, setting: Setting, fingerprint: str) -> None:
        for folder in (self.out, self.cells):
            folder.path.mkdir(parents=True, exist_ok=True)
        self.cells.lock()
        if not (self.out.path / "config.json").exists():
            own = {"setting": setting.label, "data": fingerprint}
            self.out.create({**own, "quick": setting.quick, "steps": setting.study.n_steps})
        _require(self.out, "setting", setting.label)
        for folder in (self.out, *self._others):
            _require(folder, "data", fingerprint)

    # ── models ──

    def trained(self, name: str) -> bool:
        return self._model(name).is_file()

    def check(self, name: str, wanted: Mapping[str, Any]) -> None:
        """Refuse a trained cell whose record says other steps, data or conventions than are wanted.

        Cells from before there was such a record tell their steps. The rest is known of them only where they lie in
        the folder of the study that trained them, and not for the spike-and-slab, whose conventions have changed.
        """
        path, story = self._model(name), self._story(name)
        if "data" not in story:
            own = self.cells.path.resolve() == (self.out.path / "cells").resolve()
            if not own or name.startswith("spike-and-slab.scripts"):
                what = "conventions" if own else "data"
                raise RunError(f"{path} has no record of its {what}; remove it to train it again")
        for key, value in wanted.items():
            if story.get(key, value) != value:
                raise RunError(
                    f"{path} was trained with other {key} than asked for ({story[key]}, not {value}); give the options "
                    "that it was trained with, or another folder with --cells"
                )

    def save(self, name: str, coder: nn.Module, story: Mapping[str, Any]) -> None:
        """The coder's weights, and how its training went."""
        write_tensors(self._model(name), coder.state_dict(), {"story": json.dumps(story)})

    def load(self, name: str, coder: nn.Module) -> dict[str, Any]:
        """Put the weights into the coder; returns how its training went."""
        tensors, metadata = read_tensors(self._model(name))
        try:
            coder.load_state_dict(tensors)
        except RuntimeError:
            raise RunError(
                f"{self._model(name)} holds a model of other sizes than asked for; give another folder with --cells"
            ) from None
        return json.loads(metadata["story"])

    def _story(self, name: str) -> dict[str, Any]:
        return json.loads(read_tensors(self._model(name))[1]["story"])

    def _model(self, name: str) -> Path:
        return self.cells.path / f"{name}.safetensors"

    # ── measurements ──

    def measured(self, kind: str) -> dict[str, Any]:
        """name → figures, from this folder and the others; this one's own come first."""
        found: dict[str, Any] = {}
        for folder in [*self._others, self.out]:
            if (folder.path / _file(kind)).exists():
                found |= folder.read_json(_file(kind))
        return found

    def record(self, kind: str, name: str, figures: Mapping[str, Any]) -> None:
        """Add the figures of a cell."""
        own = self.out.read_json(_file(kind)) if (self.out.path / _file(kind)).exists() else {}
        content = json.dumps({**own, name: figures}, indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(self.out.path / _file(kind), content.encode() + b"\n")

    # ── dictionaries: small enough to keep where models are not ──

    def dictionaries(self) -> dict[str, np.ndarray]:
        """name → atoms (D, d) in half precision."""
        found: dict[str, np.ndarray] = {}
        for folder in [*self._others, self.out]:
            if (folder.path / _ATOMS).exists():
                with np.load(folder.path / _ATOMS, allow_pickle=False) as archive:
                    found |= {name: archive[name] for name in archive.files}
        return found

    def keep_dictionaries(self, atoms: Mapping[str, np.ndarray]) -> None:
        """Add these to the file."""
        own = Store(self.out.path).dictionaries()
        buffer = io.BytesIO()
        all_atoms: dict[str, Any] = {**own, **{name: value.astype(np.float16) for name, value in atoms.items()}}
        np.savez(buffer, **all_atoms)
        write_atomically(self.out.path / _ATOMS, buffer.getvalue())


_ATOMS = "dictionaries.npz"


def _file(kind: str) -> str:
    return f"measured-{kind}.json"


def _require(folder: RunFolder, name: str, value: str) -> None:
    before = folder.config().get(name)
    if before != value:
        raise RunError(f"{folder.path} holds a study with the {name} {before!r}, not {value!r}; choose another folder")
