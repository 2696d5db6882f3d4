"""The page on paper: what is printed first is all there, and nothing of it is cut off."""

import shutil
import subprocess

import pytest
from browser import opened

A4 = {"width": "210mm", "height": "297mm"}


def printed(window):
    """The words of a print, page by page with their layout, as pdftotext reads them."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed")
    read = subprocess.run(["pdftotext", "-layout", "-", "-"], input=window.pdf(**A4), capture_output=True, check=True)
    return read.stdout.decode("utf-8")


@pytest.mark.parametrize("at", ["domcontentloaded", "ready"])
def test_the_first_print_of_a_fresh_page_holds_every_section(pages, at):
    with opened(pages["several"]) as window:
        if at != "ready":
            window.reload(wait_until=at)
        words = printed(window)
    assert "What each atom adds" in words
    assert words.count("z = ") > 3  # contributions
    assert words.count("|cos| 0.") > 30  # matched pairs


def test_the_table_of_several_runs_fits_the_sheet(pages):
    """A sheet of A4 is 688 pixels wide between its margins."""
    with opened(pages["several"], viewport={"width": 688, "height": 900}) as window:
        window.emulate_media(media="print")
        for table in window.locator("table").all():
            found = table.evaluate("t => [t.getBoundingClientRect().right, t.parentElement.scrollWidth, innerWidth]")
            assert max(found[:2]) <= found[2]
        over = "t => t.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"
        assert window.eval_on_selector_all("td, th, td .bar-row", over) == []
