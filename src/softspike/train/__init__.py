"""7  the training loop, its recipe, its order and its state."""

from softspike.train.batched import train_batched
from softspike.train.interrupt import Interrupted, stop_on_interrupt
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
    "Interrupted",
    "NotTogether",
    "Observer",
    "Progress",
    "Recipe",
    "batch_rows",
    "pack",
    "step_random",
    "stop_on_interrupt",
    "train",
    "train_batched",
    "train_in_turn",
    "train_replicas",
    "unpack",
]
