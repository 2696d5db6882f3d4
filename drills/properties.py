"""`SparseCoder` with random shapes, dtypes and settings: python -m drills.properties [--examples 500]

Whatever it is given, it either says in one sentence why not (ValueError, or Diverged for a schedule that cannot work),
or it learns, and then: codes are CSR of the right shape and dtype with finite values and no stored zeros, the same
every time; probabilities lie in [0, 1]; saved and loaded, it is the same coder.
"""

import argparse
import tempfile
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from softspike import SparseCoder
from softspike.methods import METHODS
from softspike.train import Diverged

__all__ = ["CASES", "check"]

_KINDS = ["normal", "heavy", "integers", "constant column", "duplicates", "tiny", "huge", "spoiled", "offset"]

CASES = st.fixed_dictionaries(
    {
        "n_samples": st.sampled_from([1, 2, 3, 5, 17, 60, 60, 130, 130]),
        "n_features": st.sampled_from([1, 2, 3, 7, 16, 90]),
        "dtype": st.sampled_from(["f2", "f4", "f8", "i1", "i4", "i8", "u1", "bool"]),
        "kind": st.sampled_from(_KINDS),
        "form": st.sampled_from(["array", "fortran", "strided", "tensor", "list"]),
        "seed": st.integers(0, 2**32 - 1),
        "parameters": st.fixed_dictionaries(
            {
                "n_components": st.sampled_from([None, 1, 2, 5, 24, 120]),
                "method": st.sampled_from(list(METHODS)),
                "max_steps": st.integers(1, 6),
                "batch_size": st.sampled_from([1, 2, 7, 64, 1000]),
                "n_samples": st.integers(1, 4),
                "encoder_steps": st.integers(1, 4),
                "positive": st.sampled_from([False, False, False, True]),
                "constant_features": st.sampled_from(["error", "keep", "keep"]),
            },
            optional={
                "sparsity": st.floats(0.001, 0.999),
                "n_active": st.floats(0.01, 6),
                "learning_rate": st.sampled_from([1e-6, 1e-3, 0.1, 10.0]),
                "beta": st.sampled_from([1e-4, 1.0]),
            },
        ),
    }
)


def data_of(case: dict[str, Any]) -> Any:
    """The data of a case, in its form."""
    random, shape = np.random.default_rng(case["seed"]), (case["n_samples"], case["n_features"])
    x = random.standard_cauchy(shape) if case["kind"] == "heavy" else random.standard_normal(shape)
    scale = {"integers": 50, "tiny": 1e-30, "huge": 1e30}.get(case["kind"], 1.0)
    x = x * scale + (1e4 if case["kind"] == "offset" else 0)
    if case["kind"] == "constant column":
        x[:, 0] = 3
    if case["kind"] == "duplicates":
        x = x[random.integers(0, max(len(x) // 4, 1), len(x))]
    if case["kind"] == "spoiled":
        x[random.integers(len(x)), random.integers(x.shape[1])] = random.choice([np.nan, np.inf, -np.inf])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = x.astype(case["dtype"])
    forms = {
        "array": lambda: x, "fortran": lambda: np.asfortranarray(x), "list": x.tolist,
        "strided": lambda: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2], "tensor": lambda: torch.from_numpy(x),
    }  # fmt: skip
    return forms[case["form"]]()


def check(case: dict[str, Any]) -> str:
    """One example; what became of it, in a word."""
    data = data_of(case)
    coder = SparseCoder(**case["parameters"], random_state=case["seed"] % 2**32, verbose=False, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            coder.fit(data)
        except ValueError as error:
            return "refused" if len(str(error)) > 20 and "\n" not in str(error).strip() else f"FAULT {error!r}"
        except Diverged:
            return "diverged"
    x = data.numpy() if isinstance(data, torch.Tensor) else np.asarray(data)
    codes = coder.transform(data)
    width = coder.coder_.generator.n_components
    assert codes.format == "csr"
    assert codes.shape == (len(x), width)
    assert codes.dtype == (np.float32 if x.dtype == np.float32 else np.float64), (codes.dtype, x.dtype)
    assert np.isfinite(codes.data).all()
    assert (codes.data != 0).all()
    if case["parameters"]["positive"]:
        assert (codes.data > 0).all()
    assert (codes != coder.transform(data)).nnz == 0
    chances = coder.activation_probability(data)
    assert chances.shape == codes.shape
    assert ((chances >= 0) & (chances <= 1)).all()
    assert np.isfinite(coder.inverse_transform(codes)).all()
    assert coder.components_.shape == (width, x.shape[1])
    assert np.isfinite(coder.components_).all()
    assert coder.score(data) <= 1
    with tempfile.TemporaryDirectory() as folder:
        coder.save(folder)
        assert (codes != SparseCoder.load(folder, device="cpu").transform(data)).nnz == 0
    return "learned"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=500)
    examples, outcomes, begun = parser.parse_args().examples, Counter[str](), time.monotonic()
    torch.set_num_threads(1)

    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate),
    )  # fmt: skip
    @given(CASES)
    def drill(case: dict[str, Any]) -> None:
        try:
            outcomes[check(case)] += 1
        except Exception as error:
            outcomes[f"FAULT {type(error).__name__}"] += 1
            print(f"{case}\n    {type(error).__name__}: {str(error)[:300]}", flush=True)

    drill()
    found = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"{sum(outcomes.values())} examples: {found} ({time.monotonic() - begun:.0f} s)")
    raise SystemExit(1 if any(outcome.startswith("FAULT") for outcome in outcomes) else 0)


if __name__ == "__main__":
    main()
