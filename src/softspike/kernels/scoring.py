"""What follows the convolutions when a generator only scores: each map and each image is read once."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from softspike.kernels.options import FUSED

__all__ = ["affine_relu_", "squared_errors"]


@triton.jit
def _affine_relu(x, scale, shift, n_values, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n_values
    c = i % CHANNELS
    value = tl.load(x + i, inside, 0.0)
    changed = value.to(tl.float32) * tl.load(scale + c) + tl.load(shift + c)
    tl.store(x + i, tl.maximum(changed, 0.0).to(value.dtype), inside)


def affine_relu_(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """max(scale·x + shift, 0) per channel, in place; x (N, C, H, W) channels-last, scale and shift (C,) float32."""
    if not x.is_contiguous(memory_format=torch.channels_last):
        raise ValueError(f"the maps have strides {x.stride()}, expected channels-last memory")
    block = 4096
    _affine_relu[(triton.cdiv(x.numel(), block),)](
        x, scale, shift, x.numel(), CHANNELS=x.shape[1], BLOCK=block, num_warps=8, **FUSED
    )
    return x


@triton.jit
def _squared_errors(x, logits, out, n_rows, n_features, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # of all J·B
    of = row % n_rows
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_features, BLOCK):
        f = start + tl.arange(0, BLOCK)
        inside = f < n_features
        rebuilt = tl.sigmoid(tl.load(logits + row * n_features + f, inside, 0.0).to(tl.float32))
        gap = tl.where(inside, tl.load(x + of * n_features + f, inside, 0.0) - rebuilt, 0.0)
        total += gap * gap
    tl.store(out + row, tl.sum(total) / n_features)


def squared_errors(x: Tensor, logits: Tensor) -> Tensor:
    """mean over features of (x − sigmoid(logits))²: x (B, D) float32, logits (J, B, D) → (J, B) float32."""
    n_samples, n_rows, n_features = logits.shape
    out = torch.empty(n_samples, n_rows, device=x.device)
    block = min(1024, triton.next_power_of_2(n_features))
    _squared_errors[(n_samples * n_rows,)](
        x.contiguous(), logits.contiguous(), out, n_rows, n_features, BLOCK=block, num_warps=4, **FUSED
    )
    return out
