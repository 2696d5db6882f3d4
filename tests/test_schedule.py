"""Schedules at chosen steps, with the values the paper was trained with."""

import warnings

import pytest
import torch
from torch.optim.lr_scheduler import OneCycleLR

from softspike.schedule import Constant, Exponential, OneCycle, Ramp, Schedule, StepDecay

N_STEPS = 240_000
one_cycle = OneCycle(1e-2, N_STEPS)


def test_one_cycle_at_its_corners() -> None:
    """lr/25 at 0, the peak after 5 %, 4e-8 at the last step and after it."""
    assert one_cycle(0) == pytest.approx(1e-2 / 25)
    assert one_cycle(int(0.05 * N_STEPS) - 1) == pytest.approx(1e-2)
    assert one_cycle(N_STEPS - 1) == pytest.approx(4e-8)
    assert one_cycle(N_STEPS + 1000) == pytest.approx(4e-8)
    assert one_cycle.final == 4e-8


def test_one_cycle_is_linear_then_cosine() -> None:
    top = 0.05 * N_STEPS - 1
    for share in (0.25, 0.5, 0.75):
        assert one_cycle(share * top) == pytest.approx(4e-4 + share * (1e-2 - 4e-4))
    assert one_cycle((top + N_STEPS - 1) / 2) == pytest.approx((1e-2 + 4e-8) / 2)


@pytest.mark.parametrize("step", [0, 1, 1000, 6000, 11_998, 11_999, 12_000, 12_001, 50_000, 120_000, 239_998, 239_999])
def test_one_cycle_equals_torch(step: int) -> None:
    """torch has linear or cosine for both phases: its linear rise and its cosine fall are ours."""
    rise = step <= 0.05 * N_STEPS - 1
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    strategy = "linear" if rise else "cos"
    theirs = OneCycleLR(optimizer, 1e-2, N_STEPS, pct_start=0.05, anneal_strategy=strategy, cycle_momentum=False)
    theirs.last_epoch = step
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (rate,) = theirs.get_lr()
    assert one_cycle(step) == pytest.approx(rate, rel=1e-9)


def test_dictionary_rate_falls_per_epoch() -> None:
    """0.5 × 0.99 per epoch of 800 steps."""
    rate = StepDecay(0.5, 0.99, period=800)
    for step, epoch in ((0, 0), (799, 0), (800, 1), (1600, 2), (239_999, 299)):
        assert rate(step) == pytest.approx(0.5 * 0.99**epoch)


@pytest.mark.parametrize(
    ("warm_up", "table"),
    [
        (
            Ramp(0.1, 2e-4, delay=1500),
            {0: 0.1, 1500: 0.1, 1501: 0.1002, 3000: 0.4, 5999: 0.9998, 6000: 1.0, 239_999: 1.0},
        ),
        (Ramp(0.1, 1e-4), {0: 0.1, 1: 0.1001, 4500: 0.55, 8999: 0.9999, 9000: 1.0, 239_999: 1.0}),
        (Ramp(0.0, 2e-4, delay=1500), {0: 0.0, 1500: 0.0, 4000: 0.5, 6500: 1.0, 10**7: 1.0}),
    ],
    ids=["laplacian", "fista", "spike-and-slab"],
)
def test_warm_up(warm_up: Ramp, table: dict[int, float]) -> None:
    for step, omega in table.items():
        assert warm_up(step) == pytest.approx(omega)
        assert warm_up(step) <= 1.0
    assert warm_up.final == 1.0


def test_temperature() -> None:
    """1 × 0.9995 per step down to 0.5, which it reaches at step 1386."""
    temperature = Exponential(1.0, 0.9995, floor=0.5)
    for step in (0, 1, 100, 1385):
        assert temperature(step) == pytest.approx(0.9995**step)
    assert temperature(1385) > 0.5
    assert temperature(1386) == temperature(239_999) == temperature.final == 0.5


@pytest.mark.parametrize(
    "schedule",
    [Constant(0.3), one_cycle, StepDecay(0.5, 0.99, 800), Exponential(1.0, 0.9995, 0.5), Ramp(0.1, 2e-4, 1500)],
    ids=lambda s: type(s).__name__,
)
def test_schedules_are_pure_and_settle(schedule: Schedule) -> None:
    """The value depends on the step alone, in any order of asking, and ends at `final`."""
    steps = [5, 100_000, 0, 1500]
    values = [schedule(step) for step in steps]
    assert [schedule(step) for step in reversed(steps)] == values[::-1]
    assert schedule(10**7) == pytest.approx(schedule.final, abs=1e-12)


@pytest.mark.parametrize(
    "schedule", [Constant(0.3), Ramp(0.1, 2e-4, 1500), Ramp(0.0, 0.1), Exponential(1.0, 0.9995, 0.5)]
)
@pytest.mark.parametrize("step", [0, 1, 1500, 1501, 3333, 10_000])
def test_the_step_may_be_a_tensor(schedule, step):
    assert float(schedule(torch.tensor(float(step), dtype=torch.float64))) == pytest.approx(schedule(step), abs=1e-12)
