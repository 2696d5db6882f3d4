"""What optimisations of the best of J samples on a CPU are worth: each switched off alone, in one run.

    python -m benchmarks.cpu_ablation [-o results.json] [--threads 2] [--repeats 9] [--wait 20]

The paper's model as in `benchmarks.best_of`, J = 20. All variants take turns; a figure is the time of a step without
the optimisation over that of the step with it, round by round: the median, the least and the most of them, and the
median in processor time. The row that switches nothing off says how far from 1 figures are by chance.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn.functional import linear

from benchmarks.best_of import in_rounds
from benchmarks.best_of_steps import Run, stepper
from softspike.bench.job import machine
from softspike.objective import BestOf
from softspike.train.descent import AtTheEnd

Patches = Sequence[tuple[str, Callable[..., Any]]]


class Switch(NamedTuple):
    """How one optimisation is switched off: what stands in for what, and the variant that has it and nothing else."""

    off: Patches
    beside: str = "as it is"


def product_plainly(x: Tensor, weight: Tensor, bias: Tensor | None, after: str, *_: Any) -> Tensor:
    """`layers.affine` without oneDNN's joined product."""
    y = linear(x, weight, bias)
    return y.relu_() if after == "relu" else y


def scales_plainly(raw: Tensor, power: float, omega: float, limit: float) -> tuple[Tensor, Tensor]:
    """`kernels.cpu.heads.scales_of`, operation by operation."""
    settled = (power * raw.clamp(-limit, limit)).exp()
    return settled, omega * settled


def head_slopes_plainly(
    by_codes: Tensor, noise: Tensor, codes: Tensor, kl_by_location: Tensor, kl_by_scale: Tensor, by_kl: Tensor,
    raw: Tensor, settled: Tensor, power: float, omega: float, limit: float, slopes: tuple[float, float],
) -> Tensor:  # fmt: skip
    """`kernels.cpu.heads.head_slopes_of`, operation by operation."""
    active = codes != 0
    g = torch.where(active, by_codes, slopes[1] * by_codes)
    by_location = torch.where(active, slopes[0] * g, g) + by_kl * kl_by_location
    by_log = (by_kl * kl_by_scale + omega * g * noise) * settled * power
    return torch.stack([by_location, by_log.masked_fill_(raw.abs() >= limit, 0.0)])


def relu_back_plainly(grad: Tensor, hidden: Tensor, by_bias: Tensor) -> None:
    """`kernels.cpu.relu.relu_back_`, operation by operation."""
    grad.copy_(torch.ops.aten.threshold_backward(grad, hidden, 0))
    torch.sum(grad, 0, out=by_bias)


AUTOGRAD: Patches = [("softspike.train.loop.direct", lambda one: False)]
SWITCHES = {
    "nothing": Switch([]),  # a second model: how far figures are from 1 by chance
    "gradients by autograd": Switch(AUTOGRAD),
    "samples searched in torch, four at a time": Switch(
        [*AUTOGRAD, ("softspike.objective.samples.takes", lambda *given: False)], beside="gradients by autograd"
    ),
    "scales, slopes and ReLU operation by operation": Switch(
        [
            ("softspike.kernels.cpu.heads.scales_of", scales_plainly),
            ("softspike.kernels.cpu.heads.head_slopes_of", head_slopes_plainly),
            ("softspike.kernels.cpu.relu.relu_back_", relu_back_plainly),
        ]
    ),
    "weights moved by one pass at the end": Switch([("softspike.train.direct.descent_of", AtTheEnd)]),
    "products, bias and ReLU by torch": Switch([("softspike.layers.affine._product", product_plainly)]),
}


def without(run: Run, off: Patches) -> Run:
    """The same with these switched off while it runs."""

    def patched() -> None:
        with ExitStack() as stack:
            for target, stand_in in off:
                stack.enter_context(patch(target, stand_in))
            run()

    return patched


def measure(n_samples: int, n_steps: int, repeats: int, patience: float) -> list[dict[str, Any]]:
    """One row for each switch."""
    runs = {"as it is": stepper(BestOf(n_samples), n_steps)}
    for name, switch in SWITCHES.items():
        runs[name] = without(stepper(BestOf(n_samples), n_steps), switch.off)
    took, rows = in_rounds(runs, repeats, patience), []
    for name, switch in SWITCHES.items():
        wall, worked = ([a[k] / b[k] for a, b in zip(took[name], took[switch.beside], strict=True)] for k in (0, 1))
        row = {"off": name, "beside": switch.beside, "times": median(wall), "least": min(wall), "most": max(wall)}
        seconds = {variant: [turn[0] / n_steps for turn in took[variant]] for variant in (name, switch.beside)}
        rows.append({**row, "processor": median(worked), "seconds": seconds})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, default=30, help="of a turn")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for a calm machine before a round")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = measure(options.samples, options.steps, options.repeats, options.wait)
    print("| switched off | beside | times as long | range | processor time |\n| --- | --- | ---: | ---: | ---: |")
    for row in rows:
        print(
            f"| {row['off']} | {row['beside']} | {row['times']:.2f} | {row['least']:.2f}–{row['most']:.2f} "
            f"| {row['processor']:.2f} |"
        )
    if options.output is not None:
        about = {**machine(), "threads": options.threads}
        content = {"machine": about, "J": options.samples, "steps": options.steps, "repeats": options.repeats}
        options.output.write_text(json.dumps({**content, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
