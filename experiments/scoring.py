"""Which statistics should batch norm use when J samples are scored? python -m experiments.scoring

Two thresholded-Gaussian models on Fashion-MNIST, the same but for the scoring pass: by the running statistics, as
`ConvGenerator` does it, or by those of all J·B candidates. Prints the error of the best of 20 draws on test images.
"""

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from softspike.data import PixelRows, SubsetRows, read_rows
from softspike.data.mnist import FASHION_FOLDER
from softspike.generator import ConvGenerator
from softspike.layers import as_rows
from softspike.methods import ConvNetworks, Plan, build, method_named
from softspike.metric.sampled import sampled_errors
from softspike.model import VariationalCoder
from softspike.report.progress import progress_shown
from softspike.report.table import print_table
from softspike.schedule import Constant
from softspike.train import train


class ScoredByCandidates(ConvGenerator):
    """The same generator; while training, candidates are normalised by their own statistics. No trace is left."""

    @torch.no_grad()
    def errors(self, x: Tensor, z: Tensor) -> Tensor:
        if not self.training:
            return super().errors(x, z)
        maps = self._first_map(z)
        for convolution, norm in self._hidden():
            own = nn.functional.batch_norm(convolution(maps), None, None, norm.weight, norm.bias, True, eps=norm.eps)
            maps = own.relu_()
        rebuilt = as_rows(self.convolutions[-1](maps)).sigmoid_().unflatten(0, z.shape[:-1])
        return (x - rebuilt).square().mean(-1)


def trained(
    kind: type[ConvGenerator], rows: PixelRows, steps: int, seed: int, device: torch.device
) -> VariationalCoder:
    networks = ConvNetworks((28, 28, 1), rate=Constant(3e-4))
    plan = Plan(784, 64, 0.1, steps, 128, n_samples=5, networks=networks, published_steps=35_100)
    coder, recipe = build(method_named("thresholded-gaussian"), plan, seed)
    assert isinstance(coder, VariationalCoder)
    coder.generator.__class__ = kind  # the same weights, scored otherwise
    with progress_shown(None) as shown:
        train(coder.to(device), rows, recipe, seed=seed, device=device, observers=shown)
    return coder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=FASHION_FOLDER)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--test-images", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    device = torch.device(given.device)
    rows = read_rows(given.data, "train")
    test = read_rows(given.data, "test")
    assert isinstance(rows, PixelRows)
    some = SubsetRows(test, torch.arange(min(given.test_images, len(test))))
    lines = []
    for kind, name in ((ConvGenerator, "running statistics"), (ScoredByCandidates, "statistics of the candidates")):
        began = time.monotonic()
        found = sampled_errors(trained(kind, rows, given.steps, given.seed, device), some, 20, device=device)
        note = f"one draw {found.one:.5f}, {found.active:.1f} of 64 active, {time.monotonic() - began:.0f} s"
        lines.append((name, f"{found.best:.5f}", note))
    print_table(f"error of the best of 20 draws after {given.steps} steps, by what candidates are scored with", lines)


if __name__ == "__main__":
    main()
