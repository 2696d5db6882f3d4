"""`SparseCoder`, the scikit-learn face of the library: learning, and using what was learned."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from softspike.choices import check_shares, precision_named
from softspike.data import ArrayRows, Rows, RunningMoments, StandardisedRows, Standardiser, check_rows
from softspike.data.error import dtype_error
from softspike.face.given import check_kind, checked_codes
from softspike.face.keeping import Kept
from softspike.face.ordinary import ordinary_torch
from softspike.face.parameters import seed_of
from softspike.face.seeing import Seen
from softspike.fitting import Checkpoint, Stream, fit_rows, pick_device, prepare
from softspike.fitting.offset import tell_of_offset
from softspike.fitting.several import Outcome, Start, best_of, fit_several
from softspike.generator import LinearGenerator
from softspike.inference import as_array, decode_csr
from softspike.metric import bounds, explained_share
from softspike.model import VariationalCoder
from softspike.report.progress import progress_shown
from softspike.train import Alone, Observer, Rollback, Team

__all__ = ["SparseCoder"]

_LARGE = 1e30


class SparseCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Kept, Seen):
    """Learns a dictionary, or a deep generator, and an encoder that turns data into codes with exact zeros.

    Parameters
    ----------
    n_components : number of components; None takes as many as there are features, and 256 for a deep generator.
    sparsity : target share of active components, in (0, 1); ignored by the dense methods, 'gaussian' and
        'laplacian', whose codes have no zeros.
    n_active : target mean count of active components; overrides `sparsity`.
    method : a name of `softspike.methods.METHODS`, a composed `Coder`, or a function
        from a `Plan` to a `Built` (a coder and its recipe).
    generator : 'dictionary' (x̂ = Az), or 'conv': convolutional networks for images in [0, 1], with any method of
        `softspike.methods.DEEP_METHODS`; or a `Networks` object.
    image_shape : (height, width[, channels]) of the images that rows are flattened from, in this order; None takes
        what a file says, or a square. Deep generators only.
    mirrored : turn each training image left to right with probability ½, anew in every epoch. Only for 'conv'.
    n_samples : posterior samples per input and step, for the methods that sample.
    beta : weight of the divergence against the mean squared error, for the methods that sample; None is 0.01.
    max_steps, batch_size, learning_rate : the training schedule; a rate of None is the method's own.
    positive : codes ≥ 0. Sums of parts start from 0, so data is scaled but not centred, and should have no offset of
        its own; autoencoders keep the mean as the bias of their decoder all the same.
    encoder_steps : depth of the unrolled encoder; more steps cost training time.
    correction_rounds : rounds in which the support that the encoder finds is corrected, 0 for none; more code better,
        and take longer.
    dictionary_refits : steps of least squares, at most, that fit the atoms to corrected codes after training, as long
        as rows kept aside are rebuilt better; 0 for none. These three are for the default method, and for composed
        ones that have its parts.
    n_init : starts, from `random_state` on; they train together on the same rows, in float32, and `fit` keeps the one
        that rebuilds held-out rows best. Without checkpoints.
    constant_features : 'error' refuses columns without variance, 'keep' lets them pass.
    device : 'auto' (a GPU where there is one), 'cpu' or 'cuda'.
    precision : 'auto', 'float32', 'bfloat16' or 'float16' networks in training; 'auto' is float32 but for deep
        generators on a GPU.
    verbose : True or False; None shows a progress bar on a terminal only.

    Attributes
    ----------
    components_ : (n_components, n_features) atoms in rows, in the units of the data. A deep generator has none: see
        `softspike.metric.estimated_dictionary` for its linear picture.
    mean_ : (n_features,) what is subtracted before coding: the mean, moved to where codes start by the last fit of the
        dictionary; 0 if `positive`, but for autoencoders.
    coder_ : the trained `torch.nn.Module`.
    init_errors_ : (n_init,) mean squared error of each start on held-out rows, in units of the data's variance;
        only where there are several.
    n_steps_, n_samples_seen_ : training steps done, and rows that mean and scale were taken from.

    Examples
    --------
    >>> import numpy as np
    >>> from softspike import SparseCoder
    >>> X = np.random.default_rng(0).standard_normal((200, 16))
    >>> coder = SparseCoder(n_components=32, sparsity=0.1, max_steps=20, random_state=0).fit(X)
    >>> coder.transform(X).shape
    (200, 32)
    """

    # ── learning ──

    def fit(self, X: Any, y: Any = None) -> "SparseCoder":
        """Learn from X (n_samples, n_features): numpy, torch, pandas or a memory map."""
        return self.fit_rows(self._validate(X, reset=True))

    @ordinary_torch()
    def fit_rows(
        self,
        rows: Rows,
        *,
        standardiser: Standardiser | None = None,
        observers: Sequence[Observer] = (),
        on_checkpoint: Callable[[int, dict[str, Tensor]], Any] | None = None,
        checkpoint_every: int = 1000,
        resume: Checkpoint | None = None,
        stop: Callable[[], bool] = lambda: False,
        team: Team = Alone(),
        on_rollback: Callable[[Rollback], object] = lambda rollback: None,
    ) -> "SparseCoder":
        """Learn from any source of rows, larger than memory if need be, with checkpoints if asked for.

        `standardiser` is what `check` returned for these rows; without it they are checked here. `stop` is asked after
        every step: where it says yes, a checkpoint is written and `softspike.train.Interrupted` raised. The processes
        of a `team` each call this. Where training diverges it goes back to the last checkpoint and on with a lower
        learning rate, up to three times, with a warning; `on_rollback` is told.
        """
        standardiser = self.check(rows) if standardiser is None else standardiser
        device = pick_device(self.device)
        self._drawn_shape, self._figures = getattr(rows, "image_shape", None), ""
        if self.n_init > 1:
            if on_checkpoint is not None or resume is not None or team.size > 1:
                raise ValueError(f"n_init is {self.n_init}, expected 1 with checkpoints or several processes")
            with progress_shown(self.verbose, standardiser.centred, self.max_steps) as shown:
                starts, watching = self.starts(rows.n_features), [*observers, *shown]
                outcomes = fit_several(rows, starts, standardiser, device=device, observers=watching)
                return self.adopt(outcomes, len(rows))
        with progress_shown(self.verbose, standardiser.centred, self.max_steps) as shown:
            fitted = fit_rows(
                rows, self._builder(), self._plan(rows.n_features), standardiser, seed=seed_of(self.random_state),
                device=device, observers=[*observers, *shown], on_checkpoint=on_checkpoint,
                checkpoint_every=checkpoint_every, resume=resume, stop=stop,
                precision=precision_named(self.precision, device), team=team, on_rollback=on_rollback,
            )  # fmt: skip
        self._set(fitted)
        self.n_steps_, self.n_samples_seen_ = self.max_steps, len(rows)
        return self

    def begin(self, X: Any) -> tuple[ArrayRows, Standardiser]:
        """The rows of X, checked, and what standardises them."""
        rows = self._validate(X, reset=True)
        return rows, self.check(rows)

    def starts(self, n_features: int) -> list[Start]:
        """What training begins from, one for each of `n_init` seeds."""
        seed = seed_of(self.random_state)
        return [Start(self._builder(), self._plan(n_features), seed + number) for number in range(self.n_init)]

    def adopt(self, outcomes: Sequence[Outcome], n_rows: int) -> "SparseCoder":
        """Become the best of what was trained from `starts`, on so many rows."""
        self._set(best_of(outcomes))
        self.n_steps_, self.n_samples_seen_ = self.max_steps, n_rows
        if len(outcomes) > 1:
            self.init_errors_ = np.array([outcome.error for outcome in outcomes])
        return self

    def check(self, rows: Rows) -> Standardiser:
        """Raise ValueError, in one sentence, where these parameters or these rows cannot be trained with. One pass."""
        self.n_features_in_, moments = rows.n_features, RunningMoments(rows.n_features)
        self.check_parameters(rows.n_features, getattr(rows, "image_shape", None))
        self._check_mirrored()
        if self._gives_shares:
            check_shares(rows)
            return Standardiser.identity(rows.n_features)
        check_rows(rows, min_samples=2, constant=self.constant_features, moments=moments)
        if not self._centred:
            tell_of_offset(moments, self._target_count(self._n_components(rows.n_features)))
        return Standardiser.from_moments(moments, centred=self._centred)

    @ordinary_torch()
    def partial_fit(self, X: Any, y: Any = None) -> "SparseCoder":
        """Learn from one more batch of a stream: one pass over X, a step per `batch_size` rows.

        `max_steps` is the horizon of the learning-rate schedule, as in `fit`. Mean and scale follow the stream; the
        sparsity is calibrated on its latest rows when codes are next asked for.
        """
        begun = hasattr(self, "coder_")
        rows = self._validate(X, reset=not begun)
        self.check_parameters(self.n_features_in_)
        self._check_mirrored()
        check_rows(rows, min_samples=1, constant="keep")
        if self._gives_shares:
            check_shares(rows)
        seed = seed_of(self.random_state)
        if not begun:
            identity, device = Standardiser.identity(rows.n_features), pick_device(self.device)
            precision = precision_named(self.precision, device)
            self._set(prepare(self._builder(), self._plan(rows.n_features), seed, device, identity, precision))
            self.n_steps_ = self.n_samples_seen_ = 0
        if self._stream is None:
            self._stream = Stream(
                self._fitted, self.target_active_, seed, self.n_steps_, self.n_samples_seen_, centred=self._centred
            )
        self._stream.learn(rows, self.batch_size)
        self.n_steps_, self.n_samples_seen_ = self._stream.step, self._stream.n_seen
        self._refresh()
        return self

    # ── using ──

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """The deterministic codes of X, CSR with exact zeros: float32 of float32 data, else float64.

        With `return_std`, the pair (codes, std): the standard deviation of every coefficient, (n_samples,
        n_components), such that code ± 1.645·std is a 90 % interval for the coefficients that are active in the code.
        """
        rows = self._ready(X)
        return self.inference_.codes_and_std(rows) if return_std else self.inference_.codes(rows)

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Data from codes (n_samples, n_components), sparse or dense: mean + Z·components, or through the network."""
        check_is_fitted(self, "coder_")
        codes: Any = Z if sparse.issparse(Z) else as_array(Z)
        if codes.dtype.kind not in "fiub":
            raise dtype_error(codes.dtype)
        if codes.ndim != 2 or codes.shape[1] != self._n_features_out:
            needed = f"(n_samples, {self._n_features_out})"
            raise ValueError(f"codes have shape {codes.shape}, expected {needed}; give what transform returned")
        if sparse.issparse(codes):
            codes = checked_codes(checked_codes(codes).tocsr())
        if not isinstance(self.coder_.generator, LinearGenerator):
            return self.inference_.decode(codes)
        dtype = np.dtype(codes.dtype if codes.dtype in (np.float32, np.float64) else np.float64)
        atoms = self.components_.astype(dtype)
        largest = np.abs(atoms).max(initial=0)
        unit = largest if largest > _LARGE else dtype.type(1)
        atoms = atoms / unit  # sums of large numbers may not fit where their total does
        rebuilt = (
            decode_csr(codes.astype(dtype, copy=False), atoms) if sparse.issparse(codes) else np.asarray(codes @ atoms)
        )
        rebuilt *= unit
        rebuilt += self.mean_.astype(dtype)
        return rebuilt

    def activation_probability(self, X: Any) -> np.ndarray:
        """P(zᵢ ≠ 0 | x), (n_samples, n_components), in closed form; of the default method calibrated by simulation.

        The paper's methods say what their posterior says, uncalibrated; autoencoders, which have none, |z|/max|z|, and
        FISTA 1 where z ≠ 0.
        """
        rows = self._ready(X)
        return self.inference_.activation_probability(rows)

    def dead_components(self, X: Any) -> np.ndarray:
        """The numbers of those components that are never active in the codes of X.

        X is the window: give all that was learned from, since a rare component is active once in thousands of rows.
        """
        rows = self._ready(X)
        return np.flatnonzero(self.inference_.uses(rows) == 0)

    def bound(self, X: Any, n_samples: int = 200) -> np.ndarray:
        """A lower bound on log p(x) of each row, in nats, (n,): log (1/K)·Σₖ p(x|zₖ)p(zₖ)/q(zₖ|x), K = `n_samples`.

        p is a density of X in its own units; a larger K makes the bound tighter. Of the law as it was trained: rounds
        of correction and calibrated probabilities are no part of it, and `dictionary_refits`, which fit atoms to codes,
        may lower it, for single rows by much. Draws follow `random_state` and the place of a row in X: the same row
        has the same value elsewhere only as far as K draws say.
        """
        rows, model, standardiser = self._ready(X), self.coder_, self.standardiser_
        if not isinstance(model, VariationalCoder):
            raise ValueError(f"method is {self.method!r}, which has no law of codes to bound by; use a variational one")
        if isinstance(n_samples, bool) or not (isinstance(n_samples, Integral) and n_samples >= 1):
            raise ValueError(f"n_samples is {n_samples!r}, expected a whole number of at least 1")
        standard, device = StandardisedRows(rows, standardiser), standardiser.mean.device
        found = bounds(model, standard, int(n_samples), seed_of(self.random_state), device)
        return (found - standardiser.log_volume).numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """Explained variance of X by its deterministic code, 1 − Σ‖x − x̂‖²/Σ‖x − x̄‖²; higher is better."""
        rows = self._ready(X)
        # In float64 before squaring: float32 squares of 1e-30 and of 1e+30 are 0 and infinity.
        x = rows.array.astype(np.float64, copy=False)
        residual = np.square(x - self.inverse_transform(self.inference_.codes(rows))).sum()
        return explained_share(float(residual), float(np.square(x - x.mean(0)).sum()))

    # ── inside ──

    def _validate(self, X: Any, reset: bool) -> ArrayRows:
        array = as_array(X) if isinstance(X, Tensor) else X
        if not sparse.issparse(array):
            check_kind(array)
        # Whether there are enough samples and all are finite, check_rows says in more detail.
        options: dict[str, Any] = {"ensure_all_finite": False, "ensure_min_samples": 0}
        return ArrayRows(validate_data(self, array, reset=reset, dtype=[np.float64, np.float32], **options))

    def _ready(self, X: Any) -> ArrayRows:
        check_is_fitted(self, "coder_")
        rows = self._validate(X, reset=False)
        check_rows(rows, min_samples=1, constant="keep")
        self._settle()
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
