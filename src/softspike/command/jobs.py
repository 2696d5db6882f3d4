"""What the commands do: read, train, write, print."""

import difflib
import io
from collections.abc import Collection, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from scipy import sparse

from softspike.command.checking import about, check_kind, check_target, tell_idle, usual_method
from softspike.command.finishing import figures_of, finish, sampled_of
from softspike.command.launch import restarted, team_of
from softspike.command.reporting import record_of, write_page
from softspike.command.source import DEMO, Source, demo_rows, fingerprint, some
from softspike.data import Rows, Standardiser, read_rows
from softspike.data.celeba import is_celeba
from softspike.estimator import SparseCoder
from softspike.fitting import Checkpoint
from softspike.generator import LinearGenerator
from softspike.report.logs import Log, check_log, open_log
from softspike.report.progress import decoding_shown, progress_shown
from softspike.report.record import seconds_of
from softspike.report.table import print_table, sampled_lines, summary_lines
from softspike.run import RunFolder, write_atomically
from softspike.train import Alone, Diverged, Rollback, Team, stop_on_interrupt

__all__ = ["coder_from", "demo_job", "encode_job", "evaluate_job", "train_job"]

_DEEP_ROWS = 4000  # of which each is drawn and decoded J times


def demo_job(out: Path, steps: int | None, seed: int | None, device: str, resume: bool = False) -> None:
    """Whitened 16×16 patches of the embedded photographs → 256 components → a run folder with its report."""
    run = RunFolder(out)
    stored = run.coder_config() if resume else {}
    if resume and stored.get("data") != DEMO:
        again = f"softspike train DATA -o {quote(str(out))} --resume"
        raise ValueError(f"{out} is not a run of the demo; go on with: {again}")
    options = {"random_state": seed, "max_steps": steps}
    given = {name: value for name, value in options.items() if value is not None}
    defaults = {"n_components": 256, "sparsity": 0.1, "random_state": 0}
    coder = coder_from({**defaults, **_continued(given, stored), "device": device})
    coder.check_parameters(n_features=256)
    torch.set_num_threads(min(torch.get_num_threads(), 2))  # at this size a second gains a third, and more would wait
    if not resume:
        run.refuse_if_taken()
    print("cutting and whitening patches of the embedded photographs …", flush=True)
    patches, unseen = demo_rows(coder.random_state)
    standardiser = coder.check(patches)
    run.lock() if resume else run.create({**coder.config(), "data": DEMO})
    seconds = _train(coder, patches, standardiser, run, resume=resume)
    figures = finish(coder, unseen, run, "unseen patches", seconds)
    print("measuring the report …", flush=True)
    write_page(
        run.path / "report.html", [record_of(run, Source(unseen, "unseen patches", False), device, figures=figures)]
    )
    print(f"wrote {run.path}/report.html: open it in a browser")


def train_job(
    data: Path,
    out: Path,
    parameters: dict[str, Any],
    key: str | None,
    resume: bool,
    checkpoint_every: int,
    logs: Sequence[str] = (),
    said: Collection[str] = (),
) -> None:
    """Train on a file, or go on with a run that stopped. Nothing is written before everything given is checked.
    `said` names those parameters that stand on the command line."""
    with team_of(parameters.get("device", "auto")) as (team, device):
        _train_with(team, data, out, {**parameters, "device": device}, key, resume, checkpoint_every, logs, said)


def _train_with(
    team: Team,
    data: Path,
    out: Path,
    parameters: dict[str, Any],
    key: str | None,
    resume: bool,
    checkpoint_every: int,
    logs: Sequence[str],
    said: Collection[str],
) -> None:
    """Every process of the team trains; the leader alone reads and writes the run folder, and prints."""
    run = RunFolder(out)
    # torchrun starts the same command again after one of its processes died: what is there is gone on with.
    resume = resume or team.handed_out(lambda: restarted() and (out / "config.json").exists())
    stored = team.handed_out(lambda: run.coder_config() if resume else {})
    if not resume:
        team.handed_out(run.refuse_if_taken)
    if checkpoint_every < 1:
        raise ValueError(
            f"--checkpoint-every is {checkpoint_every}, expected a whole number ≥ 1; leave it out for 1000"
        )
    for log in logs:
        check_log(log)
    given = {name: value for name, value in parameters.items() if name != "device"}
    device = parameters["device"]  # a run may go on elsewhere than it began
    asked = _continued(given, stored) if stored else _with_defaults(given, data)
    coder = coder_from({"random_state": 0, **asked, "device": device})
    if coder.n_init != 1:
        raise ValueError(
            f"n_init is {coder.n_init}, expected 1: this command trains one start, which it can go on with; leave it "
            "out, or use SparseCoder(n_init=…).fit in Python"
        )
    rows = team.leader_first(lambda: _read(data, key))
    with about(data):
        standardiser = coder.check(rows)
    source = {"name": str(data), "key": key, "image_shape": rows.image_shape, "fingerprint": fingerprint(rows)}
    if resume and (stored.get("data") or {}).get("fingerprint") != source["fingerprint"]:
        raise ValueError(f"{data} is not the data that {out} was trained on; --resume needs the same rows")
    tell_idle(said, coder.method)
    team.handed_out(lambda: _claim(run, None if resume else {**coder.config(), "data": source}))
    seconds = _train(coder, rows, standardiser, run, checkpoint_every, resume, logs, team)
    if team.leads:
        linear = isinstance(coder.coder_.generator, LinearGenerator)
        finish(coder, some(rows) if linear else some(rows, _DEEP_ROWS), run, "training rows", seconds)
        print(f"see what was learned: softspike report {quote(str(out))}")


def encode_job(run: Path, data: Path, out: Path, key: str | None, device: str) -> None:
    """Codes of a file as CSR."""
    check_target(out, ".npz", "the codes", data)
    coder, rows = _loaded(run, data, key, device)
    codes = coder.inference_.codes(rows)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, _npz(codes))
    share = codes.nnz / (codes.shape[0] * codes.shape[1])
    print(f"{out}: {codes.shape[0]} × {codes.shape[1]} codes, {codes.nnz / len(rows):.2f} active each ({share:.2%})")


def evaluate_job(run: Path, data: Path, key: str | None, device: str) -> None:
    """A trained coder on a file."""
    coder, rows = _loaded(run, data, key, device)
    summary, rivals = figures_of(coder, rows)
    sampled = sampled_of(coder, rows)
    lines = summary_lines(summary, coder.target_active_, rivals)
    print_table(f"{run} on {data}", lines if sampled is None else lines + sampled_lines(sampled))


# ── the steps they share ──


def coder_from(parameters: dict[str, Any]) -> SparseCoder:
    """A coder of these parameters; ValueError for a name that it does not have."""
    known = SparseCoder().get_params()
    for name in parameters:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise ValueError(f"unknown configuration key {name!r}; did you mean {near!r}? Known: {', '.join(known)}")
    return SparseCoder(**{**parameters, "verbose": False})  # the command shows its own progress


def _continued(parameters: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a stopped run, which those given now must not contradict."""
    before = stored.get("estimator") or {}
    for name, value in parameters.items():
        if stored and before.get(name) != value:
            raise ValueError(
                f"--resume continues with {name} = {before.get(name)!r}, but {value!r} was given; leave it out"
            )
    return {**before, **parameters}


def _with_defaults(parameters: dict[str, Any], data: Path) -> dict[str, Any]:
    """For convolutional networks, what nobody has said: a method that needs no dictionary, and the paper's mirroring.

    Faces are as likely turned left as right; letters are not.
    """
    if parameters.get("generator") != "conv":
        return parameters
    return {"method": usual_method("conv"), "mirrored": is_celeba(data), **parameters}


def _loaded(run: Path, data: Path, key: str | None, device: str) -> tuple[SparseCoder, Rows]:
    """A trained coder and rows that it can code."""
    coder = SparseCoder.load(run, device=device)
    rows = _read(data, key)
    check_kind(rows, data, coder.n_features_in_, run)
    return coder, rows


def _train(
    coder: SparseCoder,
    rows: Rows,
    standardiser: Standardiser,
    run: RunFolder,
    checkpoint_every: int = 1000,
    resume: bool = False,
    logs: Sequence[str] = (),
    team: Team = Alone(),
) -> float:
    """How long it took, the last fit of the dictionary and the calibration included; 0 for those that keep no log."""
    found = team.handed_out(lambda: run.last_checkpoint() if resume else None)
    start = Checkpoint(*found) if found else None
    log = _opened(run, rows, start.step if start else 0, logs) if team.leads else None
    watching = [log] if log is not None else []

    def went_back(rollback: Rollback) -> None:
        if log is not None:
            log.begin_again(_opened(run, rows, rollback.step, logs))

    try:
        bar = progress_shown(team.leads, standardiser.centred, coder.max_steps)
        with bar as shown, stop_on_interrupt() as stop:
            coder.fit_rows(
                rows, standardiser=standardiser, observers=[*watching, *shown],
                on_checkpoint=run.save_checkpoint if team.leads else None, checkpoint_every=checkpoint_every,
                resume=start, stop=stop, team=team, on_rollback=went_back,
            )  # fmt: skip
    except Diverged as error:
        if not team.leads:
            raise
        run.write_json("diverged.json", {"step": error.step, "cause": error.cause})
        good = [path for path in run.checkpoints() if path.stem < f"step-{error.step:09d}"]
        kept = f"the last good checkpoint is {good[0]}" if good else "no checkpoint had been written yet"
        raise Diverged(error.step, error.cause, "; ".join(filter(None, [error.left, kept]))) from error
    finally:
        if log is not None:
            log.close()
    return log.seconds if log is not None else 0.0


def _opened(run: RunFolder, rows: Rows, start: int, logs: Sequence[str]) -> Log:
    """The log of a run that begins at this step."""
    run.drop_metrics_after(start)
    run.forget("diverged.json")
    earlier, shape = run.metrics(), getattr(rows, "image_shape", None)
    files = [open_log(name, run.path, earlier, shape) for name in dict.fromkeys(logs)]
    return Log(run.append_metrics, files, seconds=seconds_of(earlier) or 0.0)


def _claim(run: RunFolder, config: dict[str, Any] | None) -> None:
    """The folder for this process alone: a new run's, or that of the run that goes on."""
    run.lock() if config is None else run.create(config)


def _read(data: Path, key: str | None) -> Any:
    with decoding_shown() as watch:
        return read_rows(data, key, watch)


def _npz(codes: sparse.csr_matrix) -> bytes:
    buffer = io.BytesIO()
    sparse.save_npz(buffer, codes)
    return buffer.getvalue()
