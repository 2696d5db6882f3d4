"""What a finished run leaves besides its checkpoints: the model, its figures, its pictures."""

import torch

from softspike.data import Rows, StandardisedRows
from softspike.estimator import SparseCoder
from softspike.generator import LinearGenerator
from softspike.metric.sampled import Sampled, draws, sampled_errors
from softspike.model import VariationalCoder
from softspike.report.deep import save_estimated_dictionary, save_reconstructions
from softspike.report.figure import save_dictionary
from softspike.report.findings import Figures, measure_figures
from softspike.report.table import print_table, sampled_lines, summary_lines
from softspike.run import RunFolder

__all__ = ["figures_of", "finish", "sampled_of"]

_USAGE_ROWS = 2000


def finish(coder: SparseCoder, rows: Rows, run: RunFolder, what: str, seconds: float) -> Figures:
    """The model, its picture and its figures, after so many seconds of training."""
    config = run.config()
    run.save_model(coder.model_tensors())
    run.write_json("config.json", {**config, **coder.config(), "data": config["data"]})
    summary, rivals = figures = figures_of(coder, rows)
    sampled = sampled_of(coder, rows)
    known = {"target_active": coder.target_active_, "seconds": round(seconds, 3)}
    content = {"on": what, **summary._asdict(), "baselines": rivals._asdict(), **known}
    run.write_json("summary.json", content if sampled is None else {**content, "sampled": sampled._asdict()})
    lines = summary_lines(summary, coder.target_active_, rivals)
    if sampled is not None:
        _draw_deep(coder, rows, run)
        print_table(f"{run.path} on {what}", lines + sampled_lines(sampled))
        print(f"wrote {run.path}/model.safetensors, metrics.jsonl, summary.json, reconstructions.png, dictionary.png")
        return figures
    shape = config["data"].get("image_shape")
    usage = coder.activation_probability(rows.take(torch.arange(min(len(rows), _USAGE_ROWS))).numpy()).mean(0)
    save_dictionary(run.path / "dictionary.png", coder.components_, tuple(shape) if shape else None, usage)
    print_table(f"{run.path} on {what}", lines)
    print(f"wrote {run.path}/model.safetensors, metrics.jsonl, summary.json, dictionary.png")
    return figures


def figures_of(coder: SparseCoder, rows: Rows) -> Figures:
    return measure_figures(coder.coder_, StandardisedRows(rows, coder.standardiser_))


def sampled_of(coder: SparseCoder, rows: Rows) -> Sampled | None:
    """What draws from the posterior reach, for a generator that is no dictionary."""
    model = coder.coder_
    if isinstance(model.generator, LinearGenerator) or not isinstance(model, VariationalCoder):
        return None
    device = coder.standardiser_.mean.device
    return sampled_errors(model, StandardisedRows(rows, coder.standardiser_), coder.n_samples, device=device)


def _draw_deep(coder: SparseCoder, rows: Rows, run: RunFolder) -> None:
    """Reconstructions, and the dictionary that least squares reads from codes."""
    model, shape, device = coder.coder_, coder.image_shape_, coder.standardiser_.mean.device
    assert isinstance(model, VariationalCoder)
    first = next(draws(model, rows, coder.n_samples, device=device))
    save_reconstructions(run.path / "reconstructions.png", model, first, shape)
    codes = torch.from_numpy(coder.inference_.codes(rows).toarray())
    save_estimated_dictionary(run.path / "dictionary.png", rows.take(torch.arange(len(rows))), codes, shape)
