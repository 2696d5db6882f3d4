"""A trained model, and the attributes that mirror it."""

import numpy as np

from softspike.coder import Coder
from softspike.data import Standardiser
from softspike.face.settings import Settings
from softspike.fitting import Fitted, Stream
from softspike.generator import LinearGenerator
from softspike.inference import Inference

__all__ = ["Trained"]


class Trained(Settings):
    """Parameters and, once fitted, a model."""

    _stream: Stream | None
    _fitted: Fitted
    _figures: str = ""  # what a run that it was loaded from has measured, in words
    _drawn_shape: tuple[int, ...] | None = None  # of the pictures it was trained on, where the data said so
    coder_: Coder
    standardiser_: Standardiser
    target_active_: float
    n_features_in_: int
    n_steps_: int
    n_samples_seen_: int

    def _settle(self) -> None:
        """What a stream has left to do before its model is used."""
        if self._stream is not None:
            self._stream.settle()

    def _set(self, fitted: Fitted) -> None:
        self._fitted, self._stream = fitted, None
        self.coder_, self.standardiser_ = fitted.coder, fitted.standardiser
        self.target_active_ = self._target_count(fitted.coder.generator.n_components)
        self._refresh()

    def _refresh(self) -> None:
        """Attributes that mirror the model's tensors."""
        self.inference_ = Inference(self.coder_, self.standardiser_)
        generator, scale = self.coder_.generator, self.standardiser_.scale
        self._components = (
            (generator.atoms.detach() * scale).T.cpu().numpy() if isinstance(generator, LinearGenerator) else None
        )
        self.mean_ = self.standardiser_.mean.cpu().numpy().copy()

    @property
    def components_(self) -> np.ndarray:
        """The atoms in rows; AttributeError before fitting, and for a deep generator."""
        found = self.__dict__.get("_components")
        if found is None:
            raise AttributeError(
                "a deep generator has no components; softspike.metric.estimated_dictionary gives its linear picture"
                if "_components" in self.__dict__
                else "this SparseCoder has no components_ before it is fitted"
            )
        return found

    @property
    def image_shape_(self) -> tuple[int, ...] | None:
        """The shape of the images that a deep generator was built for."""
        return self._image_shape

    @property
    def _n_features_out(self) -> int:
        return self.coder_.generator.n_components
