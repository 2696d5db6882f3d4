"""8  pure functions of codes, posteriors and dictionaries."""

from softspike.metric.bound import bounds, mean_bound
from softspike.metric.calibration import brier_score, calibration_error, interval_coverage, reliability
from softspike.metric.collapse import feature_collapse, never_active, posterior_collapse
from softspike.metric.components import (
    Histograms,
    Partners,
    firing_rate,
    mean_size,
    partners,
    strongest_inputs,
    value_histograms,
)
from softspike.metric.consistency import Consistency, support_consistency
from softspike.metric.estimated_dictionary import EstimatedDictionary, estimated_dictionary
from softspike.metric.frontier import Frontier, rate_distortion
from softspike.metric.gradient_snr import gradient_snr, snr_floor
from softspike.metric.likeness import Neighbours, Pairs, likeness_order, nearest_atoms, pair_atoms
from softspike.metric.matched import Matched, matched_solvers
from softspike.metric.multi_information import MultiInformation, multi_information, published_edges
from softspike.metric.point_biserial import point_biserial, published_point_biserial
from softspike.metric.prior_codes import prior_codes
from softspike.metric.published_loss import PublishedLoss, published_loss
from softspike.metric.reconstruction import (
    active_count,
    dead_components,
    explained_share,
    explained_variance,
    pca_explained_variance,
    pca_residuals,
    sparse_coding_loss,
)
from softspike.metric.recovery import dictionary_recovery, latent_recovery, match, support_scores
from softspike.metric.simulated import SimulatedCalibration, simulated_calibration
from softspike.metric.summary import Baselines, Summary, baselines, summarise
from softspike.metric.support import jaccard_index, published_jaccard_distance, used_components
from softspike.metric.total_correlation import gaussian_total_correlation

__all__ = [
    "Baselines",
    "Consistency",
    "EstimatedDictionary",
    "Frontier",
    "Histograms",
    "Matched",
    "MultiInformation",
    "Neighbours",
    "Pairs",
    "Partners",
    "PublishedLoss",
    "SimulatedCalibration",
    "Summary",
    "active_count",
    "baselines",
    "bounds",
    "brier_score",
    "calibration_error",
    "dead_components",
    "dictionary_recovery",
    "estimated_dictionary",
    "explained_share",
    "explained_variance",
    "feature_collapse",
    "firing_rate",
    "gaussian_total_correlation",
    "gradient_snr",
    "interval_coverage",
    "jaccard_index",
    "latent_recovery",
    "likeness_order",
    "match",
    "matched_solvers",
    "mean_bound",
    "mean_size",
    "multi_information",
    "nearest_atoms",
    "never_active",
    "pair_atoms",
    "partners",
    "pca_explained_variance",
    "pca_residuals",
    "point_biserial",
    "posterior_collapse",
    "prior_codes",
    "published_edges",
    "published_jaccard_distance",
    "published_loss",
    "published_point_biserial",
    "rate_distortion",
    "reliability",
    "simulated_calibration",
    "snr_floor",
    "sparse_coding_loss",
    "strongest_inputs",
    "summarise",
    "support_consistency",
    "support_scores",
    "used_components",
    "value_histograms",
]
