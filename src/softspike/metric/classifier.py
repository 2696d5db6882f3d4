"""A small network that knows the data's own attributes: its last layer is where images are compared."""

from collections.abc import Sequence

import torch
from torch import Generator as Random
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Adam

from softspike.coder import Loss, Trainable
from softspike.data import Labels, Rows
from softspike.encoder import ConvEncoder
from softspike.schedule import OneCycle, Time
from softspike.train import GroupRecipe, Observer, Recipe, train

__all__ = ["AttributeClassifier", "classifier_recipe", "train_classifier"]

_CHUNK = 512


class AttributeClassifier(Trainable):
    """Rows of pixels → the convolutional encoder → the log-odds of m attributes; `features` is what lies before.

    The features of images, 128 for 28×28 and 256 for 64×64, are what the Fréchet distance here compares. They are not
    those of an Inception network: the distance says how alike two sets look to a network that has learned to name
    what is on them, and is comparable only where the same network was used.
    """

    def __init__(self, image_shape: Sequence[int], n_attributes: int):
        super().__init__()
        self.encoder = ConvEncoder(image_shape)
        self.head = nn.Linear(self.encoder.width, n_attributes)
        self.n_attributes = n_attributes

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x).to(x.dtype))

    def loss(self, x: Tensor, step: Time, random: Random | None = None) -> Loss:
        """The mean cross-entropy of all attributes; x holds the pixels and, after them, the attributes."""
        pixels, truth = x[:, : -self.n_attributes], x[:, -self.n_attributes :]
        odds = self(pixels)
        wrong = ((odds > 0) != (truth > 0.5)).to(x.dtype).mean()
        total = binary_cross_entropy_with_logits(odds, truth)
        return Loss(total, wrong.detach(), torch.zeros_like(wrong), torch.zeros_like(wrong))

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        """(n, width), as the trained network has them."""
        return torch.cat([self.encoder(part) for part in x.split(_CHUNK)])

    @torch.no_grad()
    def accuracy(self, rows: Rows, labels: Labels) -> float:
        """The share of attributes named rightly; of images, where each has exactly one attribute, its class."""
        device, truth = self.head.weight.device, torch.from_numpy(labels.values)
        odds = torch.cat([self(rows.take(part).to(device)).cpu() for part in torch.arange(len(rows)).split(_CHUNK)])
        if bool((truth.sum(1) == 1).all()):
            return float((odds.argmax(1) == truth.int().argmax(1)).double().mean())
        return float(((odds > 0) == truth).double().mean())


class _Labelled:
    """Rows of pixels with their attributes at the end."""

    def __init__(self, rows: Rows, labels: Labels):
        self.rows, self.truth = rows, torch.from_numpy(labels.values)
        self.n_features = rows.n_features + self.truth.shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: Tensor) -> Tensor:
        x = self.rows.take(indices)
        return torch.cat([x, self.truth[indices.long()].to(x.device, x.dtype)], 1)


def classifier_recipe(n_steps: int, batch_size: int = 256) -> Recipe:
    return Recipe(n_steps, batch_size, Adam, {"inference": GroupRecipe(OneCycle(2e-3, n_steps, rise=0.1, end=0.0))})


def train_classifier(
    classifier: AttributeClassifier,
    rows: Rows,
    labels: Labels,
    recipe: Recipe,
    seed: int = 0,
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
) -> AttributeClassifier:
    """In place, by the same loop as coders."""
    train(classifier.to(device), _Labelled(rows, labels), recipe, seed=seed, device=device, observers=observers)
    return classifier
