"""Counter-based random numbers: each is a function of (seed, element, group, step, stream), so any can be drawn again.

Philox 4×32 with 7 rounds, the fewest that pass the usual batteries of tests (Salmon et al., 2011), in plain torch: the
reference for the same draws inside the kernels.
"""

import torch
from torch import Tensor

__all__ = ["laplace_noise", "normal_noise", "philox", "standard_gamma", "unit"]

_MASK = 0xFFFFFFFF
_MULTIPLY_A, _MULTIPLY_B = 0xD2511F53, 0xCD9E8D57
_RAISE_A, _RAISE_B = 0x9E3779B9, 0xBB67AE85

ROUNDS = 7
BASE, SPIKE, BOOST, GAMMA = 0, 1, 2, 3  # streams; proposals of Gamma draws take GAMMA and those after it


def _product(constant: int, value: Tensor) -> tuple[Tensor, Tensor]:
    """The high and the low 32 bits of constant·value, in int64 arithmetic that never overflows."""
    below, above = constant * (value & 0xFFFF), constant * (value >> 16)
    high = (above + (below >> 16)) >> 16
    return high & _MASK, ((above << 16) + below) & _MASK


def philox(seed: int, *counter: Tensor | int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four 32-bit words, as int64, for each counter (four numbers below 2³², broadcast) under a 64-bit seed."""
    c0, c1, c2, c3 = torch.broadcast_tensors(*(torch.as_tensor(c, dtype=torch.int64) for c in counter))
    key0, key1 = seed & _MASK, (seed >> 32) & _MASK
    for _ in range(ROUNDS):
        high_b, low_b = _product(_MULTIPLY_B, c2)
        high_a, low_a = _product(_MULTIPLY_A, c0)
        c0, c1, c2, c3 = high_b ^ c1 ^ key0, low_b, high_a ^ c3 ^ key1, low_a
        key0, key1 = (key0 + _RAISE_A) & _MASK, (key1 + _RAISE_B) & _MASK
    return c0, c1, c2, c3


def unit(word: Tensor) -> Tensor:
    """u = (⌊word/2⁹⌋ + ½)·2⁻²³, in (0, 1) and symmetric about ½."""
    return ((word >> 9).to(torch.float32) + 0.5) * 2.0**-23


def normal_noise(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Two standard normals from two uniforms (Box and Muller)."""
    radius, angle = torch.sqrt(-2 * torch.log(u)), 2 * torch.pi * v
    return radius * torch.cos(angle), radius * torch.sin(angle)


def laplace_noise(u: Tensor) -> Tensor:
    """−sign(u−½)·log max(1 − 2|u−½|, 1e-6): a standard Laplace variable with the published clamp."""
    centred = u - 0.5
    return -centred.sign() * torch.log((1 - 2 * centred.abs()).clamp_min(1e-6))


def standard_gamma(seed: int, alpha: Tensor, element: Tensor, group: Tensor | int, step: int) -> list[Tensor]:
    """Four draws g ~ Gamma(α, 1), those of samples 4·group … 4·group + 3, by rejection (Marsaglia and Tsang, 2000).

    A proposal is d·v with v = (1 + x/√(9d))³ and d = α − ⅓; below α = 1 a draw of Gamma(α + 1) is multiplied by
    u^(1/α). One Philox call gives two proposals. Streams GAMMA and GAMMA + 1 hold one for each of the four; those
    after hold two each, for the first two of the four that are still without a value.
    """
    d = torch.where(alpha < 1, alpha + 1, alpha) - 1 / 3
    values: list[Tensor] = []
    stream = GAMMA
    for _ in range(2):
        values += _two_proposals(seed, d, element, group, step, stream)
        stream += 1
    while any(bool((value < 0).any()) for value in values):
        proposals = [*_two_proposals(seed, d, element, group, step, stream), torch.full_like(d, -1.0)]
        turn = torch.zeros_like(d, dtype=torch.int64)
        for lane, value in enumerate(values):
            taken = torch.stack(proposals).gather(0, turn.clamp_max(2)[None])[0]
            turn = turn + (value < 0)
            values[lane] = torch.where(value < 0, taken, value)
        stream += 1
    boosts = [unit(word) for word in philox(seed, element, group, step, BOOST)]
    return [torch.where(alpha < 1, g * torch.exp(torch.log(u) / alpha), g) for g, u in zip(values, boosts, strict=True)]


def _two_proposals(
    seed: int, d: Tensor, element: Tensor, group: Tensor | int, step: int, stream: int
) -> tuple[Tensor, Tensor]:
    """Two proposals of Gamma(d + ⅓), −1 where they are refused."""
    a, b, c, e = (unit(word) for word in philox(seed, element, group, step, stream))
    x, y = normal_noise(a, b)
    return _proposal(d, x, c), _proposal(d, y, e)


def _proposal(d: Tensor, x: Tensor, w: Tensor) -> Tensor:
    cube = (1 + x / torch.sqrt(9 * d)) ** 3
    # log of a negative number is NaN, and NaN accepts nothing.
    bound = 0.5 * x * x + d - d * cube + d * torch.log(cube)
    return torch.where((cube > 0) & (torch.log(w) < bound), d * cube, -1.0)
