"""The named methods: compositions of the arrow's parts, each with its recipe."""

from softspike.methods.plan import Built, Plan, adam_recipe
from softspike.methods.registry import METHODS, POSITIVE_METHODS, build, composed, method_named

__all__ = ["METHODS", "POSITIVE_METHODS", "Built", "Plan", "adam_recipe", "build", "composed", "method_named"]
