"""One training step of all replicas as a fixed sequence of kernel launches."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from softspike.kernels.gather import gather
from softspike.kernels.linear import decoding_error, descend, forward, input_gradient
from softspike.kernels.sampling import Timing, redraw_winners, score_samples, slopes_at_heads
from softspike.train.fused.clock import Lookup
from softspike.train.fused.replicas import Affine, FamilyState, Replicas

__all__ = ["Step", "penalties"]


def penalties(atoms: Tensor, frobenius: float) -> Tensor:
    """(2/D)·κ‖A‖² of atoms (R, D, d), (R,)."""
    return 2 / atoms.shape[1] * frobenius * atoms.square().sum((1, 2))


class Aside:
    """A second stream for work that nothing in the step waits for: weights descend while gradients go on backwards."""

    def __init__(self, device: torch.device):
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """What is launched inside starts after what was launched before, beside what is launched after."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            yield

    def join(self) -> None:
        """What is launched from here on waits for all of it."""
        if self._stream is not None:
            torch.cuda.current_stream().wait_stream(self._stream)


@dataclass
class Step:
    """Gather, encode, sample, pick, and descend. Everything it reads and writes is on the device."""

    replicas: Replicas
    data: Tensor  # (N, D)
    order: Tensor  # (seeds, N) this epoch's permutations
    order_of: Tensor  # (R,) which permutation a replica follows
    keys: Tensor  # (R,) seeds of the random numbers
    rates: Lookup  # learning rates of inference and of the generator
    warm_ups: Lookup
    temperatures: Lookup
    inertia: float
    precision: str = "tf32"

    def __post_init__(self) -> None:
        self.aside = Aside(self.data.device)
        atoms = self.replicas.atoms
        # Samples are only compared with one another: half the bits tell the best of them as well.
        self.scoring_atoms = atoms if self.precision == "ieee" else atoms.bfloat16()

    def __call__(self, clock: Tensor) -> None:
        r = self.replicas
        gather(self.data, self.order, self.order_of, clock, r.x)
        h = r.x
        for layer, out in zip(r.layers, r.hidden, strict=True):
            forward(h, layer.weight, layer.bias, out, relu=True, precision=self.precision)
            h = out
        for family in r.families:
            self._sample(family, clock)
            self._descend_heads(family, clock)
        with self.aside():
            self._descend_atoms(clock)
        inputs = [r.x, *r.hidden[:-1]]
        for number in reversed(range(len(r.layers))):
            layer, slope = r.layers[number], r.hidden_slopes[number]
            if number:
                input_gradient(
                    slope, layer.weight, inputs[number], r.hidden_slopes[number - 1], precision=self.precision
                )
            with self.aside():
                self._descend(layer, slope, inputs[number], clock)
        self.aside.join()

    @property
    def penalties(self) -> Tensor:
        """(2/D)·κ‖A‖², (R,): what the penalty on the atoms is now, on the scale of the misfit."""
        return penalties(self.replicas.atoms, self.replicas.readings[0].dictionary.frobenius)

    def _descend(self, layer: Affine, slope: Tensor, x: Tensor, clock: Tensor) -> None:
        descend(
            slope, x, layer.weight, self.rates.values[0], clock, momentum=layer.weight_momentum, bias=layer.bias,
            bias_momentum=layer.bias_momentum, inertia=self.inertia, precision=self.precision,
        )  # fmt: skip

    def _sample(self, f: FamilyState, clock: Tensor) -> None:
        """The winner of each input, and the loss's gradient where the heads were."""
        r, mine = self.replicas, f.members
        forward(r.hidden[-1][mine], f.affine.weight, f.affine.bias, f.heads, relu=False, precision=self.precision)
        time = Timing(
            clock, self.keys[mine], self.warm_ups.values, self.warm_ups.row_of[mine],
            self.temperatures.values, self.temperatures.row_of[mine],
        )  # fmt: skip
        x, atoms, codes, errors, totals = r.x[mine], r.atoms[mine], r.codes[mine], r.errors[mine], r.totals[mine]
        won = (codes, r.noises[mine], f.extras, f.shapes)
        if f.most_samples > 1:
            score_samples(f.law, f.heads, self.scoring_atoms[mine], x, f.scores, f.settings, time, self.precision)
        redraw_winners(f.law, f.heads, f.scores, *won, f.settings, time, totals)
        decoding_error(codes, atoms, x, errors, totals, precision=self.precision)
        slopes_at_heads(f.law, f.heads, atoms, errors, *won, f.settings, time, totals, self.precision)

    def _descend_heads(self, f: FamilyState, clock: Tensor) -> None:
        r, mine = self.replicas, f.members
        h = r.hidden[-1][mine]
        input_gradient(f.heads, f.affine.weight, h, r.hidden_slopes[-1][mine], precision=self.precision)
        with self.aside():
            self._descend(f.affine, f.heads, h, clock)

    def _descend_atoms(self, clock: Tensor) -> None:
        """A ← A − rate·(2/D)·[(1/B)·Σ(x̂ − x)zᵀ + 2κA]."""
        r = self.replicas
        _, n_rows, n_features = r.x.shape
        kappa = r.readings[0].dictionary.frobenius
        descend(
            r.errors, r.codes, r.atoms, self.rates.values[-1], clock, scale=2 / (n_features * n_rows),
            decay=4 * kappa / n_features, precision=self.precision,
        )  # fmt: skip
        if self.scoring_atoms is not r.atoms:
            self.scoring_atoms.copy_(r.atoms)
