"""The book is true to the code: its blocks run, its links lead somewhere, and it builds without a warning."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small import asks_for_probabilities

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md"))]
RUN = ("start.md", "concepts.md", "choosing.md")  # pages whose blocks run as they stand, but for fewer steps


@pytest.mark.usefixtures("one_refit")
@pytest.mark.parametrize("name", RUN)
def test_the_blocks_of_a_page_run(name, tmp_path, monkeypatch, request):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    if not asks_for_probabilities("".join(blocks)):
        request.getfixturevalue("no_simulation")
    names = {}
    for block in blocks:
        exec(compile(re.sub(r"max_steps=\d+", "max_steps=20", block), name, "exec"), names)
    pyplot.close("all")


@pytest.mark.usefixtures("one_refit")
def test_the_ten_lines_of_the_readme_run(tmp_path, monkeypatch, request):
    """With fewer rows and steps."""
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert block.count("\n") <= 12
    short = block.replace("80_000, 4_000", "1_000, 200").replace("random_state=0", "random_state=0, max_steps=8")
    assert short.count("1_000, 200") == short.count("max_steps=8") == 1
    if not asks_for_probabilities(short):
        request.getfixturevalue("no_simulation")
    names = {}
    exec(compile(short, "README.md", "exec"), names)
    assert names["X_"].shape == (200, 256)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """To files; what is after # is checked by the build."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert re.match(r"https?:", target) or (page.parent / target).exists(), target


def test_every_example_is_in_the_gallery():
    text = (DOCS / "examples.md").read_text(encoding="utf-8")
    for example in (ROOT / "examples").glob("plot_*.py"):
        assert f"../examples/{example.name}" in text
        assert f"(images/{example.stem}.png)" in text


def test_it_builds_without_a_warning(tmp_path):
    for tool in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(tool, reason=f"{tool} is not installed: pip install '.[docs]'")
    words = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "-b", "html"]
    built = subprocess.run([*words, DOCS, tmp_path / "html"], capture_output=True, text=True, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    api = (tmp_path / "html/api/estimator.html").read_text(encoding="utf-8")
    import softspike

    for name in set(softspike.__all__) - {"__version__"}:
        assert f'id="softspike.{name}"' in api
    for method in ("transform", "save", "load", "plot_components"):
        assert f'id="softspike.SparseCoder.{method}"' in api
