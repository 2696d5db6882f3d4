"""A coder in a notebook, and its dictionary drawn with matplotlib."""

import base64
import io
import re

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image
from sklearn import config_context
from small import quick, small_data

from softspike import SparseCoder
from softspike.report.notebook import coder_html

mpl.use("Agg")


@pytest.fixture(scope="module")
def coder():
    return quick().fit(small_data(n_features=16))


def test_a_fitted_coder_shows_its_dictionary(coder):
    html = coder._repr_html_()
    assert html == coder._repr_mimebundle_()["text/html"]
    assert "24 atoms of 16 features" in html
    assert "hard-gaussian" in html
    png = base64.b64decode(re.search(r"base64,([^\"]+)\"", html)[1])
    with Image.open(io.BytesIO(png)) as picture:
        assert picture.size == (26, 26)  # 5 × 5 tiles of 4 × 4 with gaps
        assert len(picture.getcolors()) > 10


def test_before_fit_it_is_scikit_learns(coder):
    assert "SparseCoder" in SparseCoder()._repr_html_()
    assert "atoms of" not in SparseCoder()._repr_html_()
    with config_context(display="text"):
        assert coder._repr_mimebundle_().keys() == {"text/plain"}


def test_text_stays_text():
    html = coder_html("<b>", "a & <script>", np.ones((3, 4)), {"x": "</td><script>alert(1)</script>"})
    assert "<script" not in html
    assert "<b>" not in html


def test_pictures_become_tiles_and_the_rest_a_map(coder):
    from matplotlib import pyplot

    axes = coder.plot_components()
    assert axes.images[0].get_array().shape == (26, 26)
    pyplot.close("all")
    _, given = pyplot.subplots()
    assert coder.plot_components(image_shape=(2, 8), ax=given) is given
    pyplot.close("all")
    axes = quick().fit(small_data()).plot_components()
    assert axes.images[0].get_array().shape == (24, 12)
    pyplot.close("all")


def test_the_order_of_the_atoms(coder):
    from matplotlib import pyplot

    few = coder.plot_components(order=np.array([3, 1])).images[0].get_array()
    peak = np.abs(coder.components_[3]).max()
    np.testing.assert_allclose(few[1:5, 1:5], 0.5 + 0.5 * coder.components_[3].reshape(4, 4) / peak, atol=1e-6)
    pyplot.close("all")


def test_what_cannot_be_drawn(coder):
    with pytest.raises(ValueError, match=r"image_shape is \(3, 5\), expected one of 16 features"):
        coder.plot_components(image_shape=(3, 5))
