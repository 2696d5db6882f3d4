"""How the page looks and what it costs: contrast, every width, paper, hostile names, size and speed."""

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import browser, opened
from pages import reported
from scipy import sparse

from softspike.data import ArrayRows
from softspike.metric import (
    Baselines,
    Consistency,
    Summary,
    firing_rate,
    mean_size,
    nearest_atoms,
    partners,
    value_histograms,
)
from softspike.report.embed import Dictionary, most_values
from softspike.report.findings import Figures, Findings
from softspike.report.page import render
from softspike.report.pixels import drawn_as
from softspike.report.record import Measured, Record

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


def everything_shown(window):
    """Sections that are drawn when they are seen, drawn."""
    for name in ("inputs", "compare", "curves", "settings"):
        if window.locator(f"#{name}").count():
            window.locator(f"#{name}").scroll_into_view_if_needed()
            window.wait_for_timeout(80)


@pytest.mark.parametrize("kind", ["grey", "several", "bars", "diverged"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(pages, kind, scheme):
    """At least 4.5 to 1, or 3 to 1 for large text, as WCAG 2 asks."""
    with opened(pages[kind], "" if kind == "diverged" else "#atom=3", color_scheme=scheme) as window:
        everything_shown(window)
        found = window.evaluate(CONTRAST)
        assert len(found) > 30
        assert [entry for entry in found if entry["ratio"] < entry["needed"]] == []


def test_the_schemes_differ_and_can_be_switched(pages):
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(pages["grey"], color_scheme="dark") as window:
        dark = window.evaluate(ground)
        window.click("#theme")
        light = window.evaluate(ground)
        assert dark != light
        found = window.evaluate(CONTRAST)
        assert [entry for entry in found if entry["ratio"] < entry["needed"]] == []
        window.click("#theme")
        assert window.evaluate(ground) == dark
    with opened(pages["grey"], color_scheme="light") as window:
        assert window.evaluate(ground) == light


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 2560])
@pytest.mark.parametrize("kind", ["grey", "several"])
def test_nothing_sticks_out_sideways(pages, kind, width):
    with opened(pages[kind], viewport={"width": width, "height": 800}) as window:
        everything_shown(window)
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        window.evaluate("location.hash = '#atom=3'")
        window.wait_for_selector("#atom h3")
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        box = window.locator("#atom").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        window.click("#atom [aria-label=Close]")
        window.wait_for_selector("#atom", state="hidden")


def test_a_phone_shows_two_runs_side_by_side(pages):
    """What the rows are about takes no column of its own, and no cell is cut."""
    with opened(pages["several"], viewport={"width": 360, "height": 700}) as window:
        cells = [cell.bounding_box() for cell in window.locator("#figures tbody tr:first-child td").all()]
        assert cells[1]["x"] + cells[1]["width"] <= 360
        over = "t => t.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"
        assert window.eval_on_selector_all(".figures td, .figures th, .figures .bar-row", over) == []


@pytest.mark.parametrize("width", [320, 360, 480, 1000])
def test_cards_keep_to_the_margins(pages, width):
    with opened(pages["grey"], viewport={"width": width, "height": 700}) as window:
        margins = window.locator(".cards").bounding_box()
        for card in window.locator(".card, .card .value, .card .bar-row").all():
            box = card.bounding_box()
            assert box["x"] >= margins["x"] - 0.5
            assert box["x"] + box["width"] <= margins["x"] + margins["width"] + 0.5


NAMELESS = """() => [...document.querySelectorAll('button, select, input, canvas, svg[role], a')]
  .filter((e) => e.checkVisibility() && !e.getAttribute('aria-label') && !e.textContent.trim())
  .filter((e) => ![...(e.labels || [])].some((label) => label.textContent.trim()))
  .map((e) => e.outerHTML.slice(0, 80))"""


def test_every_control_and_picture_has_a_name(pages):
    with opened(pages["several"], "#atom=3") as window:
        everything_shown(window)
        assert window.evaluate(NAMELESS) == []
        levels = window.eval_on_selector_all("main h1, main h2, main h3", "all => all.map((h) => Number(h.tagName[1]))")
        assert levels[0] == 1
        assert all(b <= a + 1 for a, b in pairwise(levels))
        assert window.evaluate("document.documentElement.lang") == "en"
        ids = window.eval_on_selector_all("[id]", "all => all.map((e) => e.id)")
        assert len(ids) == len(set(ids))


def test_on_paper(pages):
    """Controls are gone, inputs are drawn even if they were never scrolled to, and it makes a document."""
    with opened(pages["grey"], color_scheme="dark") as window:
        document = window.pdf()
        assert document.startswith(b"%PDF")
        assert len(document) > 20_000
        window.emulate_media(media="print")
        assert not window.is_visible(".toolbar >> nth=0")
        assert window.is_visible("#mosaic .tile >> nth=0")
        assert window.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        window.wait_for_selector("#input .contributions li", state="attached")


HOSTILE = "a</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>&amp;\"'{{ 7 * 7 }}"


def test_a_run_named_with_markup_shows_as_text(pages, tmp_path):
    folder = pages["grey"].parent.parent
    for number, kind in enumerate(("grey", "again")):
        shutil.copytree(folder / kind, tmp_path / f"{HOSTILE}{number}")
    shutil.copy(folder / "grey.npy", tmp_path / "grey.npy")
    single = reported(tmp_path, f"{HOSTILE}0", "-o", "one.html")
    both = reported(tmp_path, f"{HOSTILE}0", f"{HOSTILE}1", "-o", "two.html", "--data", "grey.npy")
    with opened(single) as window:
        assert window.inner_text("h1") == f"{HOSTILE}0"
        assert window.evaluate("window.pwned") is None
    with opened(both, "#atom=3") as window:
        everything_shown(window)
        assert f"{HOSTILE}1" in window.inner_text("#figures table")
        assert f"{HOSTILE}1" in window.inner_text("#atom")  # written by the script
        assert window.evaluate("window.pwned") is None
        assert window.locator("img").count() == 0


def test_markup_that_did_get_in_could_not_run(pages):
    """The policy of the page lets no script run but its own."""
    with opened(pages["grey"], allowed=["Content Security Policy"]) as window:
        window.evaluate("document.body.insertAdjacentHTML('beforeend', `<img src='data:,x' onerror='pwned = 1'>`)")
        window.evaluate("s = document.createElement('script'), s.textContent = 'pwned = 2', document.body.append(s)")
        window.wait_for_timeout(100)
        assert window.evaluate("window.pwned") is None


# ── size and speed ──


def large_page(n_atoms, n_inputs, shape=(16, 16), seed=0):
    """A page of random atoms and codes in which no two atoms share their strongest inputs: the largest there can be."""
    random = np.random.default_rng(seed)
    width = int(np.prod(shape))
    atoms = random.standard_normal((n_atoms, width)).astype(np.float32)
    each = n_inputs // n_atoms
    row = np.arange(each * n_atoms)
    atom = np.column_stack([row % n_atoms, random.integers(0, n_atoms, (len(row), 12))])
    value = np.column_stack([10 + random.random(len(row)), random.random((len(row), 12))]).astype(np.float32)
    place = np.repeat(row, 13)
    codes = sparse.csr_matrix((value.ravel(), (place, atom.ravel())), shape=(len(row), n_atoms))
    rows = ArrayRows(np.asarray(codes @ atoms, dtype=np.float32))
    rate = firing_rate(codes)
    active = codes.nnz / len(row)
    findings = Findings(
        Figures(Summary(len(row), 0.9, active, active / n_atoms, 0, n_atoms, 1.0, 2.0), Baselines(100, 0.5, 0.8, 0.9)),
        codes, atoms, np.zeros(len(row)), rate, rate, mean_size(codes), value_histograms(codes), partners(codes, 6),
        nearest_atoms(torch.from_numpy(atoms), 6), random.permutation(n_atoms), None, Consistency([0.1], [0.5]), None,
    )  # fmt: skip
    drawn = drawn_as(width, shape, most_values(n_atoms))
    record = Record(
        "large", {"n_features": width, "estimator": {"max_steps": 1, "method": "none"}}, step=1, target_active=active,
        dictionary=Dictionary(atoms, np.zeros(width, np.float32)), drawn=drawn,
        measured=Measured("random rows", False, rows, findings, lambda codes: np.asarray(codes @ atoms)),
    )  # fmt: skip
    return render([record])


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    browser()
    folder = tmp_path_factory.mktemp("large")
    for n_atoms, each in ((256, 8), (4096, 3)):
        (folder / f"{n_atoms}.html").write_text(large_page(n_atoms, n_atoms * each), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("n_atoms", "megabytes"), [(256, 3), (4096, 15)])
def test_size(large, n_atoms, megabytes):
    assert (large / f"{n_atoms}.html").stat().st_size < megabytes * 1e6


def test_large_pictures_are_reduced_to_fit():
    assert len(large_page(512, 512 * 3, shape=(64, 64, 3))) < 15e6


def best_of(times, measure):
    """The least of several: other work on the machine only ever adds."""
    return min(measure() for _ in range(times))


def test_256_atoms_are_interactive_in_under_a_second(large):
    def until_ready():
        with opened(large / "256.html") as window:
            return window.evaluate("performance.getEntriesByName('softspike-ready')[0].startTime")

    assert best_of(3, until_ready) < 1000


FRAMES = """async (box) => {
  const gaps = [];
  let last = performance.now();
  for (let i = 0; i < 40; i++) {
    box.scrollTop += 60;
    await new Promise(requestAnimationFrame);
    gaps.push(performance.now() - last);
    last = performance.now();
  }
  return gaps.sort((a, b) => a - b)[Math.floor(gaps.length * 0.9)];
}"""

AFTER = """async ([id, value]) => {
  const begun = performance.now();
  const select = document.getElementById(id);
  select.value = value;
  select.dispatchEvent(new Event('change'));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - begun;
}"""


def test_4096_atoms_stay_smooth(large):
    """Ready in 3 s, sorted in 1 s, an atom opened in 1 s, nine of ten frames of scrolling within 100 ms: on two shared
    cores without a GPU. On a desk machine all of it is several times quicker."""
    with opened(large / "4096.html") as window:
        assert window.evaluate("performance.getEntriesByName('softspike-ready')[0].startTime") < 3000
        assert window.locator("#mosaic .tile").count() == 4096
        assert best_of(3, lambda: window.evaluate(AFTER, ["sort", "norm"])) < 1000
        assert best_of(3, lambda: window.eval_on_selector("#mosaic", FRAMES)) < 100
        opening = best_of(3, lambda: window.evaluate(AFTER, ["goto", str(np.random.default_rng().integers(4096))]))
        assert opening < 1000
        window.wait_for_selector("#atom .histogram")
