"""Affine layers with ReLU in one pass on a CPU, forwards and backwards."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = [
    "affine", "affine_relu", "affine_relu_plainly", "back", "fast", "hidden_layers", "knows_bfloat16", "relu_back",
    "weigh", "weigh_bias",
]  # fmt: skip

# oneDNN's product, with bias and ReLU joined to it: at a hundred rows on two threads it takes 0.85 of the time of the
# product that torch takes for float32, and the ReLU is free.
_product: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None


def fast(x: Tensor) -> bool:
    """Whether this is a batch that the functions below take: float32 rows on a CPU, without autocast or vmap."""
    plain = _product is not None and x.device.type == "cpu" and x.dtype == torch.float32 and x.ndim == 2
    return plain and not (torch.is_autocast_enabled("cpu") or torch._C._are_functorch_transforms_active())


def knows_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 faster than float32."""
    return _product is not None and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def affine_relu(x: Tensor, layers: Sequence[nn.Linear]) -> Tensor:
    """relu(… relu(xW₁ᵀ + b₁) … Wₙᵀ + bₙ), x (B, D)."""
    if not layers or not fast(x):
        return affine_relu_plainly(x, layers)
    return _AffineReLU.apply(x, *(layer.weight for layer in layers), *(layer.bias for layer in layers))


def affine_relu_plainly(x: Tensor, layers: Sequence[nn.Linear]) -> Tensor:
    """The same one by one: the reference."""
    for layer in layers:
        x = layer(x).relu()
    return x


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """xWᵀ + b, without gradient."""
    return _product(x, weight, bias, "none", [], "")


def back(grad: Tensor, weight: Tensor) -> Tensor:
    """∂/∂x = gW of an affine map, without gradient."""
    return _product(grad, weight.T, None, "none", [], "")


def weigh(grad: Tensor, inputs: Tensor, by_weight: Tensor) -> None:
    """∂/∂W = gᵀx of an affine map, into memory that is given, perhaps of more bits than g and x have."""
    if grad.dtype == by_weight.dtype:
        torch.mm(grad.T, inputs, out=by_weight)
    else:
        by_weight.copy_(grad.T @ inputs)


def weigh_bias(grad: Tensor, by_bias: Tensor) -> None:
    """∂/∂b = Σg, likewise."""
    torch.sum(grad, 0, dtype=by_bias.dtype, out=by_bias)


def relu_back(grad: Tensor, hidden: Tensor) -> Tensor:
    """g where h > 0, and 0 elsewhere."""
    return torch.ops.aten.threshold_backward(grad, hidden, 0)


def hidden_layers(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Tensor]:
    """x and what each of the layers makes of it, without gradient."""
    hidden = [x]
    for weight, bias in zip(weights, biases, strict=True):
        hidden.append(_product(hidden[-1], weight, bias, "relu", [], ""))
    return hidden


def _affine_relu_back(
    grad: Tensor, weights: Sequence[Tensor], hidden: Sequence[Tensor], into: Sequence[tuple[Tensor, Tensor]]
) -> Tensor:
    """∂/∂W and ∂/∂b of each layer into memory that is given; returns ∂/∂h of the first layer's output before its ReLU.

    From the last layer h = relu(h₋Wᵀ + b) on, with g = ∂/∂h where h > 0 and 0 elsewhere:  ∂/∂W = gᵀh₋, ∂/∂b = Σg,
    ∂/∂h₋ = gW.
    """
    for layer in range(len(weights) - 1, -1, -1):
        grad = relu_back(grad, hidden[layer + 1])
        by_weight, by_bias = into[layer]
        weigh(grad, hidden[layer], by_weight)
        weigh_bias(grad, by_bias)
        if layer > 0:
            grad = back(grad, weights[layer])
    return grad


class _AffineReLU(torch.autograd.Function):
    """The layers as one operation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        n = len(parameters) // 2
        hidden = hidden_layers(x, parameters[:n], parameters[n:])
        ctx.save_for_backward(*parameters[:n], *hidden)
        return hidden[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        n = len(ctx.saved_tensors) // 2
        weights, hidden = ctx.saved_tensors[:n], ctx.saved_tensors[n:]
        into = [(torch.empty_like(weight), weight.new_empty(len(weight))) for weight in weights]
        first = _affine_relu_back(grad, weights, hidden, into)
        given = back(first, weights[0]) if ctx.needs_input_grad[0] else None
        return given, *(weight for weight, _ in into), *(bias for _, bias in into)
