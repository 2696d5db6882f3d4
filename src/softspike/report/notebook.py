"""A fitted coder in a notebook: one line, its dictionary, its parameters."""

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from softspike.report.figure import dictionary_order, mosaic, picture_shape
from softspike.report.files import environment

__all__ = ["coder_html", "figures_line"]

_MOST_ATOMS, _WIDTH = 400, 560


def figures_line(summary: Mapping[str, Any]) -> str:
    """The figures of a summary.json in words; nothing where it does not hold them."""
    try:
        figures = f"explained variance {summary['explained_variance']:.3f}, {summary['active']:.2f} active, "
        return f"{figures}{summary['dead']:d} dead, on {summary['n_samples']:d} {summary.get('on') or 'samples'}"
    except (KeyError, TypeError, ValueError):
        return ""


def coder_html(
    name: str,
    line: str,
    components: np.ndarray,
    parameters: Mapping[str, Any],
    image_shape: tuple[int, ...] | None = None,
    figures: str = "",
) -> str:
    """HTML that stands alone in an output cell; all text in it is escaped. The picture shows at most 400 atoms."""
    from PIL import Image

    order = dictionary_order(components)[:_MOST_ATOMS]
    shape = picture_shape(components.shape[1], image_shape)
    picture = mosaic(components[order], shape, gap=int(shape[0] > 1))  # rows of a map touch
    image = Image.fromarray(np.rint(255 * picture.clip(0, 1)).astype(np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    zoom = max(1, round(_WIDTH / image.width))
    template = environment().get_template("coder.html")
    return template.render(
        name=name, line=line, figures=figures, n_atoms=len(order), width=zoom * image.width,
        picture=base64.b64encode(buffer.getvalue()).decode("ascii"),
        parameters=[(key, repr(value)) for key, value in parameters.items()],
    )  # fmt: skip
