"""Run folders → records → a page: what `softspike report` does, and `softspike demo` at its end."""

import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from softspike.command.checking import check_kind, check_target
from softspike.command.source import Missing, Source, find_again, fingerprint, some
from softspike.data import read_rows
from softspike.estimator import SparseCoder
from softspike.generator import LinearGenerator
from softspike.report.embed import Dictionary, most_values
from softspike.report.findings import STAGES, Figures, measure
from softspike.report.page import render
from softspike.report.pixels import drawn_as
from softspike.report.progress import KeepingSaid, stages_shown
from softspike.report.record import Measured, Record
from softspike.report.serve import PageServer
from softspike.run import RunFolder, write_atomically
from softspike.visible import visible

__all__ = ["record_of", "report_job", "write_page"]


def report_job(
    runs: Sequence[Path],
    data: Path | None,
    key: str | None,
    out: Path | None,
    serve: bool,
    port: int | None,
    device: str,
) -> None:
    """One page of all runs, measured on `data` or on what each was trained on, written and perhaps served."""
    folders = [RunFolder(path) for path in runs]
    configs = [folder.coder_config() for folder in folders]
    target = out or (runs[0] / "report.html" if len(runs) == 1 else Path("report.html"))
    check_target(target, ".html", "the page", data)
    if data is None and key is not None:
        raise ValueError(f"--key {key} was given without --data, whose part it names; give both or neither")
    if port is not None and not serve:
        raise ValueError(f"--port {port} was given without --serve; give both or neither")
    server = PageServer(b"", port or 0) if serve else None  # a port that is taken is said before the work, not after
    with stages_shown(len(folders) * (len(STAGES) + 1)) as told:
        records = []
        for folder, config in zip(folders, configs, strict=True):
            told(f"{folder.path}: reading")
            source = _given(data, key, folder, config) if data else find_again(config, KeepingSaid())
            records.append(record_of(folder, source, device, n_runs=len(folders), told=told))
    page = write_page(target, records)
    for record in records:
        if record.missing:
            said = f"{record.name}: {record.missing}; the page has what needs no data, add --data DATA"
            print(visible(said), file=sys.stderr)
    print(f"wrote {target} ({len(page) / 1e6:.1f} MB)", flush=True)
    if server:
        server.page = page
        _serve(server)


def write_page(path: Path, records: Sequence[Record]) -> bytes:
    """Render, write, and return what was written."""
    today = date.today()
    page = render(records, f"{today.day} {today:%B %Y}").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page)
    return page


def record_of(
    run: RunFolder,
    source: Source | Missing,
    device: str = "auto",
    *,
    figures: Figures | None = None,
    n_runs: int = 1,
    told: Callable[[str], object] = lambda stage: None,
) -> Record:
    """Everything about one run; an unfinished one is shown as its last checkpoint left it."""
    config, latest, failed = run.coder_config(), run.latest(), run.optional_json("diverged.json")
    diverged = f"at step {failed.get('step')}, {failed.get('cause')}" if failed else ""
    missing, found = (source.why, None) if isinstance(source, Missing) else ("", source)
    common: dict[str, Any] = {
        "name": str(run.path), "config": config, "log": run.metrics(), "summary": run.optional_json("summary.json"),
        "diverged": diverged, "missing": missing,
    }  # fmt: skip
    if latest is None:
        return Record(**common, step=int(common["log"][-1]["step"]) if common["log"] else 0)
    step, tensors = latest
    coder = SparseCoder.restored(config, tensors, device, str(run.path))
    measured = _measured(coder, found, figures, lambda stage: told(f"{run.path}: {stage}")) if found else None
    dictionary = _dictionary(coder, measured)
    shape = _image_shape(config, found)
    limit = most_values(len(dictionary.components), n_runs) if dictionary else 0
    return Record(
        **common, step=coder.n_steps_ if step is None else step, dictionary=dictionary,
        drawn=drawn_as(coder.n_features_in_, shape, limit) if dictionary else None, measured=measured,
        target_active=coder.target_active_, additive=isinstance(coder.coder_.generator, LinearGenerator),
    )  # fmt: skip


def _measured(coder: SparseCoder, source: Source, figures: Figures | None, told: Callable[[str], object]) -> Measured:
    model, standardiser = coder.coder_, coder.standardiser_

    @torch.no_grad()
    def rebuilt(codes: sparse.csr_matrix) -> np.ndarray:
        z = torch.from_numpy(codes.toarray()).to(standardiser.mean)
        return standardiser.inverse(model.generator(z)).cpu().numpy()

    findings = measure(model, standardiser, source.rows, figures, told)
    return Measured(f"{len(source.rows):,} {source.words}", source.training, source.rows, findings, rebuilt)


def _dictionary(coder: SparseCoder, measured: Measured | None) -> Dictionary | None:
    """In units of the data; a network has one only where there were codes to read it from."""
    if isinstance(coder.coder_.generator, LinearGenerator):
        return Dictionary(np.asarray(coder.components_), coder.mean_)
    if measured is None:
        return None
    scale = coder.standardiser_.scale.cpu().numpy()
    return Dictionary(measured.findings.atoms * scale, coder.standardiser_.mean.cpu().numpy())


def _image_shape(config: dict[str, Any], source: Source | None) -> tuple[int, ...] | None:
    """As the run remembers it, or as the data given now says."""
    shape = (config.get("data") or {}).get("image_shape") or getattr(source and source.rows, "image_shape", None)
    return tuple(int(n) for n in shape) if shape else None


def _given(data: Path, key: str | None, run: RunFolder, config: dict[str, Any]) -> Source:
    rows = read_rows(data, key, KeepingSaid())
    check_kind(rows, data, int(config["n_features"]), run.path)
    known = (config.get("data") or {}).get("fingerprint") == fingerprint(rows)
    return Source(some(rows), f"{'training rows' if known else 'rows'} of {data}", known)


def _serve(server: PageServer) -> None:
    print(f"serving it on {server.address} until Ctrl-C is pressed", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("stopped")
    finally:
        server.server_close()
