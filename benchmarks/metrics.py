"""Time and peak memory of every measure, each in a process of its own: python -m benchmarks.metrics

At the size of the paper's study, 16,000 codes of 256 components, no measure may take more than 2 GB. Multi-information
is measured at 100,000 × 4,096 as well, where it may take a minute; making those codes is not counted.
"""

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from softspike.data import TensorRows
from softspike.methods.published import PUBLISHED, build_published
from softspike.metric import (
    estimated_dictionary,
    feature_collapse,
    gaussian_total_correlation,
    gradient_snr,
    jaccard_index,
    matched_solvers,
    mean_bound,
    multi_information,
    point_biserial,
    prior_codes,
    published_loss,
)
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.report.table import print_table

LARGE = (100_000, 4096)


def sparse(n: int, d: int) -> torch.Tensor:
    """(n, d) normal values, 9 in 10 of them exactly 0."""
    z = torch.from_numpy(np.random.default_rng(0).standard_normal((n, d), dtype=np.float32))
    return z.mul_(z.abs() > 1.645)


def coder() -> VariationalCoder:
    built = build_published(PUBLISHED["thresholded-laplacian"], objective=BestOf(20)).coder
    assert isinstance(built, VariationalCoder)
    return built


def snr(x: torch.Tensor) -> Any:
    model = coder()
    return gradient_snr(lambda _: model.loss(x[:100], 240_000).total, model.parameter_groups(), n_passes=50)


def consistency(z: torch.Tensor) -> Any:
    return [jaccard_index(torch.stack([part.roll(j, 0) for j in range(20)])).mean() for part in z.split(800)]


Measure = Callable[[torch.Tensor, torch.Tensor], Any]
MEASURES: dict[str, tuple[tuple[int, int], Measure]] = {
    "published loss": ((16_000, 256), lambda x, z: published_loss(x, torch.eye(256), z)),
    "multi-information": ((16_000, 256), lambda x, z: multi_information(z)),
    "total correlation": ((16_000, 256), lambda x, z: gaussian_total_correlation(z)),
    "codes from the prior": ((16_000, 256), lambda x, z: prior_codes(coder(), 16_000)),
    "Jaccard index of 20 draws": ((16_000, 256), lambda x, z: consistency(z)),
    "point-biserial": ((16_000, 256), lambda x, z: point_biserial(x[:, 0] > 0, z)),
    "collapse": ((16_000, 256), lambda x, z: feature_collapse(z)),
    "estimated dictionary": ((16_000, 256), estimated_dictionary),
    "OMP and FISTA at 26 active": ((2_000, 256), lambda x, z: matched_solvers(torch.eye(256), x, 26.0)),
    "gradient SNR of 50 passes": ((100, 256), lambda x, z: snr(x)),
    "bound of 200 draws": ((16_000, 256), lambda x, z: mean_bound(coder(), TensorRows(x), 200)),
    "multi-information of large codes": (LARGE, lambda x, z: multi_information(z)),
}


def run(name: str, threads: int, pipe: Any) -> None:
    torch.set_num_threads(threads)
    (n, d), measure = MEASURES[name]
    codes, x = sparse(n, d), torch.randn(min(n, 16_000), 256)
    begun = time.perf_counter()
    measure(x, codes)
    pipe.send((time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("measures", nargs="*", default=list(MEASURES), help=f"of {', '.join(MEASURES)}")
    given = parser.parse_args()
    for name in given.measures:
        if name not in MEASURES:
            parser.error(f"{name!r} is no measure, expected one of: {', '.join(MEASURES)}")
    lines, context = [], multiprocessing.get_context("spawn")
    for name in given.measures:
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=run, args=(name, given.threads, sender))
        child.start()
        sender.close()  # of the two ends of the pipe: a child that fails closes the last one
        try:
            seconds, gigabytes = receiver.recv()
        except EOFError:
            raise SystemExit(f"{name} ended without a figure; what went wrong stands above") from None
        child.join()
        size = "{:,} × {:,}".format(*MEASURES[name][0])
        lines.append((name, f"{seconds:.1f} s", f"{size}; peak memory of the process {gigabytes:.2f} GB"))
    print_table(f"measures, {given.threads} threads", lines)


if __name__ == "__main__":
    main()
