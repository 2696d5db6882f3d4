"""Does bfloat16 on a CPU move quality? The paper's model trained in both precisions, judged on unseen patches.

    python -m benchmarks.precision IMAGES.npy [-o speed-precision.json] [--steps 3000] [--seeds 3] [--samples 20]

Olshausen–Field patches, thresholded Laplacian, MLP encoder, best of J, the published recipe compressed into so many
steps, by the same loop. The loss is misfit + β·KL, the mean over 2,000 unseen patches and as many draws for both.
"""

import argparse
import json
from pathlib import Path

import torch

from softspike.bench.job import machine
from softspike.choices import precision_named
from softspike.data import TensorRows, olshausen_patches
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf
from softspike.train import train

UNSEEN, DRAWS = 2000, 20


def loss_of(rows: TensorRows, unseen: torch.Tensor, precision: str, steps: int, seed: int, n_samples: int) -> float:
    study = Study(n_steps=steps)
    coder, recipe = build_published(PUBLISHED["thresholded-laplacian"], study, SCRIPTS, BestOf(n_samples), seed=seed)
    train(coder, rows, recipe, seed=seed, precision=precision_named(precision, torch.device("cpu")))
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        losses = [coder.loss(unseen, steps, random).total for _ in range(DRAWS)]
    return float(torch.stack(losses).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path, help="Olshausen and Field's, .mat or .npy")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=20, help="J")
    options = parser.parse_args()
    train_part, valid = (torch.from_numpy(part) for part in olshausen_patches(options.images, 80_000, UNSEEN))
    losses: dict[str, list[float]] = {}
    for precision in ("float32", "bfloat16"):
        for seed in range(options.seeds):
            found = loss_of(TensorRows(train_part), valid, precision, options.steps, seed, options.samples)
            losses.setdefault(precision, []).append(found)
            print(f"{precision}, seed {seed}: {found:.4f}", flush=True)
    if options.output is not None:
        about = {"machine": machine(), "steps": options.steps, "J": options.samples}
        options.output.write_text(json.dumps({**about, "losses": losses}, indent=1))


if __name__ == "__main__":
    main()
