"""A small dictionary in the terminal: as a picture where it can show one, as coloured half blocks elsewhere."""

import base64
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from softspike.report.figure import mosaic
from softspike.report.pixels import Drawn

__all__ = ["half_blocks", "inline_picture", "small_mosaic"]

_SHADES = " ░▒▓█"


def inline_picture(png: bytes, environment: Mapping[str, str] = os.environ) -> str | None:
    """The escape sequence that shows a PNG in kitty, Ghostty, iTerm2 or WezTerm; None for terminals that cannot."""
    if "TMUX" in environment or environment.get("TERM", "").startswith(("screen", "tmux")):
        return None  # a multiplexer between us and the terminal swallows pictures
    content = base64.standard_b64encode(png).decode("ascii")
    if "KITTY_WINDOW_ID" in environment or environment.get("TERM") in ("xterm-kitty", "xterm-ghostty"):
        return "".join(_kitty(content)) + "\n"
    if environment.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm"):
        return f"\x1b]1337;File=inline=1;size={len(png)};preserveAspectRatio=1:{content}\x07\n"
    return None


def _kitty(content: str, size: int = 4096) -> Iterator[str]:
    """In pieces of at most 4096 characters, as its protocol asks; all but the last announce another."""
    pieces = [content[i : i + size] for i in range(0, len(content), size)]
    for number, piece in enumerate(pieces):
        first, more = "a=T,f=100," if number == 0 else "", int(number + 1 < len(pieces))
        yield f"\x1b_G{first}m={more};{piece}\x1b\\"


def small_mosaic(components: np.ndarray, drawn: Drawn, width: int, height: int) -> np.ndarray:
    """The first atoms (d, D) as a picture in [0, 1] of at most width × height pixels, (h, w, 1 or 3)."""
    tall, wide = drawn.size
    across = max(min(math.ceil(math.sqrt(len(components) * tall / wide)), width // (wide + 1)), 1)
    rows = max(min(math.ceil(len(components) / across), height // (tall + 1)), 1)
    shape = (tall, wide, 3) if drawn.kind == "colour" else (tall, wide)
    picture = mosaic(drawn.values(components[: across * rows]), shape, columns=across)
    return picture if picture.ndim == 3 else picture[..., None]


def half_blocks(picture: np.ndarray, colours: bool) -> Any:
    """Two rows of pixels per line of text: the upper in the colour of ▀, the lower in that of its ground.

    Without colours, shades of grey by how full a character is, one pixel wide and two high.
    """
    from rich.text import Text

    if picture.shape[0] % 2:
        picture = np.concatenate([picture, picture[-1:]])
    upper, lower = picture[0::2], picture[1::2]
    if not colours:
        grey = ((upper + lower) / 2).mean(-1)
        index = np.clip((grey * len(_SHADES)).astype(int), 0, len(_SHADES) - 1)
        return Text("\n".join("".join(_SHADES[i] for i in row) for row in index))
    text = Text(no_wrap=True)
    for above, below in zip(upper, lower, strict=True):
        for a, b in zip(above, below, strict=True):
            text.append("▀", style=f"rgb({_rgb(a)}) on rgb({_rgb(b)})")
        text.append("\n")
    return text


def _rgb(pixel: np.ndarray) -> str:
    values = np.rint(255 * np.clip(np.broadcast_to(pixel, 3), 0, 1)).astype(int)
    return ",".join(map(str, values))
