"""Gamma draws inside a compiled loop: the same numbers as `softspike.kernels.counter.standard_gamma`."""

import math

import numpy as np

from softspike.kernels import counter
from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.draws import normals, uniforms
from softspike.kernels.cpu.functions import Array, exponential, logarithm

__all__ = ["gamma_noise"]

_F, _U = np.float32, np.uint64
_ZERO, _ONE, _HALF, _THIRD, _TINY = _F(0), _F(1), _F(0.5), _F(1 / 3), _F(np.finfo(np.float32).tiny)
_BOOST, _GAMMA = _U(counter.BOOST), _U(counter.GAMMA)
_LAST = 256  # streams: a shape that is not finite is never accepted, and the loop must end all the same


@compiled
def _proposal(d: np.float32, x: np.float32, w: np.float32) -> np.float32:
    """d·(1 + x/√(9d))³, a draw of Gamma(d + ⅓), or −1 where it is refused (Marsaglia and Tsang, 2000)."""
    root = _ONE + x / _F(math.sqrt(_F(9) * d))
    cube = root * root * root
    bound = _HALF * x * x + d - d * cube + d * logarithm(max(cube, _F(1e-30)))
    accepted = (root > _ZERO) & (logarithm(w) < bound)  # no branch, so that loops vectorise
    return d * cube if accepted else -_ONE


@compiled
def _proposals(key: np.uint64, first: np.uint64, group: np.uint64, stream: np.uint64, d: Array, four: Array) -> None:
    """Two proposals for each element from `first` on, into the first two rows of (4, n)."""
    uniforms(key, first, group, stream, four)
    normals(four[0], four[1])
    for row in range(2):
        x, w = four[row], four[row + 2]
        for i in range(len(d)):
            x[i] = _proposal(d[i], x[i], w[i])


@compiled
def _again(key: np.uint64, element: np.uint64, group: np.uint64, d: Array, drawn: Array) -> None:
    """Two more proposals of each stream for the first two of the four that are still without a value."""
    four = np.empty((4, 1), np.float32)
    for stream in range(2, _LAST):
        turn = 0
        for lane in range(4):
            if drawn[lane] < _ZERO:
                if turn == 0:
                    _proposals(key, element, group, _GAMMA + _U(stream), d, four)
                if turn < 2:
                    drawn[lane] = four[turn, 0]
                turn += 1
        if turn == 0:
            return


@compiled
def gamma_noise(key: np.uint64, first: np.uint64, group: np.uint64, alpha: Array, out: Array) -> None:
    """Gamma(α, 1) draws of samples 4·group … 4·group + 3 for the elements from `first` on, (4, n)."""
    n, small = len(alpha), False
    d, four = np.empty(n, np.float32), np.empty((4, n), np.float32)
    for i in range(n):
        d[i] = (alpha[i] + _ONE if alpha[i] < _ONE else alpha[i]) - _THIRD
        small |= alpha[i] < _ONE
    for half in range(2):
        _proposals(key, first, group, _GAMMA + _U(half), d, four)
        out[2 * half : 2 * half + 2] = four[:2]
    for i in range(n):
        if min(out[0, i], out[1, i], out[2, i], out[3, i]) < _ZERO:
            _again(key, first + _U(i), group, d[i : i + 1], out[:, i])
    if small:
        uniforms(key, first, group, _BOOST, four)
        for lane in range(4):
            for i in range(n):
                boost = exponential(logarithm(four[lane, i]) / alpha[i])
                out[lane, i] *= boost if alpha[i] < _ONE else _ONE
    for lane in range(4):
        for i in range(n):
            out[lane, i] = max(out[lane, i], _TINY)
