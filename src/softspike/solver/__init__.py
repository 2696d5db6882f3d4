"""The other road from x to z: iterative solvers on a dictionary, batched, on any device."""

from softspike.solver.coder import FistaCoder
from softspike.solver.correction import Corrected, SupportCorrection
from softspike.solver.fista import fista
from softspike.solver.gap import LassoResult, lasso_gap
from softspike.solver.lasso import lasso
from softspike.solver.omp import omp, omp_at_mean_count, omp_by_gain, omp_residuals, rows_held
from softspike.solver.support import refit_on_support

__all__ = [
    "Corrected",
    "FistaCoder",
    "LassoResult",
    "SupportCorrection",
    "fista",
    "lasso",
    "lasso_gap",
    "omp",
    "omp_at_mean_count",
    "omp_by_gain",
    "omp_residuals",
    "refit_on_support",
    "rows_held",
]
