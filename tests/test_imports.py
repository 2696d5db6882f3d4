"""Imports point left along the arrow only, and importing softspike alone is cheap."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import softspike

ROOT = Path(softspike.__file__).parent

# From left to right; what stands on one line does not import one another.
ARROW = [
    ["schedule", "disk", "visible", "notice"],  # on nothing of ours, and so left of everything
    ["kernels"],  # arithmetic on tensors; each beside the plain function it must equal
    ["data", "layers"],
    ["encoder"],
    ["posterior"],
    ["prior"],
    ["threshold"],
    ["generator"],
    ["objective"],
    ["coder", "calibration", "refit"],
    ["solver"],
    ["model"],
    ["autoencoder"],
    ["train"],
    ["metric"],
    ["looking"],
    ["report"],
    ["files"],
    ["run"],
    ["methods"],
    ["choices"],
    ["fitting"],
    ["inference", "reproduce"],
    ["face"],
    ["estimator"],
    ["sweeping"],
    ["command", "bench"],
    ["cli"],
    ["__main__"],
]
RANK = {name: rank for rank, group in enumerate(ARROW) for name in group}
FILES = sorted(ROOT.rglob("*.py"))


def stage(path):
    """The stage of the arrow that a file belongs to."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


class Running(ast.NodeTransformer):
    """Leaves out what only the type checker reads."""

    def visit_If(self, node):
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def imported_stages(path):
    """(stage, line) of every import of our own, those inside functions included."""
    for node in ast.walk(Running().visit(ast.parse(path.read_text(encoding="utf-8")))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively; name the whole module"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "softspike" else [module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "softspike" and parts[1:] and parts[1] != "__version__":
                yield parts[1], node.lineno


def test_the_map_names_every_stage():
    words = set(re.findall(r"\w+", softspike.__doc__))
    assert {name for name in RANK if name != "__main__"} <= words


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_left(path):
    here = stage(path)
    if here == "__init__":  # the door: it names what is to the right of everything, but only when asked
        assert {name for name, _ in imported_stages(path)} == {"estimator", "sweeping"}
        return
    assert here in RANK, f"{here} has no place in the arrow; give it one in tests/test_imports.py"
    for other, line in imported_stages(path):
        assert other in RANK, f"{path.name}:{line} imports softspike.{other}, which has no place in the arrow"
        assert other == here or RANK[other] < RANK[here], f"{path.name}:{line} imports {other}, right of {here}"


HEAVY = ["torch", "numpy", "scipy", "sklearn", "matplotlib", "rich", "pyarrow", "skimage"]


@pytest.mark.parametrize("module", ["softspike", "softspike.cli"])
def test_importing_is_cheap(module):
    script = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_public_names():
    assert softspike.__all__ == ["SparseCoder", "__version__", "sweep"]
    assert softspike.SparseCoder.__name__ == "SparseCoder"
    assert softspike.sweep.__name__ == "sweep"
    with pytest.raises(AttributeError, match="no attribute 'DenseCoder'"):
        softspike.DenseCoder  # noqa: B018


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_module_exports_exists(path):
    """__all__ names things that are there."""
    if path.name == "__main__.py":
        return
    name = ".".join(["softspike", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
    module = __import__(name, fromlist=["*"])
    for exported in getattr(module, "__all__", []):
        assert hasattr(module, exported)
