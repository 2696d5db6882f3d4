"""A generator that is no dictionary: its linear picture is shown, and nothing pretends to be a sum."""

import numpy as np
import pytest
import torch
from browser import opened
from torch import nn

from softspike.data import ArrayRows, Standardiser
from softspike.encoder import LinearEncoder
from softspike.generator import Generator
from softspike.metric import Baselines, Summary
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.posterior import LaplacePosterior
from softspike.prior import LaplacePrior
from softspike.report.embed import Dictionary, most_values
from softspike.report.findings import Figures, measure
from softspike.report.page import render
from softspike.report.pixels import drawn_as
from softspike.report.record import Measured, Record
from softspike.threshold import CentredSoft, FixedLevel, Threshold


class Bent(Generator):
    """x̂ = tanh(Az)."""

    n_features, n_components = 16, 10

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 10))

    def forward(self, z):
        return torch.tanh(z @ self.weight.T)

    def penalty(self):
        return torch.zeros(())

    def constrain(self): ...


@pytest.fixture(scope="module")
def record():
    torch.manual_seed(0)
    model = VariationalCoder(
        LinearEncoder(16), LaplacePosterior(16, 10), LaplacePrior(0.1), Bent(), BestOf(2),
        Threshold(CentredSoft, FixedLevel(0.1)),
    )  # fmt: skip
    rows = ArrayRows(np.random.default_rng(0).standard_normal((400, 16), dtype=np.float32))
    figures = Figures(Summary(400, 0.5, 2.0, 0.2, 0, 10, 1.0, 2.0), Baselines(100, 0.4, None))
    findings = measure(model, Standardiser.identity(16), rows, figures)

    @torch.no_grad()
    def rebuilt(codes):
        return model.generator(torch.from_numpy(codes.toarray())).numpy()

    return Record(
        "bent", {"n_features": 16, "estimator": {"method": "own", "max_steps": 1}}, step=1, additive=False,
        dictionary=Dictionary(findings.atoms, np.zeros(16, np.float32)), drawn=drawn_as(16, (4, 4), most_values(10)),
        measured=Measured("random rows", False, rows, findings, rebuilt), target_active=2.0,
    ), model  # fmt: skip


def test_atoms_are_those_of_least_squares(record):
    shown, _ = record
    findings = shown.measured.findings
    x, z = shown.measured.rows.array, findings.codes.toarray()
    design = np.column_stack([z, np.ones(len(z))])
    expected = np.linalg.lstsq(design, x, rcond=None)[0][:-1]
    np.testing.assert_allclose(findings.atoms, expected, atol=1e-3)
    assert findings.frontier is None


def test_the_page_says_so_and_offers_no_partial_sums(record, tmp_path):
    shown, _ = record
    page = tmp_path / "bent.html"
    page.write_text(render([shown]), encoding="utf-8")
    with opened(page, "#input=3") as window:
        assert "The generator is a network" in window.inner_text("#dictionary-note")
        window.wait_for_selector("#input h3")
        assert not window.is_visible("#input [type=range]")
        assert "OMP" not in window.inner_text("#figures")
