"""`SparseCoder`, the scikit-learn face of the library. Strings become objects here and nowhere further in."""

import os
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from softspike import __version__
from softspike.data import ArrayRows, Rows, RunningMoments, Standardiser, TensorRows, check_rows
from softspike.fitting import Checkpoint, Fitted, fit_rows, pick_device, prepare, restore
from softspike.inference import Inference
from softspike.methods import Built, Plan, method_named
from softspike.parameters import check_parameters
from softspike.run import RunError, RunFolder
from softspike.train import Observer, Recipe, train

__all__ = ["SparseCoder"]


class SparseCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learns a dictionary and an encoder that turns data into codes with exact zeros.

    Parameters
    ----------
    n_components : number of dictionary atoms; None takes as many as there are features.
    sparsity : target share of active components, in (0, 1).
    n_active : target mean count of active components; overrides `sparsity`.
    method : a name of `softspike.methods.METHODS`, or a function from a `Plan` to a `Built` (a coder and its recipe).
    n_samples : posterior samples per input and step, for the methods that sample.
    max_steps, batch_size, learning_rate : the training schedule; a rate of None is the method's own.
    positive : codes ≥ 0.
    encoder_steps : depth of the unrolled encoder; more steps code better and cost more.
    constant_features : 'error' refuses columns without variance, 'keep' lets them pass.
    device : 'auto' (a GPU where there is one), 'cpu' or 'cuda'.
    verbose : True or False; None shows a progress bar on a terminal only.

    Attributes
    ----------
    components_ : (n_components, n_features) atoms in rows, in the units of the data.
    mean_ : (n_features,) what is subtracted before coding.
    coder_ : the trained `torch.nn.Module`.  n_steps_ : training steps done.

    Examples
    --------
    >>> import numpy as np
    >>> from softspike import SparseCoder
    >>> X = np.random.default_rng(0).standard_normal((200, 16))
    >>> coder = SparseCoder(n_components=32, sparsity=0.1, max_steps=20, random_state=0).fit(X)
    >>> coder.transform(X).shape
    (200, 32)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        sparsity: float = 0.1,
        n_active: float | None = None,
        method: str | Callable[[Plan], Built] = "hard-gaussian",
        n_samples: int = 20,
        max_steps: int = 4000,
        batch_size: int = 256,
        learning_rate: float | None = None,
        positive: bool = False,
        encoder_steps: int = 5,
        constant_features: str = "error",
        random_state: Any = None,
        device: str = "auto",
        verbose: bool | None = None,
    ):
        self.n_components = n_components
        self.sparsity = sparsity
        self.n_active = n_active
        self.method = method
        self.n_samples = n_samples
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.positive = positive
        self.encoder_steps = encoder_steps
        self.constant_features = constant_features
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # ── learning ──

    def fit(self, X: Any, y: Any = None) -> "SparseCoder":
        """Learn from X (n_samples, n_features): numpy, torch, pandas or a memory map."""
        rows = self._validate(X, reset=True)
        return self.fit_rows(rows)

    def fit_rows(
        self,
        rows: Rows,
        *,
        observers: Sequence[Observer] = (),
        on_checkpoint: Callable[[int, dict[str, Tensor]], Any] | None = None,
        resume: Checkpoint | None = None,
    ) -> "SparseCoder":
        """Learn from any source of rows, larger than memory if need be, with checkpoints if asked for."""
        self.check(rows)
        watching = [*observers, *self._progress()]
        self._set(
            fit_rows(
                rows, self._builder(), self._plan(rows.n_features), seed=self._seed(), device=pick_device(self.device),
                observers=watching, on_checkpoint=on_checkpoint, resume=resume,
            )
        )  # fmt: skip
        self.n_steps_ = self.max_steps
        return self

    def check(self, rows: Rows) -> None:
        """Raise ValueError, in one sentence, where these parameters or these rows cannot be trained with."""
        self.n_features_in_ = rows.n_features
        self._check_parameters()
        check_rows(rows, min_samples=2, constant=self.constant_features)

    def partial_fit(self, X: Any, y: Any = None) -> "SparseCoder":
        """Learn from one more batch of a stream: one pass over X, a step per `batch_size` rows.

        `max_steps` is the horizon of the learning-rate schedule, as in `fit`; mean and scale follow the stream.
        """
        first = not hasattr(self, "coder_")
        rows = self._validate(X, reset=first)
        self._check_parameters()
        check_rows(rows, min_samples=1, constant="keep")
        if first:
            self._moments, self._stream_seed = RunningMoments(rows.n_features), self._seed()
            identity = Standardiser.identity(rows.n_features)
            device = pick_device(self.device)
            self._set(prepare(self._builder(), self._plan(rows.n_features), self._stream_seed, device, identity))
            self.n_steps_ = 0
        for begin in range(0, len(rows), self.batch_size):
            self._one_step(rows.take(torch.arange(begin, min(begin + self.batch_size, len(rows)))))
        self._refresh()
        return self

    def _one_step(self, batch: Tensor) -> None:
        self._moments.update(batch)
        self.standardiser_.load_state_dict(Standardiser.from_moments(self._moments).state_dict())
        device = self.standardiser_.mean.device
        x = self.standardiser_(batch.to(device))
        # The cut follows the stream, on rows not yet learned from, with a memory of at most fifty batches.
        self.coder_.calibrate(x, self.target_active_, pull=max(1 / (self.n_steps_ + 1), 0.02))
        one = _single_step(self._fitted.recipe, self.n_steps_, len(x))
        train(
            self.coder_, TensorRows(x), one, seed=self._stream_seed, device=device,
            optimizer=self._fitted.optimizer, start=self.n_steps_,
        )  # fmt: skip
        self.n_steps_ += 1

    # ── using ──

    def transform(self, X: Any) -> sparse.csr_matrix:
        """The deterministic codes of X, CSR with exact zeros, in the precision of X."""
        return self.inference_.codes(self._ready(X))

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Data from codes (n_samples, n_components), sparse or dense: mean + Z·components."""
        check_is_fitted(self, "components_")
        if Z.shape[-1] != len(self.components_):
            raise ValueError(f"codes have shape {Z.shape}, expected (n_samples, {len(self.components_)})")
        codes = Z.detach().cpu().numpy() if isinstance(Z, Tensor) else Z
        dtype = codes.dtype if codes.dtype in (np.float32, np.float64) else np.float64
        return np.asarray(codes @ self.components_.astype(dtype)) + self.mean_.astype(dtype)

    def activation_probability(self, X: Any) -> np.ndarray:
        """P(zᵢ ≠ 0 | x), closed form, (n_samples, n_components)."""
        return self.inference_.activation_probability(self._ready(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Explained variance of X by its deterministic code, 1 − Σ‖x − x̂‖²/Σ‖x − x̄‖²; higher is better."""
        rows = self._ready(X)
        x = rows.array
        residual = x - self.inverse_transform(self.inference_.codes(rows))
        return float(1 - np.square(residual).sum() / np.square(x - x.mean(0)).sum())

    # ── keeping ──

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write config.json and model.safetensors into a folder."""
        check_is_fitted(self, "components_")
        run = RunFolder(path)
        run.path.mkdir(parents=True, exist_ok=True)
        run.write_json("config.json", self.config())
        run.save_model(self.model_tensors())

    def model_tensors(self) -> dict[str, Tensor]:
        """The trained model as named tensors, without the optimiser's."""
        return {name: value for name, value in self._fitted.tensors().items() if not name.startswith("optimizer.")}

    def config(self) -> dict[str, Any]:
        """What `save` writes beside the tensors."""
        parameters = self.get_params(deep=False)
        if not isinstance(self.method, str):
            raise ValueError("a composed model cannot be saved by name; save coder_.state_dict() and compose it again")
        seed = self.random_state if isinstance(self.random_state, Integral | None) else None
        names = list(getattr(self, "feature_names_in_", [])) or None
        return {
            "format": 1, "softspike": __version__, "estimator": {**parameters, "random_state": seed},
            "n_features": getattr(self, "n_features_in_", None), "feature_names": names,
            "n_steps": getattr(self, "n_steps_", 0),
        }  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "auto") -> "SparseCoder":
        """A coder from a folder written by `save` or by `softspike train`."""
        run = RunFolder(path)
        config, tensors = run.config(), run.load_model()
        try:
            coder = cls(**{**config["estimator"], "device": device})
            coder.n_features_in_ = int(config["n_features"])
            if config.get("feature_names"):
                coder.feature_names_in_ = np.asarray(config["feature_names"], dtype=object)
            coder._check_parameters()
            identity = Standardiser.identity(coder.n_features_in_)
            fitted = prepare(coder._builder(), coder._plan(coder.n_features_in_), 0, pick_device(device), identity)
            restore(fitted, tensors)
        except (KeyError, TypeError, RuntimeError) as error:
            raise RunError(
                f"{run.path} does not describe a SparseCoder ({error}); was it written by another version?"
            ) from error
        coder._set(fitted)
        coder.n_steps_ = int(config.get("n_steps", 0))
        return coder

    # ── inside ──

    def _validate(self, X: Any, reset: bool) -> ArrayRows:
        array = X.detach().cpu().numpy() if isinstance(X, Tensor) else X
        checked = validate_data(
            self,
            array,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=0 if not reset else 1,
        )
        return ArrayRows(checked)

    def _ready(self, X: Any) -> ArrayRows:
        check_is_fitted(self, "components_")
        rows = self._validate(X, reset=False)
        check_rows(rows, min_samples=1, constant="keep")
        return rows

    def _set(self, fitted: Fitted) -> None:
        self._fitted = fitted
        self.coder_, self.standardiser_ = fitted.coder, fitted.standardiser
        self.target_active_ = self._target_count()
        self._refresh()

    def _refresh(self) -> None:
        """Attributes that mirror the model's tensors."""
        self.inference_ = Inference(self.coder_, self.standardiser_)
        atoms, scale = self.coder_.generator.atoms.detach(), self.standardiser_.scale
        self.components_ = (atoms * (scale[:, None] if scale.ndim else scale)).T.cpu().numpy()
        self.mean_ = self.standardiser_.mean.cpu().numpy().copy()

    def _plan(self, n_features: int) -> Plan:
        d = self.n_components or n_features
        return Plan(
            n_features, d, self._target_count(d) / d, self.max_steps, self.batch_size, self.n_samples,
            self.learning_rate, self.positive,
        )  # fmt: skip

    def _target_count(self, n_components: int | None = None) -> float:
        d = n_components or self.n_components or self.n_features_in_
        return float(self.n_active) if self.n_active is not None else self.sparsity * d

    def _builder(self) -> Callable[[Plan], Built]:
        return method_named(self.method) if isinstance(self.method, str) else self.method

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _progress(self) -> list[Observer]:
        from softspike.report.progress import progress_bar

        return progress_bar(self.verbose)

    def _check_parameters(self) -> None:
        check_parameters(
            self.get_params(deep=False), self.n_components if self.n_components is not None else self.n_features_in_
        )
        self._builder()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def _single_step(recipe: Recipe, step: int, n_rows: int) -> Recipe:
    """The recipe cut down to one step that takes all rows; its schedules keep their horizon."""
    from dataclasses import replace

    return replace(recipe, n_steps=step + 1, batch_size=n_rows, log_every=50, save_every=10**9)
