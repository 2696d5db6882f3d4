"""Where to compute."""

import torch

__all__ = ["pick_device"]


def pick_device(name: str) -> torch.device:
    """'auto' is a GPU where there is one; a device that is asked for by name must exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device is {name!r}, expected 'auto', 'cpu' or 'cuda'") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r} but no GPU is available here; use device='cpu' or 'auto'")
    if device.type not in ("cpu", "cuda") and not _computes(device):
        raise ValueError(f"device is {name!r}, which cannot be computed on here; use device='cpu' or 'auto'")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device is {name!r} but there are {torch.cuda.device_count()} GPUs here, numbered from 0")
    return device


def _computes(device: torch.device) -> bool:
    """Whether numbers can be put there and come back: not so on 'meta', nor on what this torch was not built for."""
    try:
        return float(torch.ones(1, device=device)) == 1
    except Exception:  # each kind of device has errors of its own
        return False
