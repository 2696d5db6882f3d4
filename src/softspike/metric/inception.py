"""The Inception v3 network as FID knows it, for a user's own weights: none come with softspike."""

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, max_pool2d

from softspike.layers import ImageShape, as_images

__all__ = ["Inception", "load_inception"]

_CHUNK = 64
_SIDE = 299
Pool = Callable[[Tensor], Tensor]


def _shrink(x: Tensor) -> Tensor:
    return max_pool2d(x, 3, 2)


def _average(x: Tensor) -> Tensor:
    """Padding does not count: so it was in the network that FID was defined by."""
    return avg_pool2d(x, 3, 1, 1, count_include_pad=False)


def _largest(x: Tensor) -> Tensor:
    return max_pool2d(x, 3, 1, 1)


class _Convolution(nn.Module):
    """Convolution, batch norm, ReLU. A kernel longer than it is wide, or the reverse, is padded along its length."""

    def __init__(self, before: int, after: int, kernel: int | tuple[int, int] = 1, stride: int = 1, pad: bool = True):
        super().__init__()
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (size[0] // 2, size[1] // 2) if pad else (0, 0)
        self.conv = nn.Conv2d(before, after, size, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(after, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(self.conv(x)).relu_()


class _Mixed(nn.Module):
    """Paths of convolutions from one input, joined along channels. A tuple in a path forks: all see the same input."""

    def __init__(self, pool: Pool, *paths: list[str | tuple[str, ...]], **layers: _Convolution):
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.pool, self.paths = pool, paths

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self._along(path, x) for path in self.paths], 1)

    def _along(self, path: list[str | tuple[str, ...]], x: Tensor) -> Tensor:
        for step in path:
            if step == "pool":
                x = self.pool(x)
            else:
                names = step if isinstance(step, tuple) else (step,)
                x = torch.cat([self.get_submodule(name)(x) for name in names], 1)
        return x


def _a(before: int, pooled: int) -> _Mixed:
    c = _Convolution
    return _Mixed(
        _average, ["branch1x1"], ["branch5x5_1", "branch5x5_2"],
        ["branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"], ["pool", "branch_pool"],
        branch1x1=c(before, 64), branch5x5_1=c(before, 48), branch5x5_2=c(48, 64, 5), branch3x3dbl_1=c(before, 64),
        branch3x3dbl_2=c(64, 96, 3), branch3x3dbl_3=c(96, 96, 3), branch_pool=c(before, pooled),
    )  # fmt: skip


def _b(before: int) -> _Mixed:
    c = _Convolution
    return _Mixed(
        _shrink, ["branch3x3"], ["branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"], ["pool"],
        branch3x3=c(before, 384, 3, 2, pad=False), branch3x3dbl_1=c(before, 64), branch3x3dbl_2=c(64, 96, 3),
        branch3x3dbl_3=c(96, 96, 3, 2, pad=False),
    )  # fmt: skip


def _c(before: int, inner: int) -> _Mixed:
    c, wide, tall = _Convolution, (1, 7), (7, 1)
    double = [f"branch7x7dbl_{number}" for number in range(1, 6)]
    return _Mixed(
        _average, ["branch1x1"], ["branch7x7_1", "branch7x7_2", "branch7x7_3"], [*double], ["pool", "branch_pool"],
        branch1x1=c(before, 192), branch7x7_1=c(before, inner), branch7x7_2=c(inner, inner, wide),
        branch7x7_3=c(inner, 192, tall), branch7x7dbl_1=c(before, inner), branch7x7dbl_2=c(inner, inner, tall),
        branch7x7dbl_3=c(inner, inner, wide), branch7x7dbl_4=c(inner, inner, tall), branch7x7dbl_5=c(inner, 192, wide),
        branch_pool=c(before, 192),
    )  # fmt: skip


def _d(before: int) -> _Mixed:
    c = _Convolution
    return _Mixed(
        _shrink, ["branch3x3_1", "branch3x3_2"],
        ["branch7x7x3_1", "branch7x7x3_2", "branch7x7x3_3", "branch7x7x3_4"], ["pool"],
        branch3x3_1=c(before, 192), branch3x3_2=c(192, 320, 3, 2, pad=False), branch7x7x3_1=c(before, 192),
        branch7x7x3_2=c(192, 192, (1, 7)), branch7x7x3_3=c(192, 192, (7, 1)),
        branch7x7x3_4=c(192, 192, 3, 2, pad=False),
    )  # fmt: skip


def _e(before: int, pool: Pool) -> _Mixed:
    c = _Convolution
    return _Mixed(
        pool, ["branch1x1"], ["branch3x3_1", ("branch3x3_2a", "branch3x3_2b")],
        ["branch3x3dbl_1", "branch3x3dbl_2", ("branch3x3dbl_3a", "branch3x3dbl_3b")], ["pool", "branch_pool"],
        branch1x1=c(before, 320), branch3x3_1=c(before, 384), branch3x3_2a=c(384, 384, (1, 3)),
        branch3x3_2b=c(384, 384, (3, 1)), branch3x3dbl_1=c(before, 448), branch3x3dbl_2=c(448, 384, 3),
        branch3x3dbl_3a=c(384, 384, (1, 3)), branch3x3dbl_3b=c(384, 384, (3, 1)), branch_pool=c(before, 192),
    )  # fmt: skip


class Inception(nn.Module):
    """Images (n, 3, H, W) in [0, 1] → the 2048 features of the last pooling, with the layers' customary names."""

    def __init__(self) -> None:
        super().__init__()
        c = _Convolution
        self.Conv2d_1a_3x3, self.Conv2d_2a_3x3 = c(3, 32, 3, 2, pad=False), c(32, 32, 3, pad=False)
        self.Conv2d_2b_3x3, self.Conv2d_3b_1x1 = c(32, 64, 3), c(64, 80)
        self.Conv2d_4a_3x3 = c(80, 192, 3, pad=False)
        self.Mixed_5b, self.Mixed_5c, self.Mixed_5d = _a(192, 32), _a(256, 64), _a(288, 64)
        self.Mixed_6a, self.Mixed_6b, self.Mixed_6c = _b(288), _c(768, 128), _c(768, 160)
        self.Mixed_6d, self.Mixed_6e = _c(768, 160), _c(768, 192)
        self.Mixed_7a, self.Mixed_7b, self.Mixed_7c = _d(768), _e(1280, _average), _e(2048, _largest)

    def forward(self, x: Tensor) -> Tensor:
        x = 2 * interpolate(x, (_SIDE, _SIDE), mode="bilinear", align_corners=False) - 1
        x = _shrink(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = _shrink(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        x = self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x)))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(self.Mixed_6a(x)))))
        return self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x))).mean((2, 3))

    @torch.no_grad()
    def features(self, x: Tensor, shape: ImageShape) -> Tensor:
        """(n, 2048) of rows of pixels; grey ones are taken as colour."""
        images = as_images(x, shape).expand(-1, 3, -1, -1)
        return torch.cat([self(part) for part in images.split(_CHUNK)])


def load_inception(path: Path) -> Inception:
    """The network with weights from a safetensors file of the usual names; further entries are left aside."""
    network = Inception()
    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} cannot be read as safetensors ({error}); save the network's state_dict so") from error
    own = {name: value for name, value in weights.items() if name in network.state_dict()}
    missing = sorted(set(network.state_dict()) - set(own) - {n for n in network.state_dict() if "num_batches" in n})
    if missing:
        raise ValueError(f"{path} has no {missing[0]} ({len(missing)} missing), expected the weights of Inception v3")
    try:
        network.load_state_dict(own, strict=False)
    except RuntimeError as error:
        raise ValueError(f"{path} does not fit Inception v3: {' '.join(str(error).split())}") from error
    return network.eval()
