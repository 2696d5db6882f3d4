"""The page in a real browser: it opens without complaint, and everything on it can be used, by pointer and keyboard."""

import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from browser import opened
from pages import KINDS, rows

from softspike import SparseCoder
from softspike.metric import pair_atoms

PAGES = [*KINDS, "stopped", "diverged", "without data", "several"]


@pytest.fixture(scope="module")
def coder(pages):
    return SparseCoder.load(pages["grey"].parent)


def atoms_shown(window):
    return window.eval_on_selector_all("#mosaic .tile", "tiles => tiles.map(tile => Number(tile.dataset.i))")


def pixels_of(window, selector):
    """A canvas as (height, width, 4)."""
    found = window.eval_on_selector(
        selector, "c => [c.height, c.width, ...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]"
    )
    return np.array(found[2:], np.uint8).reshape(found[0], found[1], 4)


@pytest.mark.parametrize("kind", PAGES)
def test_it_opens_without_complaint(pages, kind):
    with opened(pages[kind]) as window:
        assert window.locator("h1").is_visible()
        n = {"diverged": 0, "several": 48, "stopped": 48, "without data": 48}.get(kind) or KINDS.get(kind, (0, 0))[1]
        assert window.locator("#mosaic .tile").count() == (0 if kind == "diverged" else n)
        window.mouse.wheel(0, 20_000)  # sections that are drawn when seen
        window.wait_for_timeout(50)


def test_an_atom_is_opened_by_a_click_and_says_what_was_measured(pages, coder):
    x = rows((8, 8)).reshape(-1, 64)
    codes, number = coder.transform(x).toarray(), 11
    with opened(pages["grey"]) as window:
        window.click(f'#mosaic [data-i="{number}"]')
        window.wait_for_selector("#atom h3")
        panel = window.inner_text("#atom").replace("\xa0", " ")
        assert panel.startswith(f"Atom {number}")
        rate = 100 * (codes[:, number] != 0).mean()
        assert f"{rate:.1f} % of inputs" in panel or f"{rate:.0f} % of inputs" in panel
        strongest = np.argsort(-np.abs(codes[:, number]), kind="stable")
        assert f"row {strongest[0]}" in panel
        assert f"z = {codes[strongest[0], number]:.3g}".replace("-", "−") in panel
        for heading in ("Its values where it is active", "Fires together with", "Looks most like"):
            assert heading in panel
        atom = coder.components_[number].reshape(8, 8)
        expected = 127.5 + 127.5 * atom / np.abs(atom).max()
        assert np.abs(pixels_of(window, "#atom .portrait canvas")[..., 0] - expected).max() <= 1.1
        assert window.evaluate("location.hash") == f"#atom={number}"


def test_colours_are_drawn_in_colour(pages):
    atoms = SparseCoder.load(pages["colour"].parent).components_
    with opened(pages["colour"], "#atom=3") as window:
        expected = 127.5 + 127.5 * atoms[3].reshape(4, 5, 3) / np.abs(atoms[3]).max()
        assert np.abs(pixels_of(window, "#atom .portrait canvas")[..., :3] - expected).max() <= 1.1


def test_bars_stand_above_and_below_zero(pages):
    atoms = SparseCoder.load(pages["bars"].parent).components_
    with opened(pages["bars"], "#atom=3") as window:
        picture = pixels_of(window, "#atom .portrait canvas")
        drawn = (picture[..., 3] > 0).sum(0).reshape(20, -1)
        assert (drawn == drawn[:, :1]).all()  # a bar per feature
        height = len(picture) / 2
        np.testing.assert_allclose(drawn[:, 0] / height, np.abs(atoms[3]) / np.abs(atoms[3]).max(), atol=2.5 / height)


@pytest.mark.parametrize("key", ["rate", "probability", "norm", "likeness", "number"])
def test_atoms_are_sorted(pages, coder, key):
    x = rows((8, 8)).reshape(-1, 64)
    values = {
        "rate": (coder.transform(x).toarray() != 0).mean(0),
        "probability": coder.activation_probability(x).mean(0),
        "norm": np.linalg.norm(coder.components_, axis=1),
        "number": -np.arange(48.0),
    }.get(key)
    with opened(pages["grey"]) as window:
        window.select_option("#sort", key)
        shown = atoms_shown(window)
        assert sorted(shown) == list(range(48))
        if key == "likeness":
            unit = coder.components_ / np.linalg.norm(coder.components_, axis=1, keepdims=True)
            size = np.abs(unit @ unit.T)
            beside = [size[a, b] for a, b in pairwise(shown)]
            assert np.mean(beside) > 1.2 * (size.sum() - 48) / (48 * 47)
        else:
            assert (np.diff(np.asarray(values)[shown]) <= 1e-6).all()


def test_atoms_are_sorted_by_likeness_to_the_open_one(pages, coder):
    unit = coder.components_ / np.linalg.norm(coder.components_, axis=1, keepdims=True)
    with opened(pages["grey"], "#atom=5") as window:
        window.click("text=Sort the dictionary by likeness to it")
        size = np.abs(unit @ unit[5])[atoms_shown(window)]
        assert size[0] == pytest.approx(1)
        assert (np.diff(size) <= 0.01).all()  # the page compares atoms as drawn, in 255 steps


def test_the_keyboard_alone_is_enough(pages):
    with opened(pages["grey"]) as window:
        window.select_option("#sort", "number")
        window.focus("#draw-as select, #zoom")
        window.keyboard.press("Tab")
        focused = "document.activeElement.dataset.i"
        assert window.evaluate(focused) == "0"  # one stop for all atoms
        across = window.evaluate(
            "getComputedStyle(document.getElementById('mosaic')).gridTemplateColumns.split(' ').length"
        )
        moves = {"ArrowRight": 1, "ArrowDown": 1 + across, "ArrowLeft": across, "ArrowUp": 0, "End": 47, "Home": 0}
        for key, place in moves.items():
            window.keyboard.press(key)
            assert window.evaluate(focused) == str(place)
        window.keyboard.press("ArrowUp")
        assert window.evaluate(focused) == "0"  # the edge holds
        window.keyboard.press("ArrowRight")
        window.keyboard.press("Enter")
        window.wait_for_selector("#atom h3")
        assert window.inner_text("#atom h3 >> nth=0") == "Atom 1"
        window.focus("#atom [aria-label='Next atom']")
        window.keyboard.press("Enter")
        window.wait_for_function("document.querySelector('#atom h3').textContent === 'Atom 2'")
        assert window.evaluate("document.activeElement.getAttribute('aria-label')") == "Next atom"  # not lost
        window.keyboard.press("Escape")
        window.wait_for_selector("#atom", state="hidden")
        assert window.evaluate(focused) == "2"
        window.keyboard.press("Shift+Tab")
        window.keyboard.press("Tab")
        assert window.evaluate(focused) == "2"


def test_a_link_leads_back_to_the_same_atom_and_input(pages):
    with opened(pages["grey"], "#atom=17") as window:
        assert window.inner_text("#atom h3 >> nth=0") == "Atom 17"
        assert window.locator('#mosaic [aria-current="true"]').get_attribute("data-i") == "17"
        window.click('#mosaic [data-i="3"]')
        window.wait_for_function("document.querySelector('#atom h3').textContent === 'Atom 3'")
        address = window.evaluate("location.hash")
        window.go_back()
        window.wait_for_function("document.querySelector('#atom h3').textContent === 'Atom 17'")
        window.click("nav >> text=Curves")  # another section: what is open stays open
        assert window.inner_text("#atom h3 >> nth=0") == "Atom 17"
    with opened(pages["grey"], address) as window:
        assert window.inner_text("#atom h3 >> nth=0") == "Atom 3"
    with opened(pages["several"], "#run=1&atom=7") as window:
        assert window.input_value("#run") == "1"
        assert window.inner_text("#atom h3 >> nth=0") == "Atom 7"
    with opened(pages["grey"], "#input=5") as window:
        window.wait_for_selector("#input h3")
        assert window.locator('#input-mosaic [aria-current="true"]').get_attribute("data-i") == "5"


@pytest.mark.parametrize(
    "address", ["#atom=48", "#atom=-1", "#atom=x", "#run=9&atom=1", "#atom=1e1", "#<b>", "#%E0%A4%A"]
)
def test_links_that_lead_nowhere_do_no_harm(pages, address):
    with opened(pages["grey"], address) as window:
        assert window.locator("#mosaic .tile").count() == 48
        if "run=9" not in address:
            assert not window.is_visible("#atom")


@pytest.mark.parametrize("typed", ["9999", "48", "1.5", "-1"])
def test_an_atom_that_is_not_there_is_said_and_leaves_no_address(pages, typed):
    with opened(pages["grey"]) as window:
        before = window.evaluate("[location.href, history.length]")
        window.fill("#goto", typed)
        window.press("#goto", "Enter")
        assert window.inner_text("#goto-note") == f"There is no atom {typed}: they are 0 to 47."
        assert window.evaluate("[location.href, history.length]") == before
        window.fill("#goto", "47")
        window.press("#goto", "Enter")
        window.wait_for_selector("#atom h3")
        assert window.inner_text("#goto-note") == ""


def test_an_input_is_taken_apart(pages, coder):
    """The partial sums drawn by the page are those of the codes."""
    with opened(pages["grey"], "#input=4") as window:
        window.wait_for_selector("#input .contributions li")
        x = rows((8, 8)).reshape(-1, 64)
        row = int(re.search(r"Row (\d+)", window.inner_text("#input h3 >> nth=0"))[1])
        code = coder.transform(x[row : row + 1]).toarray()[0]
        size = np.abs(code) * np.linalg.norm(coder.components_, axis=1)
        order = np.argsort(-size)[: np.count_nonzero(code)]
        shown = [int(n) for n in re.findall(r"atom (\d+)", window.inner_text("#input .contributions"))]
        assert shown == list(order)
        full = coder.mean_ + code @ coder.components_
        low, high = min(x[row].min(), full.min()), max(x[row].max(), full.max())
        for count in (0, 1, len(order)):
            window.eval_on_selector(
                "#input [type=range]", f"s => {{ s.value = {count}; s.dispatchEvent(new Event('input')); }}"
            )
            part = coder.mean_ + (code * np.isin(np.arange(48), order[:count])) @ coder.components_
            expected = 255 * np.clip((part - low) / (high - low), 0, 1)
            drawn = pixels_of(window, "#input figure:nth-child(2) canvas")[..., 0].reshape(-1)
            assert np.abs(drawn - expected).max() <= 3  # atoms are embedded in 255 steps
            residual = np.clip(127.5 + 255 * (x[row] - part) / (high - low), 0, 255)
            assert (
                np.abs(pixels_of(window, "#input figure:nth-child(3) canvas")[..., 0].reshape(-1) - residual).max() <= 4
            )
            assert f"{count} of {len(order)} atoms" in window.inner_text("#input")


def test_inputs_are_sorted(pages):
    with opened(pages["grey"]) as window:
        window.locator("#inputs").scroll_into_view_if_needed()
        window.wait_for_selector("#input h3")
        window.select_option("#input-sort", "unexplained")
        labels = window.eval_on_selector_all("#input-mosaic .tile", "t => t.map(x => x.getAttribute('aria-label'))")
        explained = [float(re.search(r"([\d.]+)\s% explained", label)[1]) for label in labels]
        assert explained == sorted(explained)


def test_a_guessed_picture_can_be_drawn_as_bars(pages):
    with opened(pages["guessed"], "#atom=2") as window:
        assert "this is a guess from the square number of features" in window.inner_text("#dictionary-note")
        before = pixels_of(window, "#atom .portrait canvas")
        window.select_option("#kind", "bars")
        window.wait_for_selector("#mosaic.bars-kind")
        after = pixels_of(window, "#atom .portrait canvas")
        assert before.shape != after.shape
    with opened(pages["grey"]) as window:
        assert not window.is_visible("#kind")


def test_two_runs_compare(pages):
    folder = pages["grey"].parent.parent
    first, second = (torch.from_numpy(SparseCoder.load(folder / name).components_) for name in ("grey", "again"))
    pairs = pair_atoms(first, second)
    alike = int((pairs.cosine.abs() >= 0.9).sum())
    with opened(pages["several"]) as window:
        assert f"again: {alike} of 40 pairs are alike" in window.inner_text("#compare")
        window.locator("#pairs").scroll_into_view_if_needed()
        window.wait_for_selector(".pair")
        assert window.locator(".pair").count() == 40
        assert window.locator(".pair.differs").count() == 40 - alike
        last = f"{pairs.first[-1]} and {pairs.second[-1]}"
        assert window.inner_text(".pair >> nth=0").startswith(last)
        window.select_option("#pair-sort", "most")
        window.wait_for_function(f"!document.querySelector('.pair').textContent.startsWith('{last}')")
        assert window.inner_text(".pair >> nth=0").startswith(f"{pairs.first[0]} and {pairs.second[0]}")
        window.select_option("#run", "1")
        window.wait_for_function("document.querySelectorAll('#mosaic .tile').length === 40")
        window.click(f'#mosaic [data-i="{pairs.second[0]}"]')
        window.wait_for_selector("text=Its partner in other runs")
        assert f"atom {pairs.first[0]}" in window.inner_text("#atom")
        assert "best" not in window.inner_text("#figures table")  # bars are other data
        assert "measured on different data" in window.inner_text("#figures .lead")


@pytest.mark.parametrize("how", ["a click", "the address"])
def test_a_link_to_a_section_leads_to_it_though_what_is_above_is_drawn_later(pages, how):
    place = {"viewport": {"width": 1280, "height": 500}, "reduced_motion": "reduce"}
    with opened(pages["several"], "#curves" if how == "the address" else "", **place) as window:
        if how == "a click":
            window.click("nav >> text=Curves")
        window.wait_for_selector("html[data-drawn]")
        top = window.eval_on_selector("#curves", "section => section.getBoundingClientRect().top")
        assert 0 <= top <= 80  # below the bar at the top
        window.select_option("#run", "1")  # what is open is changed, and the reader stays where he is
        window.wait_for_function("document.querySelectorAll('#mosaic .tile').length === 40")


def test_every_line_of_a_comparison_says_whose_it_is(pages):
    with opened(pages["several"]) as window:
        found = window.eval_on_selector_all(
            "figure.chart",
            "(all) => all.map((c) => ['svg[role] path.line', '.legend .key'].map((s) => c.querySelectorAll(s).length))",
        )
        assert len(found) > 8
        assert all(drawn == named > 0 for drawn, named in found)


def test_curves_are_read_off_and_shown_over_time(pages):
    with opened(pages["grey"]) as window:
        chart = window.locator("svg[data-chart='misfit-step']")
        chart.scroll_into_view_if_needed()
        chart.hover()
        assert re.match(r"step \d+: 0?\.?\d", window.inner_text(".over-step:has([data-chart='misfit-step']) .readout"))
        assert not window.is_visible("svg[data-chart='misfit-seconds']")
        window.check("input[value=time]")
        assert window.is_visible("svg[data-chart='misfit-seconds']")
        assert not window.is_visible("svg[data-chart='misfit-step']")


def test_without_scripts_the_figures_are_there(pages):
    with opened(pages["grey"], java_script_enabled=False) as window:
        assert "Explained variance" in window.inner_text("#figures")
        assert "scripts are off here" in window.inner_text("main")
        assert window.is_visible("svg[data-chart='frontier']")
