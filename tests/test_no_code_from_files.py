"""Nothing that is read can run: the package never calls what would turn data into code."""

import ast
from pathlib import Path

import pytest

import softspike

ROOT = Path(softspike.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "runpy", "code"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
# A call by its last name → the argument it must be given, as a literal.
GUARDED = {"load": {"np": ("allow_pickle", False), "numpy": ("allow_pickle", False), "torch": ("weights_only", True)}}


def faults(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"imports {name}" for name in names if name.split(".")[0] in MODULES)
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
            yield f"line {node.lineno} calls {node.func.id}"
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            needed = GUARDED.get(node.func.attr, {}).get(node.func.value.id)
            given = {keyword.arg: getattr(keyword.value, "value", None) for keyword in node.keywords}
            if needed is not None and given.get(needed[0]) is not needed[1]:
                yield f"line {node.lineno} calls {node.func.value.id}.{node.func.attr} without {needed[0]}={needed[1]}"
        if any(keyword.arg == "allow_pickle" and getattr(keyword.value, "value", 1) for keyword in node.keywords):
            yield f"line {node.lineno} allows pickles"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_of_the_package_runs_data(path):
    assert list(faults(ast.parse(path.read_text(encoding="utf-8")))) == []


CAUGHT = ["import pickle", "eval(x)", "np.load(p)", "torch.load(p)", "f(p, allow_pickle=True)", "from yaml import load"]


@pytest.mark.parametrize("source", CAUGHT)
def test_the_check_notices(source):
    assert list(faults(ast.parse(source)))
