"""6  from a bound on the evidence to the loss of one step."""

from softspike.objective.evidence import Evidence, Noise, Terms
from softspike.objective.expected import Expected, ExpectedPlain
from softspike.objective.importance import ImportanceWeighted, importance_weighted_bound
from softspike.objective.samples import BestOf, BestOfPlain, MeanOf, Objective

__all__ = [
    "BestOf",
    "BestOfPlain",
    "Evidence",
    "Expected",
    "ExpectedPlain",
    "ImportanceWeighted",
    "MeanOf",
    "Noise",
    "Objective",
    "Terms",
    "importance_weighted_bound",
]
