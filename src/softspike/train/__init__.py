"""7  the training loop, its recipe, its order and its state."""

from softspike.train.batched import train_batched
from softspike.train.loop import Diverged, Observer, Progress, train
from softspike.train.order import batch_rows, step_random
from softspike.train.recipe import GroupRecipe, Recipe
from softspike.train.replicas import Engine, train_in_turn, train_replicas
from softspike.train.state import pack, unpack
from softspike.train.together import NotTogether

__all__ = [
    "Diverged",
    "Engine",
    "GroupRecipe",
    "NotTogether",
    "Observer",
    "Progress",
    "Recipe",
    "batch_rows",
    "pack",
    "step_random",
    "train",
    "train_batched",
    "train_in_turn",
    "train_replicas",
    "unpack",
]
