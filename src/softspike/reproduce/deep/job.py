"""What `softspike reproduce fashion-mnist` and `celeba` do: train and measure the cells that are missing."""

import time
from typing import Any

import torch

from softspike.choices import precision_named
from softspike.fitting import pick_device
from softspike.model import VariationalCoder
from softspike.report.progress import progress_shown
from softspike.reproduce.deep.asked import DeepOptions
from softspike.reproduce.deep.cell import DeepCell, cells_of
from softspike.reproduce.deep.features import Features, compared_by, features_of
from softspike.reproduce.deep.images import Images, load_images
from softspike.reproduce.deep.measure import draw, measure
from softspike.reproduce.deep.report import write_results
from softspike.reproduce.deep.setting import DeepSetting
from softspike.reproduce.deep.store import DeepStore
from softspike.reproduce.limit import Limit, OutOfTime
from softspike.reproduce.provenance import provenance
from softspike.train import Diverged, Precision, automatic_precision, train

__all__ = ["deep_job"]


def deep_job(name: str, options: DeepOptions) -> None:
    """Finished cells are never trained again; a second process on the same folder takes other cells."""
    setting, limit, device = options.setting(name), Limit(options.limit_minutes), pick_device(options.device)
    cells, precision = cells_of(setting, options.asked(setting)), precision_named(options.precision, device)
    images = load_images(setting, options.data, device)
    label, store = setting.label(len(images.train), len(images.test)), DeepStore(options.out)
    print(label, flush=True)
    store.open(setting.plain(), label, images.fingerprint, compared_by(options.inception))
    features = features_of(setting, images, store, options.inception, device)
    print(f"{features.name}: {features.note}", flush=True)
    try:
        for number, cell in enumerate(cells, start=1):
            with store.claimed(cell.name) as ours:
                if ours:
                    print(f"[{number} of {len(cells)}] {cell.name}", flush=True)
                    _work(cell, setting, images, features, store, device, precision, limit, options.keep_models)
    except OutOfTime:
        write_results(store)
        left = sum(not store.done(cell.name) for cell in cells)
        raise RuntimeError(
            f"stopped at the limit of {options.limit_minutes:g} minutes: {left} of {len(cells)} cells are missing; run "
            "the same command again to go on"
        ) from None
    write_results(store)


def _work(
    cell: DeepCell,
    setting: DeepSetting,
    images: Images,
    features: Features,
    store: DeepStore,
    device: torch.device,
    precision: Precision | None,
    limit: Limit,
    keep_model: bool,
) -> None:
    """Train, measure, record."""
    limit.check()
    began = time.monotonic()
    model, recipe = cell.build(setting, len(images.train))
    assert isinstance(model, VariationalCoder)
    own = automatic_precision(model.generator, device) if precision is None else precision
    diverged = None
    try:
        with progress_shown(True) as shown:
            train(model.to(device), images.train, recipe, seed=cell.seed, device=device, observers=shown, precision=own)
    except Diverged as error:  # that is a result, too
        diverged = {"step": error.step, "cause": error.cause}
    trained = time.monotonic() - began
    figures, pictures = None, {}
    if diverged is None:
        figures = measure(model, images, setting.n_samples, cell.share, features, device)
        if (cell.n_components, cell.share) == (setting.middle, setting.share):
            pictures = draw(model, images, setting.n_samples, device)
        print(f"    error of the best of {setting.n_samples}: {figures['error']['best']:.5f}", flush=True)
    if keep_model:
        store.save_tensors(f"models/{cell.name}", model.state_dict())
    story: dict[str, Any] = {
        "epochs": setting.epochs, "steps": recipe.n_steps, "seconds": round(trained, 1), "diverged": diverged,
        "precision": type(own).__name__, "parameters": sum(p.numel() for p in model.parameters()),
        **provenance(device),
    }  # fmt: skip
    described = {"method": cell.method, "n_components": cell.n_components, "share": cell.share, "seed": cell.seed}
    named = {**described, "conventions": cell.variant.name, "set": setting.name}
    store.record(cell.name, {"cell": named, "training": story, "figures": figures}, pictures)
    limit.learn(1, time.monotonic() - began)
