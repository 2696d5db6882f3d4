"""What the commands do: read, train, write, print."""

import difflib
import hashlib
import time
from pathlib import Path
from typing import Any

import torch
from scipy import sparse

from softspike.data import ArrayRows, Rows, StandardisedRows, TensorRows, photograph_patches, read_rows
from softspike.estimator import SparseCoder
from softspike.fitting import Checkpoint
from softspike.metric import baselines, summarise
from softspike.report.figure import save_dictionary
from softspike.report.progress import PlainLines, progress_bar
from softspike.report.table import print_table, summary_lines
from softspike.run import RunFolder, write_atomically
from softspike.train import Progress

__all__ = ["demo_job", "encode_job", "evaluate_job", "train_job"]

_BASELINE_ROWS, _SUMMARY_ROWS = 2000, 20_000


def demo_job(out: Path, steps: int | None, seed: int, device: str) -> None:
    """Whitened 16×16 patches of the embedded photographs → 256 components → a run folder."""
    print("cutting and whitening patches of the embedded photographs …", flush=True)
    patches, unseen = photograph_patches(80_000, 4000, size=16, seed=seed)
    parameters: dict[str, Any] = {"n_components": 256, "sparsity": 0.1, "random_state": seed, "device": device}
    if steps:
        parameters["max_steps"] = steps
    run = RunFolder(_free_folder(out))
    source = {"name": "embedded photographs", "image_shape": [16, 16]}
    coder = _train(SparseCoder(**parameters), ArrayRows(patches), run, source, resume=False)
    _finish(coder, ArrayRows(unseen), run, "unseen patches")


def train_job(data: Path, out: Path, parameters: dict[str, Any], device: str, key: str | None, resume: bool) -> None:
    """Train on a file, or go on with a run that stopped."""
    run = RunFolder(out)
    stored = run.config()["estimator"] if resume else {}
    for name in [n for n in parameters if resume and stored.get(n) != parameters[n]]:
        raise ValueError(
            f"--resume continues with {name} = {stored.get(name)!r}, but {parameters[name]!r} was given; leave it out"
        )
    coder = _coder({"random_state": 0, **stored, **parameters, "device": device})
    rows = read_rows(data, key)
    coder.check(rows)
    source = {"name": str(data), "key": key, "image_shape": rows.image_shape, "fingerprint": _fingerprint(rows)}
    if resume and run.config()["data"]["fingerprint"] != source["fingerprint"]:
        raise ValueError(f"{data} is not the data that {out} was trained on; --resume needs the same rows")
    coder = _train(coder, rows, run, source, resume)
    _finish(coder, _some(rows), run, "training rows")


def encode_job(run: Path, data: Path, out: Path, key: str | None, device: str) -> None:
    """Codes of a file as CSR."""
    coder = SparseCoder.load(run, device=device)
    rows = read_rows(data, key)
    _match(coder, rows, data)
    codes = coder.inference_.codes(rows)
    write_atomically(out, _npz(codes))
    share = codes.nnz / max(codes.shape[0] * codes.shape[1], 1)
    print(
        f"{out}: {codes.shape[0]} × {codes.shape[1]} codes, {codes.nnz / codes.shape[0]:.2f} active each ({share:.2%})"
    )


def evaluate_job(run: Path, data: Path, key: str | None, device: str) -> None:
    """A trained coder on a file."""
    coder = SparseCoder.load(run, device=device)
    rows = read_rows(data, key)
    _match(coder, rows, data)
    _, lines = _figures(coder, rows)
    print_table(f"{run} on {data}", lines)


# ── the steps they share ──


def _coder(parameters: dict[str, Any]) -> SparseCoder:
    known = SparseCoder().get_params()
    for name in parameters:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise ValueError(f"unknown configuration key {name!r}; did you mean {near!r}? Known: {', '.join(known)}")
    return SparseCoder(**parameters)


def _train(coder: SparseCoder, rows: Rows, run: RunFolder, source: dict[str, Any], resume: bool) -> SparseCoder:
    start = None
    if resume:
        run.lock()
        found = run.last_checkpoint()
        start = Checkpoint(*found) if found else None
        run.drop_metrics_after(start.step if start else 0)
    else:
        coder.n_features_in_ = rows.n_features
        run.create({**coder.config(), "data": source}).lock()
    coder.set_params(verbose=False)
    watchers = [_Log(run), *(progress_bar(None) or [PlainLines()])]
    return coder.fit_rows(rows, observers=watchers, on_checkpoint=run.save_checkpoint, resume=start)


def _finish(coder: SparseCoder, rows: Rows, run: RunFolder, what: str) -> None:
    """The model, its picture and its figures."""
    config = run.config()
    run.save_model(coder.model_tensors())
    run.write_json("config.json", {**config, **coder.config(), "data": config["data"]})
    summary, lines = _figures(coder, rows)
    run.write_json("summary.json", {"on": what, **summary})
    shape = config["data"].get("image_shape")
    usage = coder.activation_probability(rows.take(torch.arange(min(len(rows), 2000))).numpy()).mean(0)
    save_dictionary(run.path / "dictionary.png", coder.components_, tuple(shape) if shape else None, usage)
    print_table(f"{run.path} on {what}", lines)
    print(f"wrote {run.path}/model.safetensors, metrics.jsonl, summary.json, dictionary.png")


def _figures(coder: SparseCoder, rows: Rows) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    standard = StandardisedRows(rows, coder.standardiser_)
    device = coder.standardiser_.mean.device
    summary = summarise(coder.coder_, standard, device)
    few = standard.take(torch.arange(min(len(rows), _BASELINE_ROWS))).to(device)
    rivals = baselines(coder.coder_, few, summary.active)
    figures = {**summary._asdict(), "baselines": rivals._asdict(), "target_active": coder.target_active_}
    return figures, summary_lines(summary, coder.target_active_, rivals)


def _some(rows: Rows) -> Rows:
    if len(rows) <= _SUMMARY_ROWS:
        return rows
    return TensorRows(rows.take(torch.linspace(0, len(rows) - 1, _SUMMARY_ROWS).long()))


def _match(coder: SparseCoder, rows: Rows, data: Path) -> None:
    if rows.n_features != coder.n_features_in_:
        raise ValueError(f"{data} has {rows.n_features} features, the run was trained on {coder.n_features_in_}")


def _fingerprint(rows: Rows) -> str:
    """The size of the data and a hash of a few of its rows: enough to notice another file, cheap for any size."""
    few = rows.take(torch.linspace(0, len(rows) - 1, min(len(rows), 64)).long())
    return f"{len(rows)}x{rows.n_features}:{hashlib.sha256(few.numpy().tobytes()).hexdigest()[:16]}"


def _free_folder(path: Path) -> Path:
    """The path itself, or the first of path-2, path-3 … that holds no run yet."""
    number, candidate = 1, path
    while (candidate / "config.json").exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _npz(codes: sparse.csr_matrix) -> bytes:
    import io

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
