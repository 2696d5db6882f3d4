"""Records → one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from softspike import __version__
from softspike.report.chart import Drawing
from softspike.report.comparison import Comparison, compare
from softspike.report.curves import TrainingChart, result_charts, training_charts
from softspike.report.embed import dictionary_arrays, finding_arrays
from softspike.report.files import environment, policy, script, style
from softspike.report.headline import Headline, headlines
from softspike.report.payload import Block, blocks_of, script_json
from softspike.report.record import Record
from softspike.report.remarks import Remark, remarks
from softspike.report.words import dictionary_note, inputs_note, one_line, settings_rows

__all__ = ["render"]


class RunView(NamedTuple):
    """One run as the template sees it."""

    number: int
    name: str
    line: str
    remarks: list[Remark]
    headlines: list[Headline]
    drawn: bool


class Section(NamedTuple):
    id: str
    title: str


def render(records: Sequence[Record], written: str = "") -> str:
    """The page of one run, or of several side by side. All text is escaped; the only script that runs is our own."""
    views = [
        RunView(number, record.name, one_line(record), remarks(record), headlines(record), record.drawn is not None)
        for number, record in enumerate(records)
    ]
    blocks, infos = _runs(records)
    comparison = compare(records)
    pairs, pair_blocks = _pairs(comparison)
    results, training = result_charts(records), training_charts(records)
    has_dictionary, has_inputs = any(view.drawn for view in views), any(record.measured for record in records)
    return environment().get_template("page.html").render(
        version=__version__, written=written, policy=policy(), style=Markup(style()),
        script=Markup(script()), title=records[0].name if len(records) == 1 else f"{len(records)} runs compared",
        sections=_sections(has_dictionary, has_inputs, bool(comparison.pairs), bool(results or training)),
        runs=views, comparison=comparison, result_charts=results, training_charts=training,
        settings=settings_rows(records), has_dictionary=has_dictionary, has_inputs=has_inputs,
        data=Markup(script_json({"runs": infos, "pairs": pairs, "charts": _charts(results, training)})),
        blocks=[*blocks, *pair_blocks],
    )  # fmt: skip


def _sections(dictionary: bool, inputs: bool, pairs: bool, curves: bool) -> list[Section]:
    sections = [Section("figures", "Figures")]
    for there, name, title in (
        (dictionary, "dictionary", "Dictionary"), (inputs, "inputs", "Inputs"), (pairs, "compare", "Matched"),
        (curves, "curves", "Curves"), (True, "settings", "Settings"),
    ):  # fmt: skip
        if there:
            sections.append(Section(name, title))
    return sections


# ── what the scripts draw from ──


def _runs(records: Sequence[Record]) -> tuple[list[Block], list[dict[str, Any]]]:
    """The arrays of all runs, and what is known about each run."""
    blocks: list[Block] = []
    infos: list[dict[str, Any]] = []
    for number, record in enumerate(records):
        info: dict[str, Any] = {
            "name": record.name,
            "kind": "",
            "atoms": 0,
            "shown": 0,
            "measured": False,
            "blocks": {},
        }
        if record.dictionary is not None and record.drawn is not None:
            arrays = dictionary_arrays(record.dictionary, record.drawn)
            if record.measured:
                measured = record.measured
                arrays |= finding_arrays(record.drawn, measured.findings, measured.rows, measured.rebuilt, len(records))
            mine = blocks_of(f"r{number}", arrays)
            blocks += mine
            info |= _info(record, len(arrays.get("codeStart", [0])) - 1) | {"blocks": _index(mine)}
        infos.append(info)
    return blocks, infos


def _info(record: Record, shown: int) -> dict[str, Any]:
    assert record.dictionary is not None
    assert record.drawn is not None
    drawn, measured = record.drawn, record.measured
    return {
        "kind": drawn.kind, "size": drawn.size, "values": drawn.n_values, "guessed": drawn.guessed,
        "atoms": len(record.dictionary.components), "shown": shown, "measured": measured is not None,
        "additive": record.additive,
        "inputs": measured.findings.figures.summary.n_samples if measured else 0,
        "note": dictionary_note(record), "inputsNote": inputs_note(record),
    }  # fmt: skip


def _pairs(comparison: Comparison) -> tuple[list[dict[str, Any]], list[Block]]:
    infos: list[dict[str, Any]] = []
    blocks: list[Block] = []
    for number, pair in enumerate(comparison.pairs):
        mine = blocks_of(f"p{number}", pair.arrays)
        blocks += mine
        infos.append({"base": comparison.base, "other": pair.other, "alike": pair.alike, "blocks": _index(mine)})
    return infos, blocks


def _index(blocks: Sequence[Block]) -> dict[str, Mapping[str, Any]]:
    return {
        block.id.split("-", 1)[1]: {"id": block.id, "type": block.type, "shape": list(block.shape)} for block in blocks
    }


def _charts(results: Sequence[Drawing], training: Sequence[TrainingChart]) -> dict[str, Any]:
    """Points of the curves for reading values off them."""
    drawings = [*results, *(drawing for chart in training for drawing in chart if drawing is not None)]
    return {
        drawing.chart.id: {
            "width": drawing.width, "x": drawing.chart.x_label, "top": drawing.box[1], "bottom": drawing.box[3],
            "lines": [[line.name, line.points] for line in drawing.lines],
        }
        for drawing in drawings
    }  # fmt: skip
