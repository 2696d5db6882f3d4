"""Where images are compared: a classifier of the data's own attributes, or a user's Inception network."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from softspike.layers import ImageShape
from softspike.metric.classifier import AttributeClassifier, classifier_recipe, train_classifier
from softspike.metric.inception import Inception, load_inception
from softspike.report.progress import progress_shown
from softspike.reproduce.deep.images import Images
from softspike.reproduce.deep.setting import DeepSetting
from softspike.reproduce.deep.store import DeepStore

__all__ = ["Features", "compared_by", "features_of"]


@dataclass(frozen=True)
class Features:
    """Rows of pixels → features, and what a distance between them is called."""

    network: AttributeClassifier | Inception
    name: str
    note: str
    shape: ImageShape

    def __call__(self, x: Tensor) -> Tensor:
        if isinstance(self.network, Inception):
            return self.network.features(x, self.shape)
        return self.network.features(x)


def compared_by(inception: Path | None) -> str:
    """What decides whether distances of two runs may stand in one table."""
    if inception is None:
        return "classifier"
    try:
        content = inception.read_bytes()
    except OSError as error:
        raise ValueError(f"{inception} cannot be read ({error.strerror}); give the weights of Inception v3") from error
    return f"inception {hashlib.sha256(content).hexdigest()[:16]}"


def features_of(
    setting: DeepSetting, images: Images, store: DeepStore, inception: Path | None, device: torch.device
) -> Features:
    """The user's Inception network if its weights are given; else the study's classifier, trained once."""
    shape = ImageShape.of(setting.image_shape)
    if inception is not None:
        return Features(load_inception(inception).to(device), "FID", f"Inception v3, {inception.name}", shape)
    with store.alone("classifier"):  # all cells are compared by the same one
        network = _classifier(setting, images, store, device)
    accuracy = network.accuracy(images.test, images.test_labels)
    truth = images.test_labels.values
    classes = bool((truth.sum(1) == 1).all())
    shares = truth.mean(0)
    guess = shares.max() if classes else np.maximum(shares, 1 - shares).mean()
    what = f"{'images' if classes else 'labels'} of the test set (a constant guess: {guess:.1%})"
    note = (
        f"the last {network.encoder.width} features of a convolutional classifier of the data's "
        f"{network.n_attributes} labels, right for {accuracy:.1%} of {what}"
    )
    return Features(network, "classifier Fréchet distance", note, shape)


def _classifier(setting: DeepSetting, images: Images, store: DeepStore, device: torch.device) -> AttributeClassifier:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = AttributeClassifier(setting.image_shape, len(images.train_labels.names))
    kept = store.load_tensors("classifier")
    if kept is not None:
        network.load_state_dict(kept)
        return network.to(device).eval()
    print(f"training the classifier whose features are compared, {setting.classifier_steps} steps", flush=True)
    recipe = classifier_recipe(setting.classifier_steps)
    with progress_shown(True) as shown:
        train_classifier(network, images.train, images.train_labels, recipe, 0, device, shown)
    store.save_tensors("classifier", network.state_dict())
    return network
