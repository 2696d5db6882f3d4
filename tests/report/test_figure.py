"""Pictures of dictionaries."""

import numpy as np
import pytest
from PIL import Image

from softspike.report.figure import dictionary_order, mosaic, picture_shape, save_dictionary


def test_atoms_are_ordered_by_norm_and_equal_norms_by_usage():
    atoms = np.array([[1.0, 0], [0, 3], [2, 0], [0, 1]])
    assert list(dictionary_order(atoms)) == [1, 2, 0, 3]
    assert list(dictionary_order(atoms, np.array([0.1, 0.0, 0.0, 0.5]))) == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("n_features", "image_shape", "drawn"),
    [(16, None, (4, 4)), (12, None, (1, 12)), (12, (3, 4), (3, 4)), (12, (2, 2, 3), (2, 2, 3))],
)
def test_the_shape_atoms_are_drawn_in(n_features, image_shape, drawn):
    assert picture_shape(n_features, image_shape) == drawn


def test_a_mosaic_scales_each_atom_by_itself_with_zero_in_the_middle():
    atoms = np.array([[0.0, 1, -1, 0.5], [0, 0, 0, 0], [4, 0, 0, -2]])
    picture = mosaic(atoms, (2, 2))
    assert picture.shape == (7, 7)
    np.testing.assert_allclose(picture[1:3, 1:3], [[0.5, 1], [0, 0.75]])
    np.testing.assert_allclose(picture[1:3, 4:6], 0.5)
    np.testing.assert_allclose(picture[4:6, 1:3], [[1, 0.5], [0.5, 0.25]])
    assert (picture[0] == 1).all()


@pytest.mark.parametrize(("n", "shape"), [(5, (4, 4)), (256, (16, 16)), (3, (1, 40)), (7, (4, 4, 3)), (1, (1, 1))])
def test_a_saved_picture_holds_every_atom(tmp_path, n, shape):
    atoms = np.random.default_rng(0).standard_normal((n, int(np.prod(shape))))
    save_dictionary(tmp_path / "d.png", atoms, shape if len(shape) == 3 or shape[0] == 1 else None)
    with Image.open(tmp_path / "d.png") as picture:
        assert picture.mode == ("RGB" if len(shape) == 3 else "L")
        colours = len({pixel for _, pixel in picture.getcolors(2**24)})
    assert colours >= min(3, atoms.size)
