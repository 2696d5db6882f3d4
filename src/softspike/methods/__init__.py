"""The named methods: compositions of the arrow's parts, each with its recipe."""

from softspike.methods.networks import ConvNetworks, LinearNetworks
from softspike.methods.plan import Built, Networks, Plan, adam_recipe
from softspike.methods.registry import (
    AUTOENCODERS,
    DEEP_METHODS,
    DENSE_METHODS,
    METHODS,
    POSITIVE_METHODS,
    SAMPLING_METHODS,
    build,
    composed,
    method_named,
)

__all__ = [
    "AUTOENCODERS",
    "DEEP_METHODS",
    "DENSE_METHODS",
    "METHODS",
    "POSITIVE_METHODS",
    "SAMPLING_METHODS",
    "Built",
    "ConvNetworks",
    "LinearNetworks",
    "Networks",
    "Plan",
    "adam_recipe",
    "build",
    "composed",
    "method_named",
]
