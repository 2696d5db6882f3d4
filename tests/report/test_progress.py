"""A bar on a terminal, plain lines elsewhere, nothing where nothing was asked for; and tables likewise."""

import contextlib
import io
import re
import sys

import pytest
from small import QUICK, small_data

from softspike import SparseCoder
from softspike.data import ArrayRows
from softspike.metric import Baselines, Summary
from softspike.report.progress import PlainLines, decoding_shown, progress_shown
from softspike.report.table import print_table, summary_lines
from softspike.train import Diverged

pytestmark = pytest.mark.usefixtures("no_simulation")


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def open_terminal(monkeypatch):
    """To be called in the test itself: pytest puts its own streams in place between set-up and test."""

    def place():
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return place


def test_a_bar_on_a_terminal(open_terminal):
    terminal = open_terminal()
    SparseCoder(**QUICK, max_steps=60).fit(small_data())
    shown = plain(terminal.getvalue())
    assert "0/60" in shown  # before the first figures
    assert "60/60" in shown
    assert "?" not in shown
    for figure in (r"\d steps/s", r"0:00", r"loss -?\d", r"explained -?0\.\d{3}", r"active \d+\.\d %"):
        assert re.search(figure, shown), figure
    assert terminal.getvalue().rstrip("\r\n").endswith("\x1b[?25h")  # the cursor is shown again


def test_the_bar_leaves_the_terminal_as_it_was_when_training_fails(open_terminal):
    terminal = open_terminal()
    with pytest.raises(Diverged):
        SparseCoder(**{**QUICK, "batch_size": 8}, max_steps=2000, learning_rate=1e6).fit(small_data())
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h")


@pytest.mark.parametrize(("positive", "word"), [(False, "explained"), (True, "error")])
def test_what_is_explained_is_said_of_centred_data_only(capsys, positive, word):
    """1 − misfit is a share of variance only where the mean has been taken out."""
    SparseCoder(**QUICK, max_steps=3, positive=positive, verbose=True).fit(small_data())
    assert f"  {word} " in capsys.readouterr().err


@pytest.mark.parametrize(("verbose", "printed"), [(None, False), (False, False), (True, True)])
def test_lines_elsewhere_only_if_asked_for(capsys, verbose, printed):
    SparseCoder(**QUICK, max_steps=3, verbose=verbose).fit(small_data())
    err = capsys.readouterr().err
    assert bool(err) == printed
    assert "\x1b" not in err
    if printed:
        assert err.startswith("step 3/3  loss ")


def test_a_terminal_can_be_kept_quiet(open_terminal):
    terminal = open_terminal()
    SparseCoder(**QUICK, max_steps=3, verbose=False).fit(small_data())
    assert terminal.getvalue() == ""


def test_lines_are_few(capsys):
    """None before its time but the last."""
    coder = SparseCoder(**QUICK, max_steps=200)
    coder.fit_rows(ArrayRows(small_data()), observers=[PlainLines(every_seconds=1e9)])
    assert capsys.readouterr().err.count("\n") == 1


def test_the_bar_is_closed_by_any_exception(open_terminal):
    terminal = open_terminal()
    with contextlib.suppress(KeyboardInterrupt), progress_shown(None) as (bar,):
        SparseCoder(**QUICK, max_steps=51).fit_rows(ArrayRows(small_data()), observers=[bar])
        raise KeyboardInterrupt
    assert terminal.getvalue().rstrip("\r\n").endswith("\x1b[?25h")


def test_a_bar_for_decoding_only_where_something_is_decoded(open_terminal):
    terminal = open_terminal()
    with decoding_shown():
        pass
    assert terminal.getvalue() == ""
    with decoding_shown() as decoded:
        decoded.decoded(3, 7)
    assert "3/7" in plain(terminal.getvalue())
    assert terminal.getvalue().rstrip("\r\n").count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h")


SUMMARY = Summary(100, 0.75, 5.5, 0.1, 3, 55, 12.3, 45.6)


def test_a_plain_table(capsys):
    print_table("run on data", summary_lines(SUMMARY, 5.0, Baselines(50, 0.4, 0.8)))
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "run on data"
    assert "  active components: 5.50 of 55  (asked for 5.0 on unseen rows)" in out
    assert "  baseline: OMP, same dictionary: 0.800  (same mean count, 50 samples)" in out
    assert "\x1b" not in out


def test_a_framed_table_holds_the_same_figures(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    print_table("run on data", summary_lines(SUMMARY, None, None))
    for figure in ("run on data", "0.750", "5.50 of 55", "never active on 100 samples"):
        assert figure in sys.stdout.getvalue()
