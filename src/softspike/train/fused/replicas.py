"""R coders as stacked tensors: parameters, momenta and the buffers of one step."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from softspike.kernels.sampling import Form, Law
from softspike.kernels.settings import table
from softspike.train.fused.reading import Reading

__all__ = ["Affine", "FamilyState", "Replicas"]


@dataclass
class Affine:
    """The same layer of several replicas: weights (R, out, in), biases (R, out), and their momenta."""

    weight: Tensor
    bias: Tensor
    weight_momentum: Tensor
    bias_momentum: Tensor

    @staticmethod
    def stack(layers: list[list[nn.Linear]], device: torch.device | str) -> "Affine":
        """From R lists of linear maps; the maps of one list are put on top of one another."""
        weight = torch.stack([torch.cat([part.weight.detach() for part in parts]) for parts in layers]).to(device)
        bias = torch.stack([torch.cat([part.bias.detach() for part in parts]) for parts in layers]).to(device)
        return Affine(weight, bias, torch.zeros_like(weight), torch.zeros_like(bias))

    @torch.no_grad()
    def unstack(self, layers: list[list[nn.Linear]]) -> None:
        for weight, bias, parts in zip(self.weight, self.bias, layers, strict=True):
            sizes = [part.out_features for part in parts]
            for part, w, b in zip(parts, weight.split(sizes), bias.split(sizes), strict=True):
                part.weight.copy_(w)
                part.bias.copy_(b)


@dataclass
class FamilyState:
    """Neighbouring replicas of one family, first … first + R_f: their heads and what the sampling kernels need."""

    law: Law
    first: int
    readings: list[Reading]
    affine: Affine
    settings: Tensor
    heads: Tensor  # (R_f, B, n_heads·d), the encoder's output and then the loss's gradient there
    scores: Tensor  # (R_f, J, B), J rounded up to a multiple of four
    extras: Tensor  # (R_f, B, d) the winners' standard Gamma draws or noisy logits, where the family has them
    shapes: Tensor  # (R_f, B, d) the α of those Gamma draws

    @property
    def most_samples(self) -> int:
        return max(int(reading.settings.n_samples) for reading in self.readings)

    @property
    def members(self) -> slice:
        return slice(self.first, self.first + len(self.readings))


class Replicas:
    """All replicas, sorted by family. `index` says which coder stands at which place."""

    def __init__(self, readings: list[Reading], n_rows: int, device: torch.device | str):
        laws = sorted({reading.law for reading in readings}, key=lambda law: (law.laplace, law.form))
        self.index = sorted(range(len(readings)), key=lambda i: laws.index(readings[i].law))
        self.readings = [readings[i] for i in self.index]
        n, d = len(readings), self.readings[0].dictionary.weight.shape[1]
        widths = [layer.out_features for layer in self.readings[0].layers]
        features = self.readings[0].dictionary.weight.shape[0]
        self.layers = [
            Affine.stack([[r.layers[number]] for r in self.readings], device) for number in range(len(widths))
        ]
        self.atoms = torch.stack([r.dictionary.weight.detach() for r in self.readings]).to(device)
        self.x = torch.empty(n, n_rows, features, device=device)
        self.hidden = [torch.empty(n, n_rows, width, device=device) for width in widths]
        self.hidden_slopes = [torch.empty_like(h) for h in self.hidden]
        self.codes = torch.empty(n, n_rows, d, device=device)
        self.errors = torch.empty(n, n_rows, features, device=device)
        self.noises = torch.empty(n, n_rows, d, device=device)
        self.totals = torch.zeros(n, 3, device=device)  # misfit, KL, active count: sums over steps of batch means
        self.families = [self._family(law, n_rows, d, device) for law in laws]

    def _family(self, law: Law, n_rows: int, d: int, device: torch.device | str) -> FamilyState:
        places = [i for i, reading in enumerate(self.readings) if reading.law == law]
        mine = [self.readings[i] for i in places]
        samples = max(int(reading.settings.n_samples) for reading in mine)
        one, each = (1,), (len(mine), n_rows, d)
        return FamilyState(
            law, places[0], mine, Affine.stack([r.heads for r in mine], device),
            table([r.settings for r in mine], device),
            torch.empty(len(mine), n_rows, law.n_heads * d, device=device),
            torch.empty(len(mine), -(-samples // 4) * 4, n_rows, device=device),
            torch.empty(each if law.form in (Form.GAMMA, Form.SPIKE) else one, device=device),
            torch.ones(each if law.draws_levels else one, device=device),
        )  # fmt: skip

    @torch.no_grad()
    def write_back(self) -> None:
        """The trained values into the coders' own modules."""
        for number, layer in enumerate(self.layers):
            layer.unstack([[r.layers[number]] for r in self.readings])
        for family in self.families:
            family.affine.unstack([r.heads for r in family.readings])
        for reading, atoms in zip(self.readings, self.atoms, strict=True):
            reading.dictionary.weight.copy_(atoms)
