"""Runs examples/plot_*.py and writes what they print and draw into examples.md: python docs/gallery.py, minutes."""

import ast
import io
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot

HERE = Path(__file__).parent
HEAD = """\
# Gallery

Each is a file of under 60 lines in `examples/`, runs in a minute or so on two cores without a GPU, and is run by the
tests for fewer steps. What stands below was printed and drawn by `python docs/gallery.py`.
"""


def main() -> None:
    parts = [HEAD]
    for path in sorted((HERE.parent / "examples").glob("plot_*.py")):
        source, printed, picture = path.read_text(encoding="utf-8"), io.StringIO(), f"images/{path.stem}.png"
        pyplot.close("all")
        with redirect_stdout(printed):
            exec(compile(source, str(path), "exec"), {"__name__": "__main__"})
        pyplot.savefig(HERE / picture, dpi=72, bbox_inches="tight", pil_kwargs={"optimize": True})
        parts.append(page_of(path.name, source, printed.getvalue(), picture))
        print(path.name, flush=True)
    (HERE / "examples.md").write_text("\n".join(parts), encoding="utf-8")


def page_of(name: str, source: str, printed: str, picture: str) -> str:
    """Its docstring as title and sentence, its picture, what it printed, its code."""
    title, _, sentence = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0].rstrip(".").partition(": ")
    said = f"{sentence[0].upper()}{sentence[1:]}."
    code = f"```{{literalinclude}} ../examples/{name}\n:caption: examples/{name}\n```"
    return f"## {title}\n\n{said}\n\n![{title}]({picture})\n\n```text\n{printed.strip()}\n```\n\n{code}\n"


if __name__ == "__main__":
    main()
