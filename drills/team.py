"""Two processes under torchrun, one of which is killed or hangs: python -m drills.team

A killed process: torchrun starts the job again (--max-restarts), it goes on from the last checkpoint, and the finished
model is that of an undisturbed job, byte for byte. A process that hangs (it is stopped): the other gives up after
SOFTSPIKE_PATIENCE seconds and says so.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import softspike
from softspike.data import synthetic
from softspike.run import RunFolder

__all__ = ["job", "one_hangs", "one_is_killed", "prepare"]

_WORDS = ["train", "data.npy", "--components", "24", "--active", "3", "--batch", "32", "--checkpoint-every", "20"]


def prepare(folder: Path) -> None:
    """The data, where the jobs look for it."""
    np.save(folder / "data.npy", 1 + synthetic(256, 12, 24, 3, 0, noise=0.05, positive=False).x.numpy())


def job(
    folder: Path, out: str, steps: int, restarts: int = 0, patience: float = 60, more: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """Training by two processes, begun."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "SOFTSPIKE_PATIENCE": str(patience),
        "PYTHONPATH": str(Path(softspike.__file__).parents[1]),
    }  # fmt: skip
    words = [*launcher, "-m", "softspike", *_WORDS, "--steps", str(steps), "-o", out, *more]
    return subprocess.Popen(
        words, cwd=folder, env=environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def one_is_killed(folder: Path, out: str, rank: int, steps: int = 200, more: Sequence[str] = ()) -> dict[str, object]:
    """What became of a job of which one process was killed after its second checkpoint."""
    running = job(folder, out, steps, restarts=2, more=more)
    _wait(lambda: len(RunFolder(folder / out).checkpoints()) > 1, running)
    os.kill(_worker(running.pid, rank), signal.SIGKILL)
    _, said = running.communicate(timeout=300)
    finished = folder / out / "model.safetensors"
    return {
        "exit code": running.returncode,
        "model": finished.read_bytes() if finished.exists() else said,
        "steps logged": [line["step"] for line in RunFolder(folder / out).metrics()],
    }


def one_hangs(folder: Path, out: str, rank: int, patience: float = 8) -> dict[str, object]:
    """What was said, and when, in a job of which one process stopped answering."""
    running = job(folder, out, 10**6, patience=patience)
    _wait(lambda: bool(RunFolder(folder / out).checkpoints()), running)
    stopped, begun = _worker(running.pid, rank), time.monotonic()
    os.kill(stopped, signal.SIGSTOP)
    _, said = running.communicate(timeout=180)
    sentences = [line for line in said.splitlines() if line.startswith("softspike: ")]
    return {"exit code": running.returncode, "seconds": time.monotonic() - begun, "said": sentences}


def _worker(launcher: int, rank: int) -> int:
    """The process of a rank, among the launcher's children."""
    for child in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        words = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        if f"RANK={rank}".encode() in words:
            return int(child)
    raise RuntimeError(f"no process of rank {rank} was found")


def _wait(condition: Callable[[], bool], running: subprocess.Popen[str], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if running.poll() is not None or time.monotonic() > end:
            running.kill()
            raise RuntimeError(f"the job did not get under way: {running.communicate()[1]}")
        time.sleep(0.02)


def main() -> None:
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        whole = job(folder, "whole", 200)
        assert whole.wait() == 0, whole.communicate()[1]
        model = (folder / "whole/model.safetensors").read_bytes()
        for rank in (0, 1):
            begun = time.monotonic()
            found = one_is_killed(folder, f"killed-{rank}", rank)
            same = found.pop("model") == model
            good &= same and found["exit code"] == 0
            print(f"rank {rank} killed: {json.dumps(found)}, weights {'equal' if same else 'DIFFER'}, "
                  f"{time.monotonic() - begun:.0f} s", flush=True)  # fmt: skip
        for rank in (0, 1):
            found = one_hangs(folder, f"hung-{rank}", rank)
            good &= found["exit code"] == 1 and any("has heard nothing" in line for line in found["said"])  # type: ignore
            print(f"rank {rank} hung: {json.dumps(found)}", flush=True)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
