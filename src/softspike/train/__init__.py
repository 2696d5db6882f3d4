"""7  the training loop, and its objects: recipe, order, augmentation, precision, team, state."""

from softspike.train.augment import AsItIs, Augmentation, Mirrored
from softspike.train.batched import train_batched
from softspike.train.diverged import Diverged
from softspike.train.interrupt import Interrupted, stop_on_interrupt
from softspike.train.loop import Observer, Progress, Staged, tell_stage, train
from softspike.train.order import batch_rows, step_flips, step_random
from softspike.train.precision import BFloat16, Float16, FullPrecision, Precision, automatic_precision
from softspike.train.recipe import GroupRecipe, Recipe
from softspike.train.recovery import Recovered, Recovery, Rollback, check_end, train_recovering
from softspike.train.replicas import Engine, train_in_turn, train_replicas
from softspike.train.state import pack, unpack
from softspike.train.team import Alone, Processes, Team
from softspike.train.together import NotTogether

__all__ = [
    "Alone",
    "AsItIs",
    "Augmentation",
    "BFloat16",
    "Diverged",
    "Engine",
    "Float16",
    "FullPrecision",
    "GroupRecipe",
    "Interrupted",
    "Mirrored",
    "NotTogether",
    "Observer",
    "Precision",
    "Processes",
    "Progress",
    "Recipe",
    "Recovered",
    "Recovery",
    "Rollback",
    "Staged",
    "Team",
    "automatic_precision",
    "batch_rows",
    "check_end",
    "pack",
    "step_flips",
    "step_random",
    "stop_on_interrupt",
    "tell_stage",
    "train",
    "train_batched",
    "train_in_turn",
    "train_recovering",
    "train_replicas",
    "unpack",
]
