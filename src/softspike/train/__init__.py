"""7  the training loop, its recipe, its order and its state."""

from softspike.train.interrupt import Interrupted, stop_on_interrupt
from softspike.train.loop import Diverged, Observer, Progress, train
from softspike.train.order import batch_rows, step_random
from softspike.train.recipe import GroupRecipe, Recipe
from softspike.train.replicas import train_replicas
from softspike.train.state import pack, unpack

__all__ = [
    "Diverged",
    "GroupRecipe",
    "Interrupted",
    "Observer",
    "Progress",
    "Recipe",
    "batch_rows",
    "pack",
    "step_random",
    "stop_on_interrupt",
    "train",
    "train_replicas",
    "unpack",
]
