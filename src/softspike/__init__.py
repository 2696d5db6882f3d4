"""softspike: sparse codes with exact zeros, learned thresholds and closed-form probabilities.

    data → encoder → posterior → threshold → generator → objective → train → metric → report

The arrow is a package a stage; what stands beside it:

    along the arrow   prior, layers, schedule, kernels (fused paths), coder and model (the composition), autoencoder,
                      solver (FISTA, lasso, OMP, the correction of supports)
    after training    refit (a last fit of the dictionary), calibration (probabilities and intervals)
    for users         estimator (SparseCoder; its parts are in face, its training in fitting, its coding in inference),
                      sweeping, methods and choices (names), run and files (the run folder), cli and command, looking
    the paper         reproduce
    measuring speed   bench
    ground            disk, notice, visible

Shapes: B batch, J samples, D features, d components; codes are (J, B, d), samples first.
Public names: `SparseCoder` (the scikit-learn face), `sweep` (several of them) and the packages of the arrow.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softspike.estimator import SparseCoder
    from softspike.sweeping import sweep

__version__ = "0.1.0"
__all__ = ["SparseCoder", "__version__", "sweep"]


def __getattr__(name: str) -> Any:
    # Lazy, so that `softspike --help` does not wait for torch.
    if name == "SparseCoder":
        from softspike.estimator import SparseCoder

        return SparseCoder
    if name == "sweep":
        from softspike.sweeping import sweep

        return sweep
    raise AttributeError(f"module 'softspike' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
