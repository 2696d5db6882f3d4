"""A coder on disk."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from softspike import __version__
from softspike.data import Standardiser
from softspike.face.ordinary import ordinary_torch
from softspike.face.parameters import plain_parameters
from softspike.face.trained import Trained
from softspike.fitting import check_size, pick_device, prepare, restore
from softspike.report.notebook import figures_line
from softspike.run import FORMAT, RunError, RunFolder

__all__ = ["Kept"]

K = TypeVar("K", bound="Kept")


class Kept(Trained):
    """Saved as two files, and back."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write config.json and model.safetensors into a folder, over those of an earlier `save`."""
        check_is_fitted(self, "coder_")
        run, config = RunFolder(path), self.config()
        run.refuse_if_trained()
        run.path.mkdir(parents=True, exist_ok=True)
        (run.path / "summary.json").unlink(missing_ok=True)  # figures of the model that was here before
        run.write_json("config.json", config)
        run.save_model(self.model_tensors())

    def model_tensors(self) -> dict[str, Tensor]:
        """The trained model as named tensors, without the optimiser's."""
        self._settle()
        training = ("optimizer.", "precision.")
        return {name: value for name, value in self._fitted.tensors().items() if not name.startswith(training)}

    def config(self) -> dict[str, Any]:
        """What `save` writes beside the tensors."""
        return {
            "format": FORMAT, "softspike": __version__, "estimator": plain_parameters(self.get_params(deep=False)),
            "n_features": getattr(self, "n_features_in_", None),
            "feature_names": list(getattr(self, "feature_names_in_", [])) or None,
            "n_steps": getattr(self, "n_steps_", 0), "n_samples_seen": getattr(self, "n_samples_seen_", 0),
            "image_shape": getattr(self, "_image_shape", None),
        }  # fmt: skip

    @classmethod
    def load(cls: type[K], path: str | os.PathLike[str], device: str = "auto") -> K:
        """A coder from a folder written by `save` or by `softspike train`."""
        run = RunFolder(path)
        coder = cls.restored(run.config(), run.load_model(), device, str(run.path))
        coder._figures = figures_line(run.optional_json("summary.json") or {})
        return coder

    @classmethod
    @ordinary_torch()
    def restored(
        cls: type[K], config: Mapping[str, Any], tensors: dict[str, Tensor], device: str = "auto", where: str = "this"
    ) -> K:
        """A coder from what `config` returned and the tensors of a model or a checkpoint; `where` is for messages."""
        place = pick_device(device)
        try:
            coder = cls(**{**config["estimator"], "device": device})
            coder.n_features_in_ = int(config["n_features"])
            if config.get("feature_names"):
                coder.feature_names_in_ = np.asarray(config["feature_names"], dtype=object)
            coder.check_parameters(coder.n_features_in_, config.get("image_shape"))
            plan = coder._plan(coder.n_features_in_)
            check_size(plan, tensors)
            identity = Standardiser.identity(coder.n_features_in_)
            fitted = prepare(coder._builder(), plan, 0, place, identity)
            restore(fitted, tensors)
            coder._set(fitted)
            coder.n_steps_, coder.n_samples_seen_ = int(config.get("n_steps", 0)), int(config.get("n_samples_seen", 0))
            shape = (config.get("data") or {}).get("image_shape")
            coder._drawn_shape = tuple(shape) if shape else None
        except Exception as error:  # a file that was tampered with can say anything at all
            why = " ".join(str(error).split())
            raise RunError(f"{where} does not hold a SparseCoder of this version ({why}); train again") from error
        return coder
