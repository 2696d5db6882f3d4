"""The straightforward loop that the deep models are timed against: plain torch, all J samples on the tape, NCHW."""

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor, nn

__all__ = ["Bare", "NetSetting", "copy_weights"]


class NetSetting(NamedTuple):
    """One of the paper's two networks at a size worth timing."""

    name: str
    image_shape: tuple[int, int, int]
    n_components: int
    n_samples: int
    beta: float
    target_ms: float | None = None  # on one H200, batch 512
    level: float = math.sqrt(0.1) * NormalDist().inv_cdf(0.95)  # exceeded by 10 % of N(0, 0.1)


def _encoder(size: int, channels: int) -> nn.Sequential:
    tables = {
        28: [(64, 4, 2, 1), (64, 4, 2, 1), (128, 4, 1, 0), (128, 4, 2, 0)],
        64: [(64, 4, 2, 1), (64, 4, 2, 1), (128, 4, 2, 1), (256, 4, 2, 1), (256, 4, 2, 0)],
        8: [(64, 4, 2, 1), (64, 4, 2, 0)],
    }
    layers: list[nn.Module] = []
    for out, kernel, stride, pad in tables[size]:
        layers += [nn.Conv2d(channels, out, kernel, stride, pad), nn.BatchNorm2d(out), nn.ReLU()]
        channels = out
    return nn.Sequential(*layers, nn.Flatten())


def _decoder(size: int, image_channels: int, n_components: int) -> nn.Sequential:
    start = {28: (128, 1), 64: (256, 2), 8: (256, 2)}[size]
    tables = {
        28: [(128, 4, 2, 0), (64, 4, 1, 0), (64, 4, 2, 1)],
        64: [(128, 4, 2, 1), (128, 4, 2, 1), (64, 4, 2, 1), (64, 4, 2, 1)],
        8: [(64, 4, 2, 1)],
    }
    channels, side = start
    layers: list[nn.Module] = [nn.Linear(n_components, channels * side**2), nn.ReLU()]
    layers.append(nn.Unflatten(1, (channels, side, side)))
    for out, kernel, stride, pad in tables[size]:
        layers += [nn.ConvTranspose2d(channels, out, kernel, stride, pad), nn.BatchNorm2d(out), nn.ReLU()]
        channels = out
    return nn.Sequential(*layers, nn.ConvTranspose2d(channels, image_channels, 4, 2, 1), nn.Sigmoid())


class Bare:
    """A thresholded-Gaussian autoencoder trained by the best of J samples, as one would first write it."""

    def __init__(self, setting: NetSetting, device: torch.device, lowered: torch.dtype | None):
        size, _, channels = setting.image_shape
        self.setting, self.device, self.lowered = setting, device, lowered
        self.encoder, self.decoder = _encoder(size, channels), _decoder(size, channels, setting.n_components)
        width = [layer for layer in self.encoder if isinstance(layer, nn.Conv2d)][-1].out_channels
        self.location, self.log_variance = (nn.Linear(width, setting.n_components) for _ in range(2))
        self.parts = nn.ModuleList([self.encoder, self.decoder, self.location, self.log_variance]).to(device)
        self.optimizer = torch.optim.Adam(self.parts.parameters(), 1e-3, (0.5, 0.999), weight_decay=1e-5)

    def loss(self, x: Tensor, noise: Tensor) -> Tensor:
        """x (B, C, H, W), noise (J, B, d)."""
        setting = self.setting
        with torch.autocast(self.device.type, dtype=self.lowered, enabled=self.lowered is not None):
            h = self.encoder(x).float()
        mean, log_variance = self.location(h), self.log_variance(h)
        spread = (0.5 * log_variance).exp() * noise
        s = mean + spread
        kept = spread.abs() > setting.level
        thresholded = (spread.sign() * (spread.abs() - setting.level) + mean) * kept
        z = s + (thresholded - s).detach()  # straight-through
        with torch.autocast(self.device.type, dtype=self.lowered, enabled=self.lowered is not None):
            rebuilt = self.decoder(z.flatten(0, 1)).float()
        error = (x - rebuilt.unflatten(0, z.shape[:2])).square().flatten(2).mean(-1)
        prior = 0.1
        kl = 0.5 * ((mean.square() + log_variance.exp()) / prior - 1 - log_variance + torch.tensor(prior).log()).sum(-1)
        return (error.min(0).values + setting.beta * kl).mean()

    def step(self, x: Tensor, noise: Tensor) -> Tensor:
        loss = self.loss(x, noise)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def copy_weights(bare: Bare, coder: nn.Module) -> None:
    """Start the bare loop from the library's weights. Its biases before batch norm make no difference."""
    ours = coder.state_dict()
    convolutions = [layer for layer in bare.encoder if isinstance(layer, nn.Conv2d | nn.BatchNorm2d)]
    for number, layer in enumerate(convolutions):
        index = 3 * (number // 2) + number % 2
        _load(layer, ours, f"encoder.layers.{index}")
    _load(bare.location, ours, "posterior.location")
    _load(bare.log_variance, ours, "posterior.log_variance")
    hidden = [layer for layer in bare.decoder if isinstance(layer, nn.ConvTranspose2d)]
    for number, layer in enumerate(hidden):
        _load(layer, ours, f"generator.convolutions.{number}")
    for number, layer in enumerate([layer for layer in bare.decoder if isinstance(layer, nn.BatchNorm2d)]):
        _load(layer, ours, f"generator.norms.{number}")
    affine, shape = bare.decoder[0], bare.decoder[2].unflattened_size
    channels, side, _ = shape
    for name in ("weight", "bias"):
        value = ours[f"generator.affine.{name}"].view(side, side, channels, -1).permute(2, 0, 1, 3)
        getattr(affine, name).data.copy_(value.reshape(getattr(affine, name).shape))


def _load(layer: nn.Module, ours: dict[str, Tensor], prefix: str) -> None:
    for name, value in layer.state_dict().items():
        if f"{prefix}.{name}" in ours:
            value.copy_(ours[f"{prefix}.{name}"])
