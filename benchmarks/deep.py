"""A training step of the deep models beside a straightforward loop, in one run: python -m benchmarks.deep --device cuda

The straightforward loop differentiates all J samples, keeps images in NCHW and runs in the same precision; ours scores
the J samples without gradient and differentiates the winner, channels-last. Both take their batches from uint8 images
on the device, in turns of some steps, so that whatever else the machine does falls on both.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.deep_bare import Bare, NetSetting, copy_weights
from benchmarks.gpu import gpu_name
from softspike.data.device import DevicePixels
from softspike.methods import ConvNetworks, Plan, build, method_named
from softspike.report.table import print_table
from softspike.reproduce.provenance import provenance
from softspike.train import BFloat16, FullPrecision, Precision, batch_rows, step_random, train
from softspike.train.captured import WORTH

NETS = {
    "fashion-mnist": NetSetting("fashion-mnist", (28, 28, 1), 256, 20, 1e-2, target_ms=5.0),
    "celeba": NetSetting("celeba", (64, 64, 3), 512, 10, 1e-3, target_ms=9.0),
    "tiny": NetSetting("tiny", (8, 8, 1), 6, 3, 1e-2),
}
Turn = Callable[[int, int], None]  # does the steps from … to …


class Sides(NamedTuple):
    ours: Turn
    straightforward: Turn


def sides(
    setting: NetSetting, batch: int, device: torch.device, precision: Precision, n_images: int = 4096,
    captured: bool = True,
) -> Sides:  # fmt: skip
    """Both loops from the same weights, on the same images."""
    size, _, channels = setting.image_shape
    plan = Plan(
        size * size * channels, setting.n_components, 0.1, 10**6, batch, setting.n_samples, beta=setting.beta,
        networks=ConvNetworks(setting.image_shape),
    )  # fmt: skip
    coder, recipe = build(method_named("thresholded-gaussian"), plan, 0)
    lowered = torch.bfloat16 if isinstance(precision, BFloat16) else None
    bare = Bare(setting, device, lowered)
    copy_weights(bare, coder.to(device))
    random = np.random.default_rng(0)
    shape = (n_images, size, size, channels)
    images = torch.from_numpy(random.integers(0, 256, shape, dtype=np.uint8)).to(device)
    rows, optimizer = DevicePixels(images), recipe.build(coder.parameter_groups())
    upright = images.permute(0, 3, 1, 2).contiguous()

    def ours(first: int, last: int) -> None:
        quiet = replace(recipe, n_steps=last, log_every=2**62, save_every=2**62)
        train(
            coder, rows, quiet, device=device, optimizer=optimizer, start=first, precision=precision, captured=captured
        )

    def straightforward(first: int, last: int) -> None:
        bare.parts.train()
        for step in range(first, last):
            chosen = batch_rows(0, step, n_images, batch).to(device, torch.int64)
            x = upright[chosen].float() / 255
            shape = (setting.n_samples, batch, setting.n_components)
            bare.step(x, torch.randn(shape, generator=step_random(0, step, device), device=device))

    return Sides(ours, straightforward)


def measure(both: Sides, repeats: int, turn: int, device: torch.device) -> np.ndarray:
    """Milliseconds per step, (repeats, 2), after two turns to warm up; who goes first alternates.

    Ours takes turns ten times as long: each begins by recording the step, which a run of thousands does once.
    """
    times, lengths = np.empty((repeats + 2, 2)), (10 * turn, turn)
    for repeat in range(repeats + 2):
        for side in (0, 1) if repeat % 2 else (1, 0):
            _wait(device)
            began = time.perf_counter()
            both[side](repeat * lengths[side], (repeat + 1) * lengths[side])
            _wait(device)
            times[repeat, side] = (time.perf_counter() - began) / lengths[side] * 1e3
    return times[2:]


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def memory(both: Sides, device: torch.device) -> list[float]:
    """Peak gigabytes on the GPU while each side works, ours long enough to be recorded; 0 on a CPU."""
    if device.type != "cuda":
        return [0.0, 0.0]
    found = []
    for side, n_steps in zip(both, (2 * WORTH, 5), strict=True):
        torch.cuda.reset_peak_memory_stats(device)
        side(0, n_steps)
        torch.cuda.synchronize(device)
        found.append(torch.cuda.max_memory_allocated(device) / 2**30)
    return found


def line(setting: NetSetting, times: np.ndarray, peak: list[float]) -> tuple[str, str, str]:
    ours, theirs = np.median(times, axis=0)
    ratios = times[:, 1] / times[:, 0]
    low, high = np.quantile(ratios, [0.25, 0.75])
    target = f", target {setting.target_ms:g} ms" if setting.target_ms and torch.cuda.is_available() else ""
    figures = (
        f"ours {ours:.2f} ms{target}, straightforward {theirs:.2f} ms; half of the ratios in {low:.2f} to {high:.2f}; "
        f"peak memory {peak[0]:.2f} and {peak[1]:.2f} GiB"
    )
    return setting.name, f"{np.median(ratios):.2f} ×", figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], help="default: bfloat16 on a GPU")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument(
        "--turn", type=int, default=50, help="steps of the straightforward loop before ours takes its turn"
    )
    parser.add_argument("--unrecorded", action="store_true", help="launch our steps kernel by kernel, too")
    parser.add_argument("--json", type=Path, help="write the times here as well")
    parser.add_argument("nets", nargs="*", default=["fashion-mnist", "celeba"], help=f"of {', '.join(NETS)}")
    given = parser.parse_args()
    if torch.device(given.device).type == "cuda":
        gpu_name(parser)
    device = torch.device(given.device)
    name = given.precision or ("bfloat16" if device.type == "cuda" else "float32")
    precision = BFloat16() if name == "bfloat16" else FullPrecision()
    torch.backends.cudnn.benchmark = True  # for both
    lines, kept = [], {}
    for net in given.nets:
        both = sides(NETS[net], given.batch, device, precision, captured=not given.unrecorded)
        times = measure(both, given.repeats, given.turn, device)
        peak = memory(both, device)
        lines.append(line(NETS[net], times, peak))
        kept[net] = {"ours_ms": times[:, 0].tolist(), "straightforward_ms": times[:, 1].tolist(), "peak_gib": peak}
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print_table(f"a step, straightforward over ours, {name}, batch {given.batch}, {where} (target ≥ 2 ×)", lines)
    if given.json:
        about = {
            "device": where, "precision": name, "batch": given.batch, "turn": given.turn,
            "recorded": not given.unrecorded, "torch": torch.__version__, "commit": provenance(device)["commit"],
        }  # fmt: skip
        given.json.write_text(json.dumps({**about, **kept}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
