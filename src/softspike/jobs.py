"""What the commands do: read, train, write, print."""

import difflib
import hashlib
import io
import time
from pathlib import Path
from typing import Any

import torch
from scipy import sparse
from torch import Tensor

from softspike.data import (
    ArrayRows,
    Rows,
    StandardisedRows,
    Standardiser,
    SubsetRows,
    check_rows,
    photograph_patches,
    read_rows,
)
from softspike.estimator import SparseCoder
from softspike.fitting import Checkpoint
from softspike.generator import LinearGenerator
from softspike.launch import team_of
from softspike.metric import baselines, summarise
from softspike.metric.sampled import draws, sampled_errors
from softspike.model import VariationalCoder
from softspike.report.deep import save_estimated_dictionary, save_reconstructions
from softspike.report.figure import save_dictionary
from softspike.report.progress import decoding_shown, progress_shown
from softspike.report.table import print_table, sampled_lines, summary_lines
from softspike.run import RunFolder, write_atomically
from softspike.train import Alone, Diverged, Progress, Team

__all__ = ["demo_job", "encode_job", "evaluate_job", "train_job"]

_BASELINE_ROWS, _SUMMARY_ROWS, _USAGE_ROWS = 2000, 20_000, 2000
_DEEP_ROWS = 4000  # of which each is drawn and decoded J times


def demo_job(out: Path, steps: int | None, seed: int, device: str) -> None:
    """Whitened 16×16 patches of the embedded photographs → 256 components → a run folder."""
    parameters: dict[str, Any] = {"n_components": 256, "sparsity": 0.1, "random_state": seed, "device": device}
    coder = _coder(parameters if steps is None else {**parameters, "max_steps": steps})
    coder.check_parameters(n_features=256)
    # At this size a second thread gains a third on an idle machine and loses far more beside any other work.
    torch.set_num_threads(1)
    run = RunFolder(_free_folder(out))
    run.refuse_if_taken()
    print("cutting and whitening patches of the embedded photographs …", flush=True)
    patches, unseen = map(ArrayRows, photograph_patches(80_000, 4000, size=16, seed=seed))
    standardiser = coder.check(patches)
    run.create({**coder.config(), "data": {"name": "embedded photographs", "image_shape": [16, 16]}})
    _train(coder, patches, standardiser, run)
    _finish(coder, unseen, run, "unseen patches")


def train_job(
    data: Path,
    out: Path,
    parameters: dict[str, Any],
    key: str | None,
    resume: bool,
    checkpoint_every: int,
) -> None:
    """Train on a file, or go on with a run that stopped. Nothing is written before everything given is checked."""
    with team_of(parameters.get("device", "auto")) as (team, device):
        _train_with(team, data, out, {**parameters, "device": device}, key, resume, checkpoint_every)


def _train_with(
    team: Team,
    data: Path,
    out: Path,
    parameters: dict[str, Any],
    key: str | None,
    resume: bool,
    checkpoint_every: int,
) -> None:
    """Every process of the team trains; the leader alone reads and writes the run folder, and prints."""
    run = RunFolder(out)
    stored = team.handed_out(lambda: run.config() if resume else {})
    if not resume:
        team.handed_out(run.refuse_if_taken)
    if checkpoint_every < 1:
        raise ValueError(
            f"--checkpoint-every is {checkpoint_every}, expected a whole number ≥ 1; leave it out for 1000"
        )
    given = {name: value for name, value in parameters.items() if name != "device"}
    device = parameters["device"]  # a run may go on elsewhere than it began
    coder = _coder({"random_state": 0, **_continued(given, stored), "device": device})
    rows = team.leader_first(lambda: _read(data, key))
    standardiser = coder.check(rows)
    source = {"name": str(data), "key": key, "image_shape": rows.image_shape, "fingerprint": _fingerprint(rows)}
    if resume and stored.get("data", {}).get("fingerprint") != source["fingerprint"]:
        raise ValueError(f"{data} is not the data that {out} was trained on; --resume needs the same rows")
    team.handed_out(lambda: _claim(run, None if resume else {**coder.config(), "data": source}))
    _train(coder, rows, standardiser, run, checkpoint_every, resume, team)
    if team.leads:
        linear = isinstance(coder.coder_.generator, LinearGenerator)
        _finish(coder, _some(rows, _SUMMARY_ROWS if linear else _DEEP_ROWS), run, "training rows")


def encode_job(run: Path, data: Path, out: Path, key: str | None, device: str) -> None:
    """Codes of a file as CSR."""
    if out.is_dir():
        raise ValueError(f"{out} is a folder, expected a file for the codes; add a name, as in {out}/codes.npz")
    coder, rows = _loaded(run, data, key, device)
    codes = coder.inference_.codes(rows)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, _npz(codes))
    share = codes.nnz / (codes.shape[0] * codes.shape[1])
    print(f"{out}: {codes.shape[0]} × {codes.shape[1]} codes, {codes.nnz / len(rows):.2f} active each ({share:.2%})")


def evaluate_job(run: Path, data: Path, key: str | None, device: str) -> None:
    """A trained coder on a file."""
    coder, rows = _loaded(run, data, key, device)
    _, lines = _figures(coder, rows)
    print_table(f"{run} on {data}", lines)


# ── the steps they share ──


def _coder(parameters: dict[str, Any]) -> SparseCoder:
    known = SparseCoder().get_params()
    for name in parameters:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise ValueError(f"unknown configuration key {name!r}; did you mean {near!r}? Known: {', '.join(known)}")
    return SparseCoder(**{**parameters, "verbose": False})  # the command shows its own progress


def _continued(parameters: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a stopped run, which those given now must not contradict."""
    before = stored.get("estimator", {})
    for name, value in parameters.items():
        if stored and before.get(name) != value:
            raise ValueError(
                f"--resume continues with {name} = {before.get(name)!r}, but {value!r} was given; leave it out"
            )
    return {**before, **parameters}


def _loaded(run: Path, data: Path, key: str | None, device: str) -> tuple[SparseCoder, Rows]:
    """A trained coder and rows that it can code."""
    coder = SparseCoder.load(run, device=device)
    rows = _read(data, key)
    if rows.n_features != coder.n_features_in_:
        raise ValueError(
            f"{data} has {rows.n_features} features, {run} was trained on {coder.n_features_in_}; "
            "give data of the kind the run was trained on"
        )
    check_rows(rows, min_samples=1, constant="keep")
    return coder, rows


def _train(
    coder: SparseCoder,
    rows: Rows,
    standardiser: Standardiser,
    run: RunFolder,
    checkpoint_every: int = 1000,
    resume: bool = False,
    team: Team = Alone(),
) -> None:
    found = team.handed_out(lambda: run.last_checkpoint() if resume else None)
    start = Checkpoint(*found) if found else None
    if team.leads:
        run.drop_metrics_after(start.step if start else 0)
    try:
        with progress_shown(team.leads) as shown:
            coder.fit_rows(
                rows, standardiser=standardiser, observers=[_Log(run), *shown] if team.leads else [],
                on_checkpoint=run.save_checkpoint if team.leads else None, checkpoint_every=checkpoint_every,
                resume=start, team=team,
            )  # fmt: skip
    except Diverged as error:
        good = run.checkpoints()
        left = f"the last good checkpoint is {good[0]}" if good else "no checkpoint had been written yet"
        raise Diverged(error.step, error.cause, left) from error


def _finish(coder: SparseCoder, rows: Rows, run: RunFolder, what: str) -> None:
    """The model, its picture and its figures."""
    config = run.config()
    run.save_model(coder.model_tensors())
    run.write_json("config.json", {**config, **coder.config(), "data": config["data"]})
    summary, lines = _figures(coder, rows)
    run.write_json("summary.json", {"on": what, **summary})
    if not isinstance(coder.coder_.generator, LinearGenerator):
        _draw_deep(coder, rows, run)
        print_table(f"{run.path} on {what}", lines)
        print(f"wrote {run.path}/model.safetensors, metrics.jsonl, summary.json, reconstructions.png, dictionary.png")
        return
    shape = config["data"].get("image_shape")
    usage = coder.activation_probability(rows.take(torch.arange(min(len(rows), _USAGE_ROWS))).numpy()).mean(0)
    save_dictionary(run.path / "dictionary.png", coder.components_, tuple(shape) if shape else None, usage)
    print_table(f"{run.path} on {what}", lines)
    print(f"wrote {run.path}/model.safetensors, metrics.jsonl, summary.json, dictionary.png")


def _draw_deep(coder: SparseCoder, rows: Rows, run: RunFolder) -> None:
    """Reconstructions, and the dictionary that least squares reads from codes."""
    model, shape, device = coder.coder_, coder.image_shape_, coder.standardiser_.mean.device
    assert isinstance(model, VariationalCoder)
    first = next(draws(model, rows, coder.n_samples, device=device))
    save_reconstructions(run.path / "reconstructions.png", model, first, shape)
    codes = torch.from_numpy(coder.inference_.codes(rows).toarray())
    save_estimated_dictionary(run.path / "dictionary.png", rows.take(torch.arange(len(rows))), codes, shape)


def _claim(run: RunFolder, config: dict[str, Any] | None) -> None:
    """The folder for this process alone: a new run's, or that of the run that goes on."""
    run.lock() if config is None else run.create(config)


def _read(data: Path, key: str | None) -> Any:
    with decoding_shown() as watch:
        return read_rows(data, key, watch)


def _figures(coder: SparseCoder, rows: Rows) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    standard = StandardisedRows(rows, coder.standardiser_)
    device = coder.standardiser_.mean.device
    summary = summarise(coder.coder_, standard, device)
    few = standard.take(torch.arange(min(len(rows), _BASELINE_ROWS))).to(device)
    rivals = baselines(coder.coder_, few, summary.active)
    figures = {**summary._asdict(), "baselines": rivals._asdict(), "target_active": coder.target_active_}
    lines = summary_lines(summary, coder.target_active_, rivals)
    if rivals.omp is None and isinstance(coder.coder_, VariationalCoder):
        sampled = sampled_errors(coder.coder_, standard, coder.n_samples, device=device)
        figures["sampled"] = sampled._asdict()
        lines += sampled_lines(sampled)
    return figures, lines


def _some(rows: Rows, most: int) -> Rows:
    return rows if len(rows) <= most else SubsetRows(rows, _spread(len(rows), most))


def _spread(n: int, count: int) -> Tensor:
    """At most `count` row numbers, evenly from 0 to n − 1."""
    return torch.linspace(0, n - 1, min(n, count), dtype=torch.float64).round().long()


def _fingerprint(rows: Rows) -> str:
    """The size of the data and a hash of a few of its rows: enough to notice another file, cheap for any size."""
    few = rows.take(_spread(len(rows), 64))
    return f"{len(rows)}x{rows.n_features}:{hashlib.sha256(few.numpy().tobytes()).hexdigest()[:16]}"


def _free_folder(path: Path) -> Path:
    """The path itself, or the first of path-2, path-3 … that holds no run yet."""
    number, candidate = 1, path
    while (candidate / "config.json").exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _npz(codes: sparse.csr_matrix) -> bytes:
    buffer = io.BytesIO()
    sparse.save_npz(buffer, codes)
    return buffer.getvalue()


class _Log:
    """Appends to metrics.jsonl."""

    def __init__(self, run: RunFolder):
        self.run, self.begun = run, time.monotonic()

    def logged(self, progress: Progress) -> None:
        loss = {name: float(value) for name, value in progress.loss._asdict().items()}
        rates = {f"rate_{group['name']}": group["lr"] for group in progress.optimizer.param_groups}
        self.run.append_metrics(
            {"step": progress.step, **loss, **rates, "seconds": round(time.monotonic() - self.begun, 3)}
        )

    def saved(self, progress: Progress) -> None: ...
