"""The Fréchet distance on Gaussians whose distance is known, and the networks whose features it may compare."""

import numpy as np
import pytest
import torch
from pictures import shapes
from safetensors.torch import save_file

from softspike.data import Labels, PixelRows
from softspike.layers import ImageShape
from softspike.metric.classifier import AttributeClassifier, classifier_recipe, train_classifier
from softspike.metric.frechet import frechet_distance, gaussian_frechet_distance
from softspike.metric.inception import Inception, load_inception

RANDOM = np.random.default_rng(0)


def with_moments(mean, covariance, n=500):
    """Features whose sample mean and covariance are exactly these."""
    x = RANDOM.standard_normal((n, len(mean)))
    x -= x.mean(0)
    x = x @ np.linalg.inv(np.linalg.cholesky(np.atleast_2d(np.cov(x, rowvar=False)))).T
    return torch.from_numpy(x @ np.linalg.cholesky(covariance).T + mean)


def rotation(d):
    return np.linalg.qr(RANDOM.standard_normal((d, d)))[0]


TURN = rotation(4)
KNOWN = {
    # N(m, C) and N(m′, C′) with matrices that commute: ‖m − m′‖² + Σ(√cᵢ − √c′ᵢ)²
    "shift": (np.zeros(4), np.eye(4), np.full(4, 2.0), np.eye(4), 16.0),
    "scale": (np.zeros(4), np.eye(4), np.zeros(4), 9 * np.eye(4), 16.0),
    "turned": (
        np.ones(4), TURN @ np.diag([1.0, 4, 9, 16]) @ TURN.T, np.zeros(4), TURN @ np.diag([4.0, 1, 9, 25]) @ TURN.T,
        4 + 1 + 1 + 0 + 1,
    ),
    # one dimension: (m − m′)² + (s − s′)²
    "line": (np.array([1.0]), np.array([[4.0]]), np.array([3.0]), np.array([[25.0]]), 4 + 9.0),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_known_distances(name):
    mean, covariance, other_mean, other_covariance, distance = KNOWN[name]
    tensors = map(torch.from_numpy, (mean, covariance, other_mean, other_covariance))
    assert gaussian_frechet_distance(*tensors) == pytest.approx(distance, abs=1e-8)
    one, other = with_moments(mean, covariance), with_moments(other_mean, other_covariance)
    assert frechet_distance(one, other) == pytest.approx(distance, abs=1e-6)
    assert frechet_distance(other, one) == pytest.approx(distance, abs=1e-6)


def test_pairing_plays_no_part():
    features = torch.randn(300, 20).double()
    assert frechet_distance(features, features[torch.randperm(300)]) == pytest.approx(0, abs=1e-8)
    assert frechet_distance(features, features + 1) == pytest.approx(20, abs=1e-8)


def test_matrices_that_do_not_commute():
    """tr (C^½C′C^½)^½ is the sum of the roots of the eigenvalues of C·C′, computed here another way."""
    one, other = (m @ m.T for m in (RANDOM.standard_normal((5, 5)), RANDOM.standard_normal((5, 5))))
    roots = np.sqrt(np.linalg.eigvals(one @ other).real).sum()
    zero = torch.zeros(5)
    found = gaussian_frechet_distance(zero, torch.from_numpy(one), zero, torch.from_numpy(other))
    assert found == pytest.approx(np.trace(one) + np.trace(other) - 2 * roots, rel=1e-8)


def test_fewer_samples_than_features():
    features = torch.randn(6, 20).double()
    assert frechet_distance(features, features.flip(0)) == pytest.approx(0, abs=1e-6)


def test_one_sample_is_no_set():
    with pytest.raises(ValueError, match=r"features have shape \(1, 3\), expected \(n_samples ≥ 2, n_features\)"):
        frechet_distance(torch.ones(1, 3), torch.ones(5, 3))


def test_a_classifier_learns_the_attributes_and_its_features_tell_images_apart():
    pixels, classes = shapes(400)
    unseen, others = shapes(200, seed=1)
    labels, truth = (Labels(("a", "b", "c"), c[:, None] == np.arange(3)) for c in (classes, others))
    torch.manual_seed(0)
    classifier = AttributeClassifier((8, 8), 3)
    before = classifier.eval().accuracy(PixelRows(unseen), truth)
    train_classifier(classifier, PixelRows(pixels), labels, classifier_recipe(60, 64))
    assert not classifier.training
    assert classifier.accuracy(PixelRows(unseen), truth) > max(0.95, before)
    x = PixelRows(unseen).take(torch.arange(200))
    whole = classifier.features(x)
    blurred = classifier.features(0.5 * x + 0.5 * x.mean(1, keepdim=True))
    kind = frechet_distance(classifier.features(x[others == 0]), classifier.features(x[others == 2]))
    assert 0 < frechet_distance(whole, blurred) < kind
    assert frechet_distance(whole[:100], whole[100:]) < 0.2 * kind


def test_inception_has_the_published_size():
    """23,834,568 parameters with its classifier of 1000 classes, which has 2,049,000 of them."""
    network = Inception()
    assert sum(parameter.numel() for parameter in network.parameters()) == 23_834_568 - 2_049_000


def test_inception_from_a_file(tmp_path):
    torch.manual_seed(0)
    network = Inception().eval()
    weights = {**network.state_dict(), "fc.weight": torch.zeros(3, 2048)}
    save_file(weights, tmp_path / "inception.safetensors")
    loaded = load_inception(tmp_path / "inception.safetensors")
    x = torch.rand(2, 64)
    torch.testing.assert_close(loaded.features(x, ImageShape(8, 1)), network.features(x, ImageShape(8, 1)))
    assert loaded.features(x, ImageShape(8, 1)).shape == (2, 2048)
    del weights["Mixed_7c.branch_pool.conv.weight"]
    save_file(weights, tmp_path / "torn.safetensors")
    with pytest.raises(ValueError, match=r"has no Mixed_7c.branch_pool.conv.weight \(1 missing\)"):
        load_inception(tmp_path / "torn.safetensors")
    (tmp_path / "no.safetensors").write_bytes(b"no")
    with pytest.raises(ValueError, match="cannot be read as safetensors"):
        load_inception(tmp_path / "no.safetensors")
