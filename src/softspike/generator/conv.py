"""The convolutional generators of the paper's deep study, for square images of other sizes too."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import cast

import torch
from torch import Tensor, nn

from softspike.generator.base import Generator
from softspike.layers import BatchNorm, ImageShape, as_rows

__all__ = ["ConvGenerator"]

_CHANNELS = (128, 128, 64, 64)  # of the doubling layers before the image's own; earlier ones have 256


class ConvGenerator(Generator):
    """z (…, d) → rows of pixels in [0, 1], (…, D): one affine layer, then transposed convolutions that double the map.

    For sizes that halve to 4 the affine layer gives 256 channels of 2×2 pixels; otherwise 128 channels of one pixel,
    brought to 4×4 and on to the rest of 5 to 7. ReLU after the affine layer, batch norm and ReLU after every
    convolution but the last, which ends in a sigmoid. For 28×28 and 64×64 that is the paper's table:

        1 → 4 → 7 → 14 → 28 with 128, 64, 64, C channels      2 → 4 → 8 → 16 → 32 → 64 with 128, 128, 64, 64, C

    Batch norm, and the best of J samples. `forward`, which carries gradient, sees one code per input: the winner's. In
    training its statistics are those of the winners, and they are what the running statistics follow. `preview`, which
    scores the J candidates, uses the running statistics. So (1) a candidate's score does not depend on which others it
    is compared with; (2) candidates are judged by the network that will be used after training, whose statistics are
    those of winners; (3) the losers, 95 % of the samples, leave no trace in the model; (4) under data parallelism
    scoring needs no communication. The price: the running statistics lag some ten steps behind. With fixed statistics
    (`eval()`) the two agree, and the winner-only gradient equals the gradient of the minimum over all J.
    """

    def __init__(self, image_shape: Sequence[int], n_components: int):
        super().__init__()
        self.shape, self._n_components = ImageShape.of(image_shape), n_components
        self.start = (256, 2) if self.shape.rest == 4 else (128, 1)  # channels and size of the first map
        self.affine = nn.Linear(n_components, self.start[0] * self.start[1] ** 2)
        self.convolutions, self.norms = nn.ModuleList(), nn.ModuleList()
        channels = self.start[0]
        for out, kernel, stride, pad in _layers(self.shape):
            last = len(self.convolutions) + 1 == len(_layers(self.shape))
            # A bias before batch norm would be subtracted again.
            self.convolutions.append(nn.ConvTranspose2d(channels, out, kernel, stride, pad, bias=last))
            if not last:
                self.norms.append(BatchNorm(out))
            channels = out
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def n_features(self) -> int:
        return self.shape.n_pixels

    @property
    def n_components(self) -> int:
        return self._n_components

    @property
    def gives_shares(self) -> bool:
        return True

    def forward(self, z: Tensor) -> Tensor:
        x = self._first_map(z)
        for convolution, norm in self._hidden():
            x = norm(convolution(x)).relu_()
        # In float32: bfloat16 has nothing between 0.996 and 1.
        logits = self.convolutions[-1](x).to(z.dtype)
        return as_rows(logits).sigmoid().unflatten(0, z.shape[:-1])

    @torch.no_grad()
    def preview(self, z: Tensor) -> Tensor:
        """x̂ by the running statistics, without gradient; the generator stays as it is."""
        return self._preview_logits(z, fused=False).sigmoid_()

    @torch.no_grad()
    def errors(self, x: Tensor, z: Tensor) -> Tensor:
        """As the preview's; on a GPU through kernels that read every map once."""
        if not (x.is_cuda and z.ndim == 3 and x.dtype == torch.float32 and _has_kernels()):
            return super().errors(x, z)
        from softspike.kernels.scoring import squared_errors

        return squared_errors(x, self._preview_logits(z, fused=True))

    def _preview_logits(self, z: Tensor, fused: bool) -> Tensor:
        x = self._first_map(z)
        for convolution, norm in self._hidden():
            x = norm.settled_relu_(convolution(x)) if fused else norm.settled(convolution(x)).relu_()
        return as_rows(self.convolutions[-1](x)).unflatten(0, z.shape[:-1])

    def _hidden(self) -> Iterator[tuple[nn.Module, BatchNorm]]:
        """The convolutions that are normalised: all but the last."""
        return zip(self.convolutions, cast(Iterable[BatchNorm], self.norms), strict=False)

    def _first_map(self, z: Tensor) -> Tensor:
        """(…, d) → (N, channels, size, size), all codes in one batch."""
        channels, size = self.start
        return self.affine(z.flatten(0, -2)).relu_().view(-1, size, size, channels).permute(0, 3, 1, 2)


@cache
def _has_kernels() -> bool:
    """Builds of torch for a GPU bring Triton on most systems, not on all."""
    return find_spec("triton") is not None


def _layers(shape: ImageShape) -> list[tuple[int, int, int, int]]:
    """(channels, kernel, stride, pad) of every transposed convolution."""
    double = (4, 2, 1)
    if shape.rest == 4:
        n_hidden = shape.halvings
        hidden = ((256,) * n_hidden + _CHANNELS)[-n_hidden:]
        return [*((out, *double) for out in hidden), (shape.channels, *double)]
    hidden = (64,) * (shape.halvings - 1)
    grow = [(128, 4, 2, 0), (64, shape.rest - 3, 1, 0)]
    return [*grow, *((out, *double) for out in hidden), (shape.channels, *double)]
