"""8  pure functions of codes, posteriors and dictionaries."""

from softspike.metric.calibration import brier_score, calibration_error, interval_coverage, reliability
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

__all__ = [
    "Baselines",
    "Summary",
    "active_count",
    "baselines",
    "brier_score",
    "calibration_error",
    "dead_components",
    "dictionary_recovery",
    "explained_share",
    "explained_variance",
    "interval_coverage",
    "latent_recovery",
    "match",
    "pca_explained_variance",
    "reliability",
    "sparse_coding_loss",
    "summarise",
    "support_scores",
]
