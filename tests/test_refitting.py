"""The last fit of the dictionary: least squares as it says, better on unseen rows or not at all."""

import copy
from functools import cache

import numpy as np
import pytest
import torch
from small import QUICK, same_bits, small_data

from softspike import SparseCoder
from softspike.data import ArrayRows, TensorRows, synthetic
from softspike.fitting import Checkpoint, refit_dictionary
from softspike.methods import METHODS, Plan
from softspike.metric.recovery import match
from softspike.refit import Refit
from softspike.train import Interrupted

pytestmark = pytest.mark.usefixtures("no_simulation")


def ended(x: np.ndarray, refits: int, n_components: int, **settings) -> SparseCoder:
    """Trained as far as the last fit, which is the same for any number of refits and kept; and that fit."""
    key = hash((x.tobytes(), n_components, *settings.items()))
    known = {"random_state": 0, "verbose": False, **settings}
    if key not in LAST_STEPS:
        saved = []
        SparseCoder(n_components, dictionary_refits=0, **known).fit_rows(
            ArrayRows(x), on_checkpoint=lambda *state: saved.append(Checkpoint(*state))
        )
        LAST_STEPS[key] = saved[-1]
        assert saved[-1].step == settings["max_steps"]
    return SparseCoder(n_components, dictionary_refits=refits, **known).fit_rows(ArrayRows(x), resume=LAST_STEPS[key])


LAST_STEPS: dict[int, Checkpoint] = {}


def trained(refits: int, positive: bool = False, noise: float = 0.0) -> tuple[SparseCoder, np.ndarray]:
    """24 sources in 12 dimensions, 2 active: a coder of 1,500 rows, and 500 that it has not seen."""
    coder, unseen = once_trained(refits, positive, noise)
    return copy.deepcopy(coder), unseen


@cache
def once_trained(refits: int, positive: bool, noise: float) -> tuple[SparseCoder, np.ndarray]:
    x = synthetic(2000, 12, 24, 2, 0, noise, positive).x.numpy()
    return ended(x[:1500], refits, 24, n_active=2, max_steps=400, positive=positive), x[1500:]


def test_a_training_that_was_kept_ends_as_a_whole_one() -> None:
    x = synthetic(600, 12, 24, 2, 0, 0.0, False).x.numpy()
    known = {"n_active": 2, "max_steps": 30}
    for refits in (0, 3):
        whole = SparseCoder(24, dictionary_refits=refits, random_state=0, verbose=False, **known).fit(x)
        assert same_bits(ended(x, refits, 24, **known).model_tensors(), whole.model_tensors())


def test_a_step_is_least_squares() -> None:
    """As numpy's solver finds it for rows and codes with one more for each atom: z = √κ·eᵢ, x = Az; to 1e-4."""
    coder, x = trained(0)
    model, rows = coder.coder_, coder.standardiser_(torch.from_numpy(x))
    with torch.no_grad():
        codes, atoms = model.code(rows).double().numpy(), model.generator.atoms.double().numpy()
        found = Refit.of(model.generator, model.code, TensorRows(rows)).atoms.numpy()
    more = np.eye(24) * np.sqrt(np.square(codes).sum() / (codes != 0).sum())
    left, right = np.vstack([codes, more]), np.vstack([rows.double().numpy(), more @ atoms.T])
    np.testing.assert_allclose(found, np.linalg.lstsq(left, right, rcond=None)[0].T, atol=1e-4)


def test_a_step_finds_the_origin_of_rows() -> None:
    """With one more column of ones in numpy's least squares; to 1e-4, rows being 0.3 away from where codes start."""
    coder, x = trained(0)
    model, rows = coder.coder_, coder.standardiser_(torch.from_numpy(x)) + 0.3
    with torch.no_grad():
        codes, atoms = model.code(rows).double().numpy(), model.generator.atoms.double().numpy()
        found = Refit.of(model.generator, model.code, TensorRows(rows), from_origin=False)
    more = np.eye(24) * np.sqrt(np.square(codes).sum() / (codes != 0).sum())
    left = np.hstack([np.vstack([codes, more]), np.repeat([[1.0], [0.0]], [len(x), 24], axis=0)])
    solved = np.linalg.lstsq(left, np.vstack([rows.double().numpy(), more @ atoms.T]), rcond=None)[0]
    np.testing.assert_allclose(found.atoms.numpy(), solved[:-1].T, atol=1e-4)
    np.testing.assert_allclose(found.origin.numpy(), solved[-1], atol=1e-4)


def test_signed_codes_start_where_the_sources_do() -> None:
    """The true mean of these rows is 0, that of the sample is 0.02 or so away; what is taken out, a quarter of it."""
    coder, _ = trained(200)
    learned_from = synthetic(2000, 12, 24, 2, 0, 0.0, False).x.numpy()[:1500]
    assert np.linalg.norm(coder.mean_) < 0.25 * np.linalg.norm(learned_from.mean(0))
    positive, _ = trained(200, positive=True)
    assert not positive.mean_.any()


@pytest.mark.parametrize("positive", [False, True])
def test_without_noise_every_source_is_found(positive: bool) -> None:
    """24 in 12 dimensions from 1,500 rows, after 400 steps of training: all cosines above .999, where some were not."""
    truth = synthetic(2000, 12, 24, 2, 0, 0.0, positive).dictionary
    cosines = []
    for refits in (0, 200):
        coder, _ = trained(refits, positive)
        overlap = (torch.nn.functional.normalize(torch.from_numpy(coder.components_.T), dim=0).T @ truth).abs()
        pairs = match(overlap)
        cosines.append(float(overlap[pairs.found, pairs.truth].min()))
    assert cosines[0] < 0.99
    assert cosines[1] > 0.999


@pytest.mark.parametrize("positive", [False, True])
def test_atoms_come_closer_to_the_true_ones(positive: bool) -> None:
    """Without noise the median angle to them falls to a third; unseen rows are rebuilt better, and as sparsely."""
    truth = synthetic(2000, 12, 24, 2, 0, 0.0, positive).dictionary
    angles, errors, counts = [], [], []
    for refits in (0, 200):
        coder, x = trained(refits, positive)
        atoms = torch.nn.functional.normalize(torch.from_numpy(coder.components_.T), dim=0)
        overlap = (atoms.T @ truth).abs()
        pairs = match(overlap)
        angles.append(float((1 - overlap[pairs.found, pairs.truth].square()).clamp_min(0).sqrt().median()))
        codes = coder.transform(x)
        errors.append(float(np.square(x - coder.inverse_transform(codes)).mean()))
        counts.append((codes != 0).sum() / len(x))
    assert angles[1] < angles[0] / 3
    assert errors[1] < 0.8 * errors[0]
    assert counts[1] == pytest.approx(counts[0], rel=0.1)


def test_a_step_that_does_not_help_is_taken_back() -> None:
    """Learned from noise, atoms would get worse: all is as it was, bit by bit."""
    coder, x = trained(0, noise=0.05)
    model, aside = coder.coder_, coder.standardiser_(torch.from_numpy(x))
    model.set_count(aside, 2.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    nonsense = TensorRows(torch.randn(300, 12, generator=torch.Generator().manual_seed(0)))
    assert refit_dictionary(model, Plan(12, 24, 2 / 24, 400, 256), nonsense, aside).n_steps == 0
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True, msg=name)


def test_an_atom_that_no_row_uses_stays_or_starts_where_most_is_left() -> None:
    """Rows on which component 3 is never active; anew, its atom points along the longest residual, to 1e-5."""
    coder, x = trained(0)
    model, rows = coder.coder_, coder.standardiser_(torch.from_numpy(x))
    with torch.no_grad():
        rows = rows[model.code(rows)[:, 3] == 0]
        left = rows - model.generator(model.code(rows))
        refit = Refit.of(model.generator, model.code, TensorRows(rows))
        moved = (refit.atoms - model.generator.atoms).norm(dim=0)
    assert float(moved[3]) == 0
    assert float(moved.median()) > 0
    anew, longest = refit.with_unused_anew(), left[left.norm(dim=1).argmax()]
    assert refit.n_unused == 1
    torch.testing.assert_close(anew[:, 3], longest / longest.norm(), rtol=0, atol=1e-5)
    others = torch.arange(24) != 3
    torch.testing.assert_close(anew[:, others], refit.atoms[:, others], rtol=0, atol=0)


def test_where_nothing_is_left_unused_atoms_stay() -> None:
    coder, _ = trained(0)
    refit = Refit.of(coder.coder_.generator, coder.coder_.code, TensorRows(torch.zeros(30, 12)))
    assert refit.n_unused == 24
    torch.testing.assert_close(refit.with_unused_anew(), coder.coder_.generator.atoms, rtol=0, atol=0)


def test_components_that_died_in_training_live_again() -> None:
    """64 sources in 32 dimensions after 600 steps: three components are never active, and with refits none."""
    x = synthetic(1024, 32, 64, 3, 2, 0.0, True).x.numpy()
    known = {"n_active": 3, "max_steps": 600, "positive": True, "random_state": 2}
    dead = [len(ended(x, n, 64, **known).dead_components(x)) for n in (0, 100)]
    assert dead[0] > 0
    assert dead[1] == 0


def test_one_source_alone_is_found() -> None:
    """Of eight components one is used: rows are multiples of one vector, which an atom is along, to 1e-3. And a coder
    that has no more than one."""
    random = np.random.default_rng(0)
    source = np.abs(random.standard_normal(12))
    x = np.abs(random.standard_normal((500, 1))) * source
    coder = SparseCoder(8, n_active=1, positive=True, max_steps=200, random_state=0, verbose=False).fit(x)
    atoms = coder.components_ / np.linalg.norm(coder.components_, axis=1, keepdims=True)
    assert (atoms @ source).max() > 0.999 * np.linalg.norm(source)
    SparseCoder(1, sparsity=0.5, max_steps=20, random_state=0, verbose=False).fit(random.standard_normal((500, 8)))


@pytest.mark.parametrize("method", [name for name in METHODS if name != "hard-gaussian"])
def test_other_methods_are_left_alone(method: str) -> None:
    coder = SparseCoder(**QUICK, method=method, max_steps=3, verbose=False).fit(small_data())
    rows = coder.standardiser_(torch.from_numpy(small_data(300, seed=1)))
    before = {name: value.clone() for name, value in coder.coder_.state_dict().items()}
    assert refit_dictionary(coder.coder_, Plan(12, 24, 1 / 8, 3, 32), TensorRows(rows), rows).n_steps == 0
    for name, value in coder.coder_.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True, msg=name)


def test_none_where_none_are_asked_for_or_no_rows_are_kept_aside() -> None:
    """0 refits, and 100 rows of which none can be spared: atoms as training left them."""
    x = small_data(100)
    few = [SparseCoder(**{**QUICK, "dictionary_refits": n}, max_steps=5, verbose=False) for n in (0, 200)]
    with pytest.warns(UserWarning, match="too few to keep any aside"):
        one, two = (coder.fit(x).components_ for coder in few)
    np.testing.assert_array_equal(one, two)


def test_training_can_be_stopped_in_the_last_fit() -> None:
    """After its first chunk: the checkpoint of the last step is the one to go on from, to the same bits."""
    rows = TensorRows(synthetic(1500, 12, 24, 2, 0, 0.0).x)
    settings = {"n_active": 2, "max_steps": 40, "random_state": 0, "verbose": False}
    saved, stages = [], []

    class Watch:
        def logged(self, progress): ...
        def saved(self, progress): ...
        def stage(self, name):
            stages.append(name)

    def fit(**options):
        return SparseCoder(24, **settings).fit_rows(rows, observers=[Watch()], **options)

    whole = fit()
    assert stages[0] == "fitting the dictionary to its codes, step 1 of at most 200"
    assert stages[-1] == "calibrating"
    stages.clear()
    with pytest.raises(Interrupted) as stopped:
        fit(on_checkpoint=lambda *state: saved.append(Checkpoint(*state)), stop=lambda: bool(stages))
    assert stopped.value.step == saved[-1].step == 40
    assert len(stages) == 1
    resumed = fit(resume=saved[-1])
    for name, value in whole.model_tensors().items():
        torch.testing.assert_close(resumed.model_tensors()[name], value, rtol=0, atol=0, equal_nan=True)
