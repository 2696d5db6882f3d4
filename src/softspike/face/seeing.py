"""A coder to look at: its dictionary, and what a notebook shows."""

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from softspike.face.trained import Trained
from softspike.report.figure import plot_dictionary
from softspike.report.notebook import coder_html
from softspike.report.pixels import size_of

__all__ = ["Seen"]


class Seen(Trained):
    """Pictures of what was learned."""

    def plot_components(
        self, image_shape: tuple[int, ...] | None = None, order: np.ndarray | None = None, ax: Any = None
    ) -> Any:
        """Draw the dictionary with matplotlib, by falling norm or in the given order, and return the axes.

        Atoms become tiles of `image_shape`, (h, w) or (h, w, 3); without it, of the shape of the images it was trained
        on, where these came from a file, squares where the number of features is a square, otherwise rows of a map.
        """
        check_is_fitted(self, "coder_")
        return plot_dictionary(self.components_, image_shape or self._drawn_shape, order, ax)

    def _html_repr(self) -> str:
        """What notebooks show: scikit-learn's diagram before `fit`, figures and the dictionary after."""
        if not hasattr(self, "components_"):
            return estimator_html_repr(self)
        d, n_features = self.components_.shape
        each = size_of(self._drawn_shape, n_features)
        line = f"{d} atoms of {each}, {self.target_active_:g} asked to be active, {self.n_steps_} steps"
        parameters = self.get_params(deep=False)
        return coder_html(type(self).__name__, line, self.components_, parameters, self._drawn_shape, self._figures)

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        return {**shown, "text/html": self._html_repr()} if get_config()["display"] == "diagram" else shown
