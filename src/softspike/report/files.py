"""The files behind the page: templates, scripts and styles, read from beside the code."""

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

__all__ = ["environment", "policy", "script", "style"]

_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("data", "draw", "mosaic", "atom", "inputs", "compare", "charts", "main")


@cache
def environment() -> Environment:
    """Everything put into a template is escaped."""
    return Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


@cache
def script() -> str:
    """All scripts, one after the other in one scope of their own."""
    text = "\n".join((_TEMPLATES / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{text}\n}})();'


@cache
def style() -> str:
    return (_TEMPLATES / "page.css").read_text(encoding="utf-8")


def policy() -> str:
    """A content security policy: our script and our style, by their hashes, pictures made here, and nothing else."""
    ours, look = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (script(), style())
    )
    allowed = f"script-src {ours}; style-src {look}; img-src data: blob:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
