"""8  pure functions of codes, posteriors and dictionaries."""

from softspike.metric.reconstruction import (
    active_count,
    dead_components,
    explained_share,
    explained_variance,
    pca_explained_variance,
    sparse_coding_loss,
)
from softspike.metric.summary import Baselines, Summary, baselines, summarise

__all__ = [
    "Baselines",
    "Summary",
    "active_count",
    "baselines",
    "dead_components",
    "explained_share",
    "explained_variance",
    "pca_explained_variance",
    "sparse_coding_loss",
    "summarise",
]
