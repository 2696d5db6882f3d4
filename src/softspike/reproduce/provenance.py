"""Where a figure comes from: version, commit, device, command."""

import os
import platform
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch

import softspike

__all__ = ["provenance"]


def provenance(device: torch.device | str) -> dict[str, Any]:
    return {
        "softspike": softspike.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": _device(torch.device(device)),
        "command": _command(),
    }


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


def _command() -> str:
    """As typed, without the folders of this machine."""
    return " ".join(["softspike", *(re.sub(r"[^=]*/", "", word) or word for word in sys.argv[1:])])


@cache
def _commit() -> str | None:
    """Of the checkout that the package runs from, with a + where files have changed.

    A copy without its history takes it from the environment's SOFTSPIKE_COMMIT; None where that is not set either.
    """
    if "SOFTSPIKE_COMMIT" in os.environ:
        return os.environ["SOFTSPIKE_COMMIT"]
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"],
            cwd=Path(softspike.__file__).parent, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
