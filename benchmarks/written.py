"""A fused step without its fused update: gradients are written to memory, and torch's optimiser moves the weights."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import SGD

from softspike.train.fused.replicas import Affine
from softspike.train.fused.step import Aside, Step

__all__ = ["WrittenGradients"]


@dataclass
class WrittenGradients(Step):
    """The same step with gradients written to memory by torch's products and followed by torch's fused SGD."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.aside = Aside(torch.device("cpu"))  # the optimiser waits for all gradients anyway
        networks = [*self.replicas.layers, *(family.affine for family in self.replicas.families)]
        inference = [parameter for part in networks for parameter in (part.weight, part.bias)]
        for parameter in (*inference, self.replicas.atoms):
            parameter.grad = torch.zeros_like(parameter)
        one, other = torch.zeros(2, device=self.data.device).unbind()  # rates, which the device sets
        self.optimizers = [
            SGD(inference, one, momentum=self.inertia, nesterov=True, fused=True),
            SGD([self.replicas.atoms], other, fused=True),
        ]

    def __call__(self, clock: Tensor) -> None:
        for optimizer, rates in zip(self.optimizers, (self.rates.values[0], self.rates.values[-1]), strict=True):
            optimizer.param_groups[0]["lr"].copy_(rates.index_select(0, clock[:1])[0])
        super().__call__(clock)
        for optimizer in self.optimizers:
            optimizer.step()
        if self.scoring_atoms is not self.replicas.atoms:
            self.scoring_atoms.copy_(self.replicas.atoms)

    def _descend(self, layer: Affine, slope: Tensor, x: Tensor, clock: Tensor) -> None:
        assert layer.weight.grad is not None
        assert layer.bias.grad is not None
        torch.bmm(slope.mT, x, out=layer.weight.grad)
        torch.sum(slope, 1, out=layer.bias.grad)

    def _descend_atoms(self, clock: Tensor) -> None:
        r = self.replicas
        _, n_rows, n_features = r.x.shape
        kappa, scale = r.readings[0].dictionary.frobenius, 2 / (n_features * n_rows)
        torch.baddbmm(r.atoms, r.errors.mT, r.codes, beta=4 * kappa / n_features, alpha=scale, out=r.atoms.grad)
