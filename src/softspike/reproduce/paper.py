"""The figures of the paper, to stand beside ours.

K. Fallah and C. J. Rozell, "Variational Sparse Coding with Learned Thresholding", ICML 2022: Tables 1 and 2, the figure
of gradient signal-to-noise ratios, and the table of standard deviations in its appendix.
"""

from typing import NamedTuple

__all__ = ["COLLAPSE", "SAMPLING_LOSS", "SNR", "TABLE1", "Collapse", "Row", "Snr"]


class Row(NamedTuple):
    """A cell of Table 1; the IWAE loss is no bound and was printed by no surviving script: a reference only."""

    loss: float
    multi_information: float
    iwae: float | None


class Collapse(NamedTuple):
    posterior: float | None  # a share; None where the paper has NaN
    feature: float | None


class Snr(NamedTuple):
    inference: float
    generator: float


TABLE1: dict[tuple[str, int | None], Row] = {  # (method, J)
    ("fista", None): Row(101, 87.5, None),
    ("gaussian", 1): Row(1350, 734, 0.257),
    ("gaussian", 20): Row(1350, 736, 0.216),
    ("laplacian", 1): Row(596, 536, 0.220),
    ("laplacian", 20): Row(579, 534, 0.222),
    ("spike-and-slab", 1): Row(252, 194, 0.241),
    ("spike-and-slab", 20): Row(239, 196, 0.212),
    ("thresholded-gaussian", 1): Row(232, 167, 1.52),
    ("thresholded-gaussian", 20): Row(230, 176, 1.33),
    ("thresholded-gaussian-gamma", 1): Row(285, 235, 1.17),
    ("thresholded-gaussian-gamma", 20): Row(270, 229, 1.13),
    ("thresholded-laplacian", 1): Row(198, 180, 0.930),
    ("thresholded-laplacian", 20): Row(194, 191, 1.13),
    ("thresholded-laplacian-gamma", 1): Row(223, 238, 0.981),
    ("thresholded-laplacian-gamma", 20): Row(211, 233, 1.12),
}

COLLAPSE: dict[tuple[str, int], Collapse] = {  # (gradient through the threshold, J)
    ("straight-through", 1): Collapse(0.0417, 0.0),
    ("straight-through", 20): Collapse(0.0456, 0.0),
    ("subgradient", 1): Collapse(None, None),
    ("subgradient", 20): Collapse(1.0, 1.0),
}

SNR: dict[tuple[str, int], Snr] = {  # (method, J)
    ("gaussian", 1): Snr(0.234, 0.522),
    ("gaussian", 20): Snr(0.192, 0.490),
    ("spike-and-slab", 1): Snr(0.0270, 0.273),
    ("spike-and-slab", 20): Snr(0.0474, 0.378),
    ("thresholded-laplacian", 1): Snr(0.0789, 0.391),
    ("thresholded-laplacian", 20): Snr(0.110, 0.386),
}

# Loss of the thresholded Laplacian by (sampling, J), mean of the three published runs.
SAMPLING_LOSS: dict[tuple[str, int], float] = {
    ("mean", 20): 193.2,
    ("max", 20): 194.3,
    ("mean", 100): 192.7,
    ("max", 100): 190.7,
}
