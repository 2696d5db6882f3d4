"""The default: a hard-thresholded Gaussian with an unrolled encoder."""

from torch.optim import Adam

from softspike.encoder import UnrolledEncoder
from softspike.generator import UnitNormDictionary
from softspike.methods.plan import Built, Plan
from softspike.model import VariationalCoder
from softspike.objective import Expected
from softspike.posterior import GaussianAround
from softspike.prior import LearnedSpikeSlabPrior, NormalPrior
from softspike.schedule import OneCycle
from softspike.solver.correction import SupportCorrection
from softspike.threshold import Hard, PositiveHard, Threshold, TrackedLevel, level_for_activity
from softspike.train import GroupRecipe, Recipe

__all__ = ["hard_gaussian"]


def hard_gaussian(plan: Plan) -> Built:
    """An unrolled encoder tied to a unit-norm dictionary, a hard threshold held at the target count, and the expected
    bound in closed form."""
    generator = UnitNormDictionary(plan.n_features, plan.n_components)
    one = NormalPrior(1.0).law  # correlations of standardised data with unit-norm atoms start near N(0, 1)
    level = TrackedLevel(level_for_activity(one, plan.activity), plan.target_active)
    # 1.6 over the largest eigenvalue of a random AᵀA.
    rate = 1.6 / (1 + (plan.n_components / plan.n_features) ** 0.5) ** 2
    coder = VariationalCoder(
        encoder=UnrolledEncoder(generator, level, n_steps=plan.encoder_steps, rate=rate, positive=plan.positive),
        posterior=GaussianAround(plan.n_components, level),
        prior=LearnedSpikeSlabPrior(plan.activity, positive=plan.positive),
        threshold=Threshold(PositiveHard if plan.positive else Hard, level),
        generator=generator,
        objective=Expected(),
        correction=SupportCorrection(plan.correction_rounds, plan.positive),
    )
    peak = OneCycle(plan.learning_rate or 4e-3, plan.n_steps, rise=0.02, start_factor=0.01, end=0.0)
    groups = {name: GroupRecipe(peak) for name in ("inference", "generator")}
    return Built(coder, Recipe(plan.n_steps, plan.batch_size, Adam, groups, clip_norm=10.0))
