"""log Γ and its first two derivatives inside a kernel, by the asymptotic series after six steps up, for x > 0."""

import triton
import triton.language as tl

__all__ = ["digamma", "log_gamma", "trigamma"]


@triton.jit
def log_gamma(x):
    """log Γ(x) = log Γ(x + 6) − log(x(x+1)…(x+5)), then Stirling's series."""
    product = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0)
    shifted = tl.where(x < 6.0, x + 6.0, x)
    inverse = 1.0 / shifted
    square = inverse * inverse
    series = inverse * (0.08333333333333333 - square * (0.002777777777777778 - square * 0.0007936507936507937))
    value = (shifted - 0.5) * tl.log(shifted) - shifted + 0.9189385332046727 + series
    return tl.where(x < 6.0, value - tl.log(tl.where(x < 6.0, product, 1.0)), value)


@triton.jit
def digamma(x):
    """ψ(x) = ψ(x + 6) − Σ 1/(x + k)."""
    steps = 1.0 / x + 1.0 / (x + 1.0) + 1.0 / (x + 2.0) + 1.0 / (x + 3.0) + 1.0 / (x + 4.0) + 1.0 / (x + 5.0)
    shifted = tl.where(x < 6.0, x + 6.0, x)
    inverse = 1.0 / shifted
    square = inverse * inverse
    series = square * (0.08333333333333333 - square * (0.008333333333333333 - square * 0.003968253968253968))
    value = tl.log(shifted) - 0.5 * inverse - series
    return tl.where(x < 6.0, value - steps, value)


@triton.jit
def _inverse_square(x):
    return 1.0 / (x * x)


@triton.jit
def trigamma(x):
    """ψ′(x) = ψ′(x + 6) + Σ 1/(x + k)²."""
    steps = _inverse_square(x) + _inverse_square(x + 1.0) + _inverse_square(x + 2.0)
    steps += _inverse_square(x + 3.0) + _inverse_square(x + 4.0) + _inverse_square(x + 5.0)
    shifted = tl.where(x < 6.0, x + 6.0, x)
    inverse = 1.0 / shifted
    square = inverse * inverse
    series = square * (0.16666666666666666 - square * (0.03333333333333333 - square * 0.023809523809523808))
    value = inverse * (1.0 + 0.5 * inverse + series)
    return tl.where(x < 6.0, value + steps, value)
