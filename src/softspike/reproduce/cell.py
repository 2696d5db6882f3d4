"""What is trained: a method, how it samples, whose conventions, which seed."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from softspike.methods.plan import Built
from softspike.methods.published import EQUATIONS, PUBLISHED, SCRIPTS, Builder, Conventions, Study, build_published
from softspike.objective import BestOf, ImportanceWeighted, MeanOf, Objective
from softspike.posterior import log_of_rate
from softspike.threshold import Subgradient

__all__ = [
    "BEST",
    "FISTA",
    "MEAN",
    "METHODS",
    "SAMPLINGS",
    "SINGLE_SWITCHES",
    "VARIANTS",
    "WEIGHTED",
    "Cell",
    "Method",
    "Sampling",
    "Variant",
]


@dataclass(frozen=True)
class Method:
    name: str
    title: str
    build: Builder
    departs: bool = True  # whether paper and scripts differ for it


@dataclass(frozen=True)
class Sampling:
    """How the J samples of an input become its loss."""

    name: str
    title: str
    objective: Callable[[int], Objective]


@dataclass(frozen=True)
class Variant:
    """Conventions, by the name they have on disk and on the command line."""

    name: str
    title: str
    conventions: Conventions

    def with_subgradient(self) -> "Variant":
        """The same with the plain subgradient through the threshold."""
        conventions = replace(self.conventions, gradient=Subgradient())
        return Variant(f"{self.name}-subgradient", f"{self.title}, subgradient", conventions)


_TITLES = {
    "fista": "FISTA",
    "gaussian": "Gaussian",
    "laplacian": "Laplacian",
    "spike-and-slab": "Spike-and-slab",
    "thresholded-gaussian": "Thresholded Gaussian",
    "thresholded-gaussian-gamma": "Thresholded Gaussian + Gamma",
    "thresholded-laplacian": "Thresholded Laplacian",
    "thresholded-laplacian-gamma": "Thresholded Laplacian + Gamma",
}
METHODS = {
    name: Method(name, title, PUBLISHED[name], departs=name not in ("fista", "gaussian"))
    for name, title in _TITLES.items()
}
FISTA = METHODS["fista"]

BEST = Sampling("max", "max-ELBO", BestOf)
MEAN = Sampling("mean", "average", MeanOf)
WEIGHTED = Sampling("iw", "importance-weighted", ImportanceWeighted)

SAMPLINGS = {sampling.name: sampling for sampling in (MEAN, BEST, WEIGHTED)}

VARIANTS = {
    "scripts": Variant("scripts", "the published scripts' conventions", SCRIPTS),
    "equations": Variant("equations", "the paper's equations", EQUATIONS),
}
# The scripts' conventions with one switch set as the paper says: which of them makes a difference? "unclipped" is not
# the paper's: the scripts take log γ = −relu(−raw) with γ held within [1e-6, 1 − 1e-6], and this is its smooth form.
_SWITCHES: dict[str, tuple[str, Conventions]] = {
    "single-gradient": ("dz/dμ = 1", replace(SCRIPTS, gradient=EQUATIONS.gradient)),
    "logit": ("logit γ", replace(SCRIPTS, read_spike=EQUATIONS.read_spike)),
    "unclipped": ("log γ = log σ(raw)", replace(SCRIPTS, read_spike=log_of_rate)),
    "start-0": ("spike-and-slab warmed up from 0", replace(SCRIPTS, spike_slab_start=EQUATIONS.spike_slab_start)),
    "no-norm": ("no ‖A‖ term in training", replace(SCRIPTS, norm=0.0)),
    "no-delay": ("Laplacian warmed up at once", replace(SCRIPTS, laplace_delay=EQUATIONS.laplace_delay)),
}
SINGLE_SWITCHES = {
    f"scripts-{name}": Variant(f"scripts-{name}", f"the published scripts' conventions, but {title}", conventions)
    for name, (title, conventions) in _SWITCHES.items()
}


@dataclass(frozen=True)
class Cell:
    """One trained model of the study. What makes no difference to a method is left out of its name."""

    method: Method
    sampling: Sampling
    n_samples: int  # J
    variant: Variant
    seed: int

    @property
    def name(self) -> str:
        variant = [self.variant.name] if self.method.departs else []
        sampled = [] if self.method is FISTA else [f"{self.sampling.name}{self.n_samples}"]
        return ".".join([self.method.name, *variant, *sampled, f"s{self.seed}"])

    @property
    def row(self) -> tuple[str, int | None]:
        """(method, J), as the paper's tables are indexed."""
        return self.method.name, None if self.method is FISTA else self.n_samples

    @property
    def label(self) -> str:
        """For a reader: what is in doubt is said."""
        sampled = "" if self.method is FISTA else f", J = {self.n_samples}"
        how = "" if self.sampling is BEST else f", {self.sampling.title} training"
        whose = f" ({self.variant.name})" if self.method.departs else ""
        return f"{self.method.title}{whose}{how}{sampled}"

    def digest(self, study: Study) -> str:
        """Of all that decides what is trained, but for the steps and the data: other conventions under the same name
        have another. Objects are told apart by their type, functions by their name."""
        own = {**asdict(study), "n_steps": None, "widths": tuple(study.widths), "cell": self.name}
        if study.dictionary_rate == Study.dictionary_rate:
            del own["dictionary_rate"]  # as before there was a choice
        if self.method.departs:
            own |= {name: _name_of(value) for name, value in vars(self.variant.conventions).items()}
        return hashlib.sha256(repr(sorted(own.items())).encode()).hexdigest()[:16]

    def build(self, study: Study) -> Built:
        objective = self.sampling.objective(self.n_samples)
        return build_published(self.method.build, study, self.variant.conventions, objective, self.seed)


def _name_of(value: object) -> str:
    if isinstance(value, int | float):
        return repr(float(value))
    return str(getattr(value, "__name__", type(value).__name__))
