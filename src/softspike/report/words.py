"""Sentences about a run: what it is, how it is drawn, with which settings."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from softspike.report.pixels import size_of
from softspike.report.record import Record

__all__ = ["SettingRow", "dictionary_note", "duration", "inputs_note", "one_line", "settings_rows"]


class SettingRow(NamedTuple):
    name: str
    cells: list[str]
    differs: bool


def one_line(record: Record) -> str:
    """What was trained, on what, for how long."""
    atoms = "no dictionary yet" if record.dictionary is None else f"{len(record.dictionary.components):,} atoms"
    shape = record.drawn.source if record.drawn and record.drawn.kind != "bars" else ()
    each = size_of(shape, record.config.get("n_features"))
    data = (record.config.get("data") or {}).get("name", "data that was not recorded")
    took = f" in {duration(record.seconds)}" if record.seconds is not None else ""
    parts = [str(record.settings.get("method")), f"{atoms} of {each}"]
    parts += [f"trained on {data}", f"{record.step:,} steps{took}"]
    if record.measured:
        parts.append(f"measured on {record.measured.on}")
    elif record.summary and record.summary.get("on"):
        parts.append(f"measured on {record.summary['on']}, when training ended")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """12.3 s, 4 min 5 s, 2 h 7 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def dictionary_note(record: Record) -> str:
    """How atoms are drawn, and whether that was guessed."""
    drawn = record.drawn
    assert drawn is not None
    if drawn.kind == "bars":
        how = "The data is no picture, so each atom is drawn as bars, one per feature."
    else:
        h, w = drawn.source[:2]
        colour = "colour" if drawn.kind == "colour" else "grey"
        how = f"Each atom is a {h} × {w} {colour} picture, scaled by its own largest value; mid-grey is zero."
    if not record.additive:
        how += " The generator is a network: an atom is its least-squares picture, not a part of a sum."
    if drawn.guessed:
        how += " The data does not say that it is a picture: this is a guess from the square number of features."
    if drawn.reduced:
        how += f" Neighbouring features are averaged for drawing, to {drawn.size[0]} × {drawn.size[1]}."
    dead = record.measured is not None and record.measured.findings.figures.summary.dead > 0
    return how + (" A × marks atoms that were never active." if dead else "")


def inputs_note(record: Record) -> str:
    """Which inputs are shown."""
    if record.measured is None:
        return ""
    return (
        f"Some of the {record.measured.findings.figures.summary.n_samples:,} inputs that were measured, evenly spread. "
        "Each is drawn over its own range; its reconstruction and residual use the same scale, so a faint residual is "
        "a small one."
    )


def settings_rows(records: Sequence[Record]) -> list[SettingRow]:
    """All settings of all runs; where runs disagree, that is marked."""
    tables = [_settings(record) for record in records]
    names = list(dict.fromkeys(name for table in tables for name in table))
    rows = []
    for name in names:
        cells = [_plain(table.get(name)) for table in tables]
        if all(cell == "–" for cell in cells):
            continue
        rows.append(SettingRow(name, cells, len(set(cells)) > 1))
    return rows


def _settings(record: Record) -> dict[str, Any]:
    data = record.config.get("data") or {}
    skipped = ("verbose",)
    return {
        "data": data.get("name"), "data key": data.get("key"), "image shape": data.get("image_shape"),
        "features": record.config.get("n_features"), "rows seen": record.config.get("n_samples_seen"),
        **{name: value for name, value in record.settings.items() if name not in skipped},
        "softspike": record.config.get("softspike"),
    }  # fmt: skip


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list | tuple):
        return " × ".join(map(str, value))
    return str(value)
