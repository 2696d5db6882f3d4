"""What of the study is asked for, from the options of the command."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from softspike.reproduce import setting as settings
from softspike.reproduce.cell import METHODS, SAMPLINGS, SINGLE_SWITCHES, VARIANTS, Variant
from softspike.reproduce.experiment import Experiment, Scope

__all__ = ["Asked"]

T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """The options of the command, as given."""

    out: Path
    data: Path | None = None
    quick: bool = False
    device: str = "auto"
    seeds: str | None = None
    steps: int | None = None
    conventions: str | None = None
    methods: str | None = None
    samplings: str | None = None
    together: int | None = None
    cells: Path | None = None
    others: Sequence[Path] = ()
    limit_minutes: float | None = None
    train_only: bool = False

    def scope_of(self, experiment: Experiment) -> Scope:
        """The scope, every method and sampling of which the experiment has a use for."""
        for option, text, known in (
            ("--methods", self.methods, experiment.methods),
            ("--samplings", self.samplings, experiment.samplings),
        ):
            strange = [] if text is None else [name for name in text.split(",") if name not in known]
            if strange and not set(strange) - {*METHODS, *SAMPLINGS}:
                about = f"{experiment.name} is about {', '.join(known)}"
                raise ValueError(f"{option} names {', '.join(strange)}, but {about}; leave {option} out, or name those")
        return self.scope()

    def scope(self) -> Scope:
        setting = (settings.QUICK if self.quick else settings.FULL).with_steps(self.steps)
        return Scope(
            setting,
            _variants(self.conventions, self.quick),
            _seeds(self.seeds, self.quick),
            _some("--methods", self.methods, METHODS),
            _some("--samplings", self.samplings, SAMPLINGS),
        )


def _seeds(text: str | None, quick: bool) -> list[int]:
    if text is None:
        return [0] if quick else [0, 1337, 747]
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--seeds is {text!r}, expected whole numbers with commas, as in 0,1337,747") from None


def _variants(text: str | None, quick: bool) -> list[Variant]:
    if text is None:
        text = "scripts" if quick else "both"
    return _some("--conventions", ",".join(VARIANTS) if text == "both" else text, {**VARIANTS, **SINGLE_SWITCHES})


def _some(option: str, text: str | None, known: Mapping[str, T]) -> list[T]:
    """Those named, with commas; all where nothing is said."""
    names = list(known) if text is None else text.split(",")
    for name in names:
        if name not in known:
            raise ValueError(f"{option} names {name!r}, expected some of: {', '.join(known)}")
    return [known[name] for name in names]
