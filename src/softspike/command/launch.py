"""Under torchrun: who this process trains with, on which device, and what is said where one of them is lost.

    torchrun --nproc-per-node 2 --max-restarts 3 -m softspike train DATA -o RUN …

On several machines, torchrun's own options (--nnodes, --rdzv-endpoint) say where they meet. After a restart the run
goes on from its last checkpoint.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

# Before there is a group: its functions would keep the one they find as a default argument, and so its threads alive.
import torch.distributed.nn
from torch.distributed.rendezvous import rendezvous

from softspike.fitting import pick_device
from softspike.train import Alone, Diverged, Processes, Team

__all__ = ["restarted", "team_of"]

_PATIENCE = 600.0  # seconds without a word from a process, after which the others give up


def restarted() -> bool:
    """Whether torchrun has started this job before."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


@contextmanager
def team_of(device: str) -> Iterator[tuple[Team, str]]:
    """The team that torchrun's environment announces, and this process's device; alone, the device asked for."""
    size, here = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    if size == 1:
        yield Alone(), device
        return
    on_gpus = pick_device(device).type == "cuda"
    if on_gpus:
        if here >= torch.cuda.device_count():
            raise ValueError(
                f"{here + 1} processes were started on a machine with {torch.cuda.device_count()} GPUs; "
                "start one process for each GPU"
            )
        torch.cuda.set_device(here)
    patience = _patience()
    _meet("cpu:gloo,cuda:nccl" if on_gpus else "gloo", timedelta(seconds=patience))
    try:
        with _losses_named(patience):
            yield Processes(), f"cuda:{here}" if on_gpus else "cpu"
    finally:
        dist.destroy_process_group()


def _meet(backend: str, patience: timedelta) -> None:
    """Join the group. Each start of the job has names of its own in torchrun's store: it may outlive a start, and then
    it still holds the addresses of processes that are gone."""
    store, rank, size = next(rendezvous("env://", timeout=patience))
    own = dist.PrefixStore(f"start {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=patience)


def _patience() -> float:
    """SOFTSPIKE_PATIENCE in seconds, where it is given."""
    given = os.environ.get("SOFTSPIKE_PATIENCE", str(_PATIENCE))
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise ValueError(
            f"SOFTSPIKE_PATIENCE is {given!r}, expected a number of seconds; leave it out for {_PATIENCE:g}"
        )
    return seconds


@contextmanager
def _losses_named(patience: float) -> Iterator[None]:
    """What a failed exchange between processes means."""
    try:
        yield
    except Diverged:
        raise
    except RuntimeError as error:
        first = re.sub(r"^\[\S+:\d+\] ", "", str(error).splitlines()[0])  # where in its source a library stumbled
        late = "timed out" in first.lower() or "timeout" in first.lower()
        if not (late or isinstance(error, dist.DistError) or "gloo" in first.lower() or "Connection" in first):
            raise
        rank = f"process {os.environ.get('RANK', '0')} of {os.environ.get('WORLD_SIZE', '1')}"
        what = f"has heard nothing from another for {patience:g} s" if late else "has lost another"
        raise RuntimeError(
            f"{rank} {what} ({first}); the last checkpoint is whole: start the same command again with --resume, or "
            "let torchrun do it with --max-restarts"
        ) from error
