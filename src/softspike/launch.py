"""Under torchrun: who this process trains with, and on which device.

    torchrun --nproc-per-node 2 -m softspike train DATA -o RUN …

On several machines, torchrun's own options (--nnodes, --rdzv-endpoint) say where they meet.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

from softspike.train import Alone, Processes, Team

__all__ = ["team_of"]

_PATIENCE = timedelta(minutes=10)  # without a word from a process, the others give up


@contextmanager
def team_of(device: str) -> Iterator[tuple[Team, str]]:
    """The team that torchrun's environment announces, and this process's device; alone, the device asked for."""
    size, here = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    if size == 1:
        yield Alone(), device
        return
    on_gpus = torch.cuda.is_available() if device == "auto" else torch.device(device).type == "cuda"
    if on_gpus:
        if here >= torch.cuda.device_count():
            raise ValueError(
                f"{here + 1} processes were started on a machine with {torch.cuda.device_count()} GPUs; "
                "start one process for each GPU"
            )
        torch.cuda.set_device(here)
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpus else "gloo", timeout=_PATIENCE)
    try:
        yield Processes(), f"cuda:{here}" if on_gpus else "cpu"
    finally:
        dist.destroy_process_group()
