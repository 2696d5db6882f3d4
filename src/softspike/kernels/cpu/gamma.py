"""Gamma draws inside a compiled loop: the same numbers as `softspike.kernels.counter.standard_gamma`."""

import math

import numpy as np

from softspike.kernels import counter
from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.draws import Two, normal, uniforms
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
    return d * cube if root > _ZERO and logarithm(w) < bound else -_ONE


@compiled
def _two_proposals(key: np.uint64, element: np.uint64, group: np.uint64, stream: np.uint64, d: np.float32) -> Two:
    a, b, c, e = uniforms(key, element, group, stream)
    x, y = normal(a, b)
    return _proposal(d, x, c), _proposal(d, y, e)


@compiled
def _again(key: np.uint64, element: np.uint64, group: np.uint64, d: np.float32, four: Array) -> None:
    """Two more proposals of each stream for the first two of the four that are still without a value."""
    for stream in range(2, _LAST):
        missing = 0
        for lane in range(4):
            missing += four[lane] < _ZERO
        if missing == 0:
            return
        first, second = _two_proposals(key, element, group, _GAMMA + _U(stream), d)
        turn = 0
        for lane in range(4):
            if four[lane] < _ZERO:
                four[lane] = first if turn == 0 else second if turn == 1 else -_ONE
                turn += 1


@compiled
def gamma_noise(key: np.uint64, first: np.uint64, group: np.uint64, alpha: Array, out: Array) -> None:
    """Gamma(α, 1) draws of samples 4·group … 4·group + 3 for the elements from `first` on, (4, n)."""
    o0, o1, o2, o3 = out[0], out[1], out[2], out[3]
    for i in range(len(alpha)):
        d = (alpha[i] + _ONE if alpha[i] < _ONE else alpha[i]) - _THIRD
        o0[i], o1[i] = _two_proposals(key, first + _U(i), group, _GAMMA, d)
        o2[i], o3[i] = _two_proposals(key, first + _U(i), group, _GAMMA + _U(1), d)
    for i in range(len(alpha)):
        small = alpha[i] < _ONE
        if min(o0[i], o1[i], o2[i], o3[i]) < _ZERO:
            _again(key, first + _U(i), group, (alpha[i] + _ONE if small else alpha[i]) - _THIRD, out[:, i])
        if small:
            boost = uniforms(key, first + _U(i), group, _BOOST)
            for lane in range(4):
                out[lane, i] *= exponential(logarithm(boost[lane]) / alpha[i])
        for lane in range(4):
            out[lane, i] = max(out[lane, i], _TINY)
