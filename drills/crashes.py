"""A training killed at random moments, again and again: python -m drills.crashes [--kills 100]

Every restart must go on from at most one checkpoint interval before the newest step that had been reached, and the
finished model must be, byte for byte, that of a run that nobody disturbed. A third of the kills wait until a checkpoint
or the log is being written: until their temporary file is there, or until their size changes.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import softspike
from softspike.data import synthetic
from softspike.run import RunFolder

__all__ = ["Outcome", "drill"]

_SERVER = """
import os, sys, json
import torch
torch.set_num_threads(1)
import softspike.command.jobs
from softspike.cli import app
torch.optim.Adam([torch.zeros(1, requires_grad=True)])
for line in sys.stdin:
    words = json.loads(line)
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open("errors.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
            app(words, prog_name="softspike")
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(1)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Outcome(NamedTuple):
    kills: int
    moments: dict[str, int]  # what was going on when a kill came
    furthest_back: int  # steps between the newest one reached and the one gone on from
    interval: int
    same_bits: bool
    same_log: bool
    left_over: list[str]  # files that nobody owns

    @property
    def good(self) -> bool:
        return self.same_bits and self.same_log and self.furthest_back <= self.interval and not self.left_over

    def lines(self) -> str:
        moments = ", ".join(f"{count} {moment}" for moment, count in sorted(self.moments.items()))
        return (
            f"{self.kills} kills ({moments})\n"
            f"furthest back: {self.furthest_back} steps, with a checkpoint every {self.interval}\n"
            f"finished weights {'equal' if self.same_bits else 'DIFFER'}, "
            f"log {'equal' if self.same_log else 'DIFFERS'}; left over: {', '.join(self.left_over) or 'nothing'}"
        )


class Server:
    """Runs softspike commands in forked processes, which spares each the imports."""

    def __init__(self, folder: Path):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(softspike.__file__).parents[1])}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
            env=environment,
        )  # fmt: skip

    def start(self, words: list[str]) -> int:
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(words), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def ended(self) -> int:
        assert self.process.stdout
        return int(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def drill(
    kills: int, steps: int, interval: int, seed: int = 0, told: Callable[[int], object] = lambda n: None
) -> Outcome:
    """Train undisturbed; train again under fire; compare."""
    chance, moments, furthest = random.Random(seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "data.npy", 1 + synthetic(400, 12, 24, 3, 0, noise=0.05).x.numpy())
        common = ["train", "data.npy", "--checkpoint-every", str(interval)]
        fresh = [*common, "--components", "24", "--active", "3", "--steps", str(steps), "--batch", "16"]
        server = Server(folder)
        server.start([*fresh, "-o", "whole"])
        assert server.ended() == 0, (folder / "errors.txt").read_text()
        run, done = RunFolder(folder / "run"), 0
        while True:
            before = _reached(run)
            words = [*common, "-o", "run", "--resume"] if (run.path / "config.json").exists() else [*fresh, "-o", "run"]
            pid = server.start(words)
            moment = _wait(run.path, chance, before) if done < kills else "none"
            if done < kills:
                os.kill(pid, signal.SIGKILL)
            code = server.ended()
            if code == 0:
                break
            assert code == -signal.SIGKILL, (folder / "errors.txt").read_text()
            done, moments[moment] = done + 1, moments[moment] + 1
            furthest = max(furthest, _reached(run) - (run.last_checkpoint() or (0,))[0])
            told(done)
        server.close()
        return Outcome(
            done, dict(moments), furthest, interval, _bytes(run.path) == _bytes(folder / "whole"),
            _log(run.path) == _log(folder / "whole"), _left_over(run.path),
        )  # fmt: skip


def _wait(run: Path, chance: random.Random, reached: int) -> str:
    """Until a random moment after training has gone on from where it was, or until a file is being written."""
    kind = chance.choice(["anywhere", "anywhere", "at a checkpoint", "at the log"])
    deadline = time.monotonic() + 20
    if kind == "at a checkpoint":
        while time.monotonic() < deadline:
            if any(name.endswith(".tmp") for name in _names(run / "checkpoints")):
                return "while a checkpoint was written"
    elif kind == "at the log":
        size = _size(run / "metrics.jsonl")
        while time.monotonic() < deadline:
            if _size(run / "metrics.jsonl") > size:
                return "as the log was appended to"
    else:
        time.sleep(chance.uniform(0.0, 1.5))
    return "at any moment"


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _reached(run: RunFolder) -> int:
    """The newest step that anything on the disk tells of."""
    logged = [line["step"] for line in run.metrics()[-1:]]
    saved = [int(path.stem.removeprefix("step-")) for path in run.checkpoints()[:1]]
    return max([0, *logged, *saved])


def _bytes(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


def _log(run: Path) -> list[dict[str, object]]:
    return [{**json.loads(line), "seconds": 0} for line in (run / "metrics.jsonl").read_text().splitlines()]


def _left_over(run: Path) -> list[str]:
    return sorted(path.name for path in run.rglob("*.tmp"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--every", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begun = time.monotonic()
    outcome = drill(given.kills, given.steps, given.every, given.seed)
    print(f"{outcome.lines()} ({time.monotonic() - begun:.0f} s)")
    raise SystemExit(0 if outcome.good else 1)


if __name__ == "__main__":
    main()
