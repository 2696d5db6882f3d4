"""The parameters of `SparseCoder`, and the objects that they stand for."""

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.base import BaseEstimator

from softspike.choices import check_generator, image_shape_of, networks_named, precision_named
from softspike.coder import Coder
from softspike.face.parameters import check_parameters
from softspike.fitting import pick_device
from softspike.methods import AUTOENCODERS, Built, Networks, Plan, composed, method_named

__all__ = ["Settings"]

_DEEP_COMPONENTS = 256


class Settings(BaseEstimator):
    """Strings become objects here and nowhere further in."""

    _image_shape: tuple[int, ...] | None

    def __init__(
        self,
        n_components: int | None = None,
        *,
        sparsity: float = 0.1,
        n_active: float | None = None,
        method: str | Coder | Callable[[Plan], Built] = "hard-gaussian",
        generator: str | Networks = "dictionary",
        image_shape: Sequence[int] | None = None,
        mirrored: bool = False,
        n_samples: int = 20,
        beta: float | None = None,
        max_steps: int = 3000,
        batch_size: int = 256,
        learning_rate: float | None = None,
        positive: bool = False,
        encoder_steps: int = 5,
        correction_rounds: int = 20,
        dictionary_refits: int = 200,
        n_init: int = 1,
        constant_features: str = "error",
        random_state: Any = None,
        device: str = "auto",
        precision: str = "auto",
        verbose: bool | None = None,
    ):
        self.n_components = n_components
        self.sparsity = sparsity
        self.n_active = n_active
        self.method = method
        self.generator = generator
        self.image_shape = image_shape
        self.mirrored = mirrored
        self.n_samples = n_samples
        self.beta = beta
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.positive = positive
        self.encoder_steps = encoder_steps
        self.correction_rounds = correction_rounds
        self.dictionary_refits = dictionary_refits
        self.n_init = n_init
        self.constant_features = constant_features
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.verbose = verbose

    def check_parameters(self, n_features: int, stored_shape: Sequence[int] | None = None) -> None:
        """Raise ValueError, in one sentence, for the first parameter that cannot be used with so many features."""
        check_parameters(self.get_params(deep=False), self._n_components(n_features), n_features)
        precision_named(self.precision, pick_device(self.device))
        if self.n_init > 1 and self.precision not in ("auto", "float32"):
            raise ValueError(f"n_init is {self.n_init} and precision {self.precision!r}, expected 'auto' or 'float32'")
        if self.n_init > 1 and isinstance(self.method, Coder):
            raise ValueError(
                f"n_init is {self.n_init}, expected 1 for a composed model: it has the weights it starts from"
            )
        check_generator(self.generator)
        self._builder()
        self._image_shape = (
            image_shape_of(n_features, self.image_shape, stored_shape) if self.generator == "conv" else None
        )
        self._networks()
        if self._gives_shares and self.batch_size < 2:
            raise ValueError("batch_size is 1, expected at least 2 for batch normalisation")

    def _check_mirrored(self) -> None:
        """Apart from the other checks: it is about training, and a trained coder may be loaded all the same."""
        if self.mirrored and self.generator != "conv":
            given = self.generator if isinstance(self.generator, str) else type(self.generator).__name__
            raise ValueError(
                f"mirrored is True and generator {given!r}, expected 'conv' to mirror images; leave it out"
            )

    def _plan(self, n_features: int) -> Plan:
        d = self._n_components(n_features)
        return Plan(
            n_features, d, activity=self._target_count(d) / d, n_steps=self.max_steps, batch_size=self.batch_size,
            n_samples=self.n_samples, learning_rate=self.learning_rate, positive=self.positive,
            encoder_steps=self.encoder_steps, correction_rounds=self.correction_rounds,
            dictionary_refits=self.dictionary_refits, beta=1e-2 if self.beta is None else self.beta,
            networks=self._networks(),
        )  # fmt: skip

    def _n_components(self, n_features: int) -> int:
        if self.n_components is not None:
            return self.n_components
        return n_features if self.generator == "dictionary" else _DEEP_COMPONENTS

    def _networks(self) -> Networks | None:
        return networks_named(self.generator, self._image_shape, self.mirrored)

    @property
    def _gives_shares(self) -> bool:
        """Whether data must lie in [0, 1] and is not standardised."""
        if isinstance(self.method, Coder):
            return self.method.generator.gives_shares
        return self.generator.gives_shares if isinstance(self.generator, Networks) else self.generator == "conv"

    @property
    def _centred(self) -> bool:
        """Whether codes are of rows less their mean."""
        return not self.positive or self.method in AUTOENCODERS

    def _target_count(self, n_components: int) -> float:
        return float(self.n_active) if self.n_active is not None else self.sparsity * n_components

    def _builder(self) -> Callable[[Plan], Built]:
        if isinstance(self.method, Coder):
            return composed(self.method)
        if callable(self.method):
            return self.method
        return method_named(str(self.method), self.positive, deep=self.generator != "dictionary")
