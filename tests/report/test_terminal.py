"""Dictionaries in the terminal: every terminal gets what it can show."""

import base64
import io
import re

import numpy as np
import pytest
from rich.console import Console

from softspike.report.pixels import drawn_as
from softspike.report.terminal import half_blocks, inline_picture, small_mosaic

PNG = bytes(range(256)) * 40

TERMINALS = [
    ({"TERM": "xterm-256color"}, None),
    ({"TERM": "xterm-kitty"}, "kitty"),
    ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
    ({"TERM": "xterm-ghostty"}, "kitty"),
    ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm"),
    ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm"),
    ({"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, None),
    ({"TERM": "screen-256color", "TERM_PROGRAM": "iTerm.app"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("environment", "protocol"), TERMINALS)
def test_pictures_where_they_can_be_shown(environment, protocol):
    sequence = inline_picture(PNG, environment)
    if protocol is None:
        assert sequence is None
    elif protocol == "kitty":
        pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", sequence)
        assert base64.b64decode("".join(content for _, content in pieces)) == PNG
        assert all(len(content) <= 4096 for _, content in pieces)
        assert [keys.endswith("m=1") for keys, _ in pieces] == [True] * (len(pieces) - 1) + [False]
        assert pieces[0][0].startswith("a=T,f=100,")
    else:
        assert base64.b64decode(re.search(r":([A-Za-z0-9+/=]+)\x07", sequence)[1]) == PNG


@pytest.mark.parametrize(
    ("n", "shape", "width", "height"), [(50, (8, 8), 80, 24), (3, (8, 8), 200, 60), (9, (8, 8), 5, 5)]
)
def test_a_mosaic_fits_its_room(n, shape, width, height):
    drawn = drawn_as(64, shape, 64)
    picture = small_mosaic(np.random.default_rng(0).standard_normal((n, 64)), drawn, width, height)
    assert picture.shape[2] == 1
    assert picture.shape[1] <= max(width + 1, 10)
    assert picture.shape[0] <= max(height + 1, 10)
    assert picture.min() >= 0
    assert picture.max() <= 1


def shown(text, colours):
    console = Console(file=io.StringIO(), force_terminal=True, width=60, color_system="truecolor" if colours else None)
    console.print(text, soft_wrap=True)
    return console.file.getvalue()


def test_two_pixels_per_character():
    picture = np.zeros((4, 3, 3))
    picture[0, 0], picture[1, 0] = (1, 0, 0), (0, 0, 1)
    out = shown(half_blocks(picture, colours=True), colours=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", out).split() == ["▀▀▀", "▀▀▀"]
    assert out.startswith("\x1b[38;2;255;0;0;48;2;0;0;255m▀")


def test_shades_where_there_are_no_colours():
    picture = np.repeat(np.linspace(0, 1, 5)[None, :, None], 3, 0)
    out = shown(half_blocks(picture, colours=False), colours=False)
    assert out.splitlines()[:2] == [" ░▒▓█", " ░▒▓█"]
    assert "\x1b" not in out
