"""The recipe in CONTRIBUTING.md is true to the code: its blocks run as they stand, in order."""

import re
from pathlib import Path
from typing import Any

import torch

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_how_to_add_a_posterior_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "CONTRIBUTING.md", "exec"), names)
    assert torch.isfinite(names["loss"].total)
    assert all(torch.isfinite(p.grad).all() for p in names["coder"].parameters())


def test_the_files_it_names_exist() -> None:
    root = Path(__file__).parents[1]
    for name in re.findall(r"`(tests/[\w/]+\.py)`", TEXT):
        assert (root / name).is_file(), name
