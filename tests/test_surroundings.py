"""What the caller has set in torch makes no difference to what is learned, and is as it was afterwards."""

from contextlib import contextmanager
from functools import cache

import pytest
import torch
from small import quick, same_bits, small_data

from softspike import SparseCoder

X = small_data(400)


@contextmanager
def doubles():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


SURROUNDINGS = {"no gradients": torch.no_grad, "inference": torch.inference_mode, "float64": doubles}


def same(one, other):
    """Every bit of both models."""
    return same_bits(one.coder_.state_dict(), other.coder_.state_dict())


def settings():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()


@cache
def undisturbed(**changes):
    """What is learned at once and as a stream where nothing is set; several starts have no stream."""
    return quick(**changes).fit(X), None if "n_init" in changes else quick(**changes).partial_fit(X).partial_fit(X)


@pytest.mark.parametrize("where", SURROUNDINGS)
@pytest.mark.parametrize("changes", [{}, {"n_init": 2}, {"method": "thresholded-laplacian"}, {"method": "topk"}])
def test_fit_and_partial_fit_learn_the_same(changes, where):
    plain, stream = undisturbed(**changes)
    with SURROUNDINGS[where]():
        before = settings()
        coder = quick(**changes).fit(X)
        assert same(coder, plain)
        if stream is not None:
            again = quick(**changes).partial_fit(X).partial_fit(X)
            assert same(again, stream)
        assert settings() == before


@pytest.mark.parametrize("where", SURROUNDINGS)
def test_a_folder_opens_and_goes_on(where, tmp_path):
    plain = quick().fit(X)
    plain.save(tmp_path / "run")
    with SURROUNDINGS[where]():
        opened = SparseCoder.load(tmp_path / "run")
        assert same(opened, plain)
        opened.partial_fit(X)
    assert same(opened, plain.partial_fit(X))
