"""In which shape features are drawn, and how values become bytes."""

import numpy as np
import pytest

from softspike.report.pixels import drawn_as, size_of, to_bytes, to_signed_bytes

# features, shape of the data, limit → kind, size drawn, guessed, reduced
SHAPES = [
    (256, (16, 16), 9999, "grey", (16, 16), False, False),
    (256, None, 9999, "grey", (16, 16), True, False),
    (40, None, 9999, "bars", (1, 40), False, False),
    (4, None, 9999, "bars", (1, 4), False, False),  # a picture of 2 × 2 is none
    (48, (4, 4, 3), 9999, "colour", (4, 4), False, False),
    (48, (3, 4, 4), 9999, "colour", (4, 4), False, False),
    (16, (4, 4, 1), 9999, "grey", (4, 4), False, False),
    (16, (1, 4, 4), 9999, "grey", (4, 4), False, False),
    (12, (6, 2), 9999, "grey", (6, 2), False, False),
    (64, (4, 4, 4), 9999, "bars", (1, 64), False, False),  # no picture has four channels
    (4096, (64, 64), 1024, "grey", (32, 32), False, True),
    (12288, (64, 64, 3), 2115, "colour", (22, 22), False, True),
    (5000, None, 300, "bars", (1, 300), False, True),
]


@pytest.mark.parametrize(("n", "shape", "limit", "kind", "size", "guessed", "reduced"), SHAPES)
def test_shapes(n, shape, limit, kind, size, guessed, reduced):
    drawn = drawn_as(n, shape, limit)
    assert (drawn.kind, drawn.size, drawn.guessed, drawn.reduced) == (kind, size, guessed, reduced)
    assert drawn.n_values == size[0] * size[1] * (3 if kind == "colour" else 1)
    values = drawn.values(np.random.default_rng(0).standard_normal((5, n)))
    assert values.shape == (5, drawn.n_values)


@pytest.mark.parametrize(("n", "shape", "limit", "kind", "size", "guessed", "reduced"), SHAPES)
def test_drawing_is_linear_and_keeps_constants(n, shape, limit, kind, size, guessed, reduced):
    """So that sums of drawn atoms are drawings of sums."""
    drawn, random = drawn_as(n, shape, limit), np.random.default_rng(1)
    a, b = random.standard_normal((2, 3, n)).astype(np.float32)
    np.testing.assert_allclose(drawn.values(2 * a - b), 2 * drawn.values(a) - drawn.values(b), atol=1e-5)
    np.testing.assert_allclose(drawn.values(np.full((1, n), 0.7)), 0.7, rtol=1e-6)
    if not reduced and shape and shape[0] not in (1, 3):
        np.testing.assert_array_equal(drawn.values(a), a)


def test_channels_before_pixels_come_out_last():
    image = np.arange(48, dtype=np.float32)
    planes_last = drawn_as(48, (4, 4, 3), 99).values(image.reshape(3, 4, 4).transpose(1, 2, 0).reshape(1, 48))
    np.testing.assert_array_equal(drawn_as(48, (3, 4, 4), 99).values(image[None]), planes_last)


def test_bytes_come_back_within_half_a_step():
    values = np.random.default_rng(0).standard_normal((20, 30)) * np.logspace(-6, 6, 20)[:, None]
    signed, peak = to_signed_bytes(values)
    assert signed.dtype == np.int8
    assert (np.abs(signed * (peak / 127)[:, None] - values) <= 0.501 * peak[:, None] / 127).all()
    low, high = values.min(1), values.max(1)
    unsigned = to_bytes(values, low, high)
    step = (high - low)[:, None] / 255
    assert (np.abs(low[:, None] + unsigned * step - values) <= 0.501 * step).all()


def test_nothing_and_constants():
    signed, peak = to_signed_bytes(np.zeros((2, 3)))
    assert not signed.any()
    assert not peak.any()
    assert not to_bytes(np.ones((2, 3)), np.ones(2), np.ones(2)).any()


@pytest.mark.parametrize(
    ("shape", "words"),
    [((8, 8, 3), "8 × 8 × 3"), ((16, 16, 1), "16 × 16"), ((4, 5), "4 × 5"), ((3, 1), "3 × 1"), (None, "7 features")],
)
def test_the_size_of_a_row_in_words(shape, words):
    assert size_of(shape, 7) == words
