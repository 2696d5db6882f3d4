"""What of the deep study is asked for, from the options of the command; checked before anything is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from softspike.reproduce.cell import VARIANTS, Variant
from softspike.reproduce.deep.cell import METHODS, Asked
from softspike.reproduce.deep.setting import SETTINGS, DeepSetting

__all__ = ["DeepOptions"]


class _Kind(NamedTuple):
    """What the numbers of an option are."""

    read: Callable[[str], Any]
    fine: Callable[[Any], bool]
    needed: str
    none: bool = True  # whether there may be none of them


_COUNTS = _Kind(int, lambda count: count >= 1, "whole numbers ≥ 1 with commas, or none")
_SHARES = _Kind(float, lambda share: 0 < share < 1, "numbers strictly between 0 and 1 with commas, or none")
_SEEDS = _Kind(int, lambda seed: 0 <= seed < 2**32, "whole numbers from 0 to 2³² − 1 with commas", none=False)


@dataclass(frozen=True)
class DeepOptions:
    """The options of the command, as given."""

    out: Path
    data: Path | None = None
    quick: bool = False
    device: str = "auto"
    epochs: int | None = None
    peak_rate: float | None = None
    methods: str | None = None
    dimensions: str | None = None
    shares: str | None = None
    seeds: str = "0"
    conventions: str = "equations"
    precision: str = "auto"
    inception: Path | None = None
    limit_minutes: float | None = None
    keep_models: bool = False

    def setting(self, name: str) -> DeepSetting:
        setting = SETTINGS[name].quickly() if self.quick else SETTINGS[name]
        if self.epochs is not None:
            if self.epochs < 1:
                raise ValueError(f"--epochs is {self.epochs}, expected a whole number ≥ 1; leave it out for 300")
            setting = replace(setting, epochs=self.epochs)
        if self.peak_rate is not None:
            if not self.peak_rate > 0:
                raise ValueError(f"--peak-rate is {self.peak_rate}, expected a number > 0")
            setting = replace(setting, peak_rate=self.peak_rate)
        return setting

    def asked(self, setting: DeepSetting) -> Asked:
        methods = self.methods.split(",") if self.methods else list(METHODS)
        for name in methods:
            if name not in METHODS:
                raise ValueError(f"--methods names {name!r}, expected some of: {', '.join(METHODS)}")
        dimensions = _numbers("dimensions", self.dimensions, setting.dimensions, _COUNTS)
        shares = _numbers("shares", self.shares, setting.shares, _SHARES)
        if not dimensions and not shares:
            raise ValueError("--dimensions and --shares are both none, expected numbers for one of them")
        return Asked(
            methods, dimensions, shares, _variants(self.conventions), _numbers("seeds", self.seeds, (0,), _SEEDS)
        )


def _numbers(name: str, text: str | None, default: Sequence[Any], kind: _Kind) -> list[Any]:
    if text is None:
        return list(default)
    if text == "none" and kind.none:
        return []
    try:
        numbers = [kind.read(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(map(kind.fine, numbers)):
        raise ValueError(f"--{name} is {text!r}, expected {kind.needed}")
    return numbers


def _variants(text: str) -> list[Variant]:
    if text == "both":
        return list(VARIANTS.values())
    if text not in VARIANTS:
        raise ValueError(f"--conventions is {text!r}, expected one of: {', '.join([*VARIANTS, 'both'])}")
    return [VARIANTS[text]]
