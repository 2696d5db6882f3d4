"""8  pure functions of codes, posteriors and dictionaries."""

from softspike.metric.bound import mean_bound
from softspike.metric.calibration import brier_score, calibration_error, interval_coverage, reliability
from softspike.metric.collapse import feature_collapse, never_active, posterior_collapse
from softspike.metric.estimated_dictionary import EstimatedDictionary, estimated_dictionary
from softspike.metric.gradient_snr import gradient_snr, snr_floor
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
    sparse_coding_loss,
)
from softspike.metric.recovery import dictionary_recovery, latent_recovery, match, support_scores
from softspike.metric.summary import Baselines, Summary, baselines, summarise
from softspike.metric.support import jaccard_index, published_jaccard_distance, used_components
from softspike.metric.total_correlation import gaussian_total_correlation

__all__ = [
    "Baselines",
    "EstimatedDictionary",
    "Matched",
    "MultiInformation",
    "PublishedLoss",
    "Summary",
    "active_count",
    "baselines",
    "brier_score",
    "calibration_error",
    "dead_components",
    "dictionary_recovery",
    "estimated_dictionary",
    "explained_share",
    "explained_variance",
    "feature_collapse",
    "gaussian_total_correlation",
    "gradient_snr",
    "interval_coverage",
    "jaccard_index",
    "latent_recovery",
    "match",
    "matched_solvers",
    "mean_bound",
    "multi_information",
    "never_active",
    "pca_explained_variance",
    "point_biserial",
    "posterior_collapse",
    "prior_codes",
    "published_edges",
    "published_jaccard_distance",
    "published_loss",
    "published_point_biserial",
    "reliability",
    "snr_floor",
    "sparse_coding_loss",
    "summarise",
    "support_scores",
    "used_components",
]
