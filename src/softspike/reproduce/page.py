"""The page of results, written from what was measured: no figure on it is typed by hand."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from softspike.report.grid import markdown
from softspike.reproduce import setting as settings
from softspike.reproduce.cell import METHODS, SAMPLINGS, SINGLE_SWITCHES, VARIANTS, Cell, Variant
from softspike.reproduce.experiment import Experiment, Report, Scope
from softspike.reproduce.job import EXPERIMENTS
from softspike.reproduce.rivals import RIVALS, figures_of
from softspike.reproduce.rows import Measured, rows_of
from softspike.reproduce.runs import run_grids
from softspike.reproduce.setting import Setting
from softspike.reproduce.store import Store
from softspike.run import write_atomically

__all__ = ["write_page"]

_HEAD = """\
# The paper's linear study, repeated and audited

{label}.

After Fallah & Rozell, *Variational Sparse Coding with Learned Thresholding* (ICML 2022). Each part shows first the
measures that tell good codes from bad ones, then the published measures with the paper's figures beside ours. *Scripts*
are the conventions of the authors' published scripts (dz/dμ = 2 on active units; the spike's log γ = −max(−raw, 0),
read as logit γ; the warm-up of the spike-and-slab from 0.1 instead of 0, that of the Laplacian after 1,500 steps
instead of at once), *equations* those of the paper's text. This page was written by `softspike reproduce page` from the
figures in the JSON files beside it.
{seeds}"""


def write_page(results: Sequence[Path], page: Path) -> None:
    """Markdown at `page`; beside it, under its name, the pictures, all tables and all measured figures as JSON.

    Shorter runs stand in the same tables as those of the longest schedule, each row with its number of steps, where a
    folder holds that table of them.
    """
    studies = _by_length(results)
    page.parent.mkdir(parents=True, exist_ok=True)
    longest = studies[0]
    seeds = f"Means are over the seeds {', '.join(map(str, longest.seeds))}; ± is their standard deviation.\n"
    averaged = f"{seeds}The columns *steps* and *seeds* say how long and how many times a row was trained.\n"
    parts = [_HEAD.format(label=longest.setting.label, seeds=averaged if longest.seeds else "")]
    tables: dict[str, Any] = {}
    for name, experiment in EXPERIMENTS.items():
        text, report = _part(experiment, studies, page)
        parts.append(text)
        tables[name] = {"findings": list(report.findings), "tables": [asdict(grid) for grid in report.grids]}
    runs = run_grids([study.store for study in studies], _kinds())
    parts.append("## How it was run\n\n" + "\n".join(map(markdown, runs)))
    write_atomically(page, "\n".join(parts).encode())
    for study in studies:
        suffix = "" if study is longest else study.suffix
        for kind in filter(study.store.measured, _kinds()):
            _write_json(page.with_name(f"{page.stem}-{kind}{suffix}.json"), _fresh(study.store, kind))
    _write_json(page.with_name(f"{page.stem}-tables.json"), tables)
    print(f"wrote {page}, its pictures and its figures as JSON")


def _fresh(store: Store, kind: str) -> dict[str, Any]:
    """The measurements of a kind, without what rivals scored when that was part of it."""
    records = store.measured(kind)
    for name in records.keys() & store.measured(RIVALS).keys():
        (records[name]["figures"] or {}).pop("matched", None)
    return records


def _write_json(path: Path, content: Any) -> None:
    write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")


@dataclass(frozen=True)
class _Study:
    """Folders of one schedule."""

    folders: Sequence[Path]
    setting: Setting

    @property
    def store(self) -> Store:
        return Store(self.folders[0], others=self.folders[1:])

    @property
    def suffix(self) -> str:
        return f"-{self.setting.study.n_steps}"

    @property
    def seeds(self) -> list[int]:
        """In the order in which they were first measured."""
        names = [name for kind in _kinds() for name in self.store.measured(kind)]
        return list(dict.fromkeys(int(found[1]) for name in names if (found := re.search(r"\.s(\d+)$", name))))

    def cells(self, experiment: Experiment) -> list[Cell]:
        """All that can have been measured for it."""
        variants = [v for v in _variants(self.store) if experiment.compares_switches or v.name in VARIANTS]
        methods, samplings = list(METHODS.values()), list(SAMPLINGS.values())
        return experiment.cells(Scope(self.setting, variants, self.seeds, methods, samplings))

    def asked(self) -> list[Experiment]:
        """The experiments that a folder holds the table of."""
        return [e for e in EXPERIMENTS.values() if any((path / f"{e.name}.json").exists() for path in self.folders)]


def _by_length(results: Sequence[Path]) -> list[_Study]:
    """The longest schedule first."""
    configs = {path: Store(path).out.config() for path in results}
    if len({config["quick"] for config in configs.values()}) > 1:
        raise ValueError(f"{', '.join(map(str, results))} mix quick and full results; give folders of one kind")
    usual = settings.QUICK if configs[results[0]]["quick"] else settings.FULL
    lengths = sorted({config["steps"] for config in configs.values()}, reverse=True)
    return [_Study([p for p in results if configs[p]["steps"] == n], usual.with_steps(n)) for n in lengths]


def _part(experiment: Experiment, studies: Sequence[_Study], page: Path) -> tuple[str, Report]:
    setting, rows = studies[0].setting, _rows(experiment, studies)
    head = f"## {experiment.title}\n\n"
    if not rows:
        command = f"softspike reproduce {experiment.name} --data IMAGES.mat -o OUT"
        return f"{head}Not measured yet: `{command}`.\n", Report([], [])
    atoms = studies[0].store.dictionaries()
    report = experiment.report(rows, setting, atoms)
    picture = page.with_name(f"{page.stem}-{experiment.name}.png")
    drawn = experiment.draw(experiment.pictured(rows), setting, picture, atoms)
    findings = "".join(f"- {sentence}\n" for sentence in report.findings)
    width = "100%" if len(drawn) == 1 else "400"
    pictures = "\n".join(f'<img src="{p.relative_to(page.parent)}" alt="{p.stem}" width="{width}">' for p in drawn)
    return "\n".join([head + findings, *(markdown(grid) for grid in report.grids), pictures, ""]), report


def _rows(experiment: Experiment, studies: Sequence[_Study]) -> list[Measured]:
    """Of all lengths, the same cell's beside one another with the longest first."""
    own = [study for study in studies if study is studies[0] or experiment in study.asked()]
    order: dict[tuple[Any, ...], list[Measured]] = {}
    for study in own:
        for cell in study.cells(experiment):
            order.setdefault(_place(cell), [])
    for study in own:
        for row in rows_of(study.cells(experiment), figures_of(experiment, study.store)):
            order[_place(row.cell)].append(row)
    return [row for rows in order.values() for row in rows]


def _place(cell: Cell) -> tuple[Any, ...]:
    """What cells that differ only in seed and length have in common."""
    return cell.row, cell.variant.name, cell.sampling.name


def _variants(store: Store) -> list[Variant]:
    """Those under which something was measured."""
    names = {name.split(".")[1].removesuffix("-subgradient") for kind in _kinds() for name in store.measured(kind)}
    found = [variant for name, variant in {**VARIANTS, **SINGLE_SWITCHES}.items() if name in names]
    return found or list(VARIANTS.values())[:1]  # FISTA and the Gaussian are the same under all


def _kinds() -> list[str]:
    return [*dict.fromkeys(experiment.kind for experiment in EXPERIMENTS.values()), RIVALS]
