"""Settings of the book: `make docs` builds it, offline, and a warning is an error."""

import re
from typing import Any

from softspike import __version__

project, author, release = "softspike", "The softspike developers", __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme, html_title = "furo", f"softspike {__version__}"
html_copy_source = html_show_sourcelink = html_show_copyright = False
myst_heading_anchors = 3  # links to headings, as on a code host

default_role = "py:obj"  # `name` in a docstring links to its page where it has one
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # torch's own docstrings are not ours to show
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True


def _as_written(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with `names`, formulas (|z|, Σ_b, z*) and, in `SparseCoder`, sections of numpy's kind.

    To reStructuredText the formulas would be markup, and a section's lines `name : what it is` a paragraph.
    """
    written: list[str] = []
    for line in lines:
        if set(line) == {"-"} and written:
            written[-1:] = [f".. rubric:: {written[-1]}", ""]
        elif line.startswith(">>>"):
            written.append(line)
        else:
            entry = re.fullmatch(r"(\w[\w, ]*) : (.*)", line)
            written += [f"``{entry[1]}``", f"    {_escaped(entry[2])}"] if entry else [_escaped(line)]
    lines[:] = written


def _escaped(line: str) -> str:
    """Outside backquotes; inside, a dot before the name of a class lets its page be found from any package."""
    parts = line.split("`")
    parts[1::2] = [re.sub(r"^(?=[A-Z]\w+$)", ".", part) for part in parts[1::2]]
    parts[::2] = [re.sub(r"[|*]|_(?=\W|$)", r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def _skipped(app: Any, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Fields of named tuples stand in the signature already."""
    return True if (obj.__doc__ or "").startswith("Alias for field number") else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", _skipped)
    app.connect("autodoc-process-docstring", _as_written)
