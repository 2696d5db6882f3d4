"""softspike commands, each in a process of its own, forked from one that has loaded all that is slow to load."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

_SERVER = """
import contextlib, json, os, sys, tempfile
import numpy as np
import torch
torch.set_num_threads(1)
import pyarrow.parquet, scipy.io, softspike.command.jobs
from softspike.cli import app
torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # torch imports its compiler here

# What is loaded at its first use, such as machine code, is loaded here by a short training, which nobody hears of.
ears = [os.dup(1), os.dup(2)]
nowhere = os.open(os.devnull, os.O_RDWR)
os.dup2(nowhere, 1), os.dup2(nowhere, 2)
with contextlib.suppress(Exception, SystemExit), tempfile.TemporaryDirectory() as place:
    np.save(f"{place}/x.npy", np.random.default_rng(0).standard_normal((300, 8), dtype=np.float32))
    short = ["--method", "topk", "--components", "12", "--active", "2", "--steps", "2", "--device", "cpu"]
    app(["train", f"{place}/x.npy", "-o", f"{place}/run", *short], standalone_mode=False)
os.dup2(ears[0], 1), os.dup2(ears[1], 2)
for number in (nowhere, *ears):
    os.close(number)

for line in sys.stdin:
    job = json.loads(line)
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        continue
    code = 1
    try:
        os.chdir(job["folder"])
        for number, name in ((0, os.devnull), (1, job["out"]), (2, job["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
        sys.argv[1:] = job["words"]
        app(prog_name="softspike")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
"""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The error, which must be a single line of ours."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("softspike: "), self.err
        return lines[0]


class Running(NamedTuple):
    pid: int
    replies: IO[str]
    prints: Path

    def wait(self) -> Outcome:
        code = int(self.replies.readline())
        out, err = ((self.prints / name).read_text(encoding="utf-8") for name in ("out", "err"))
        shutil.rmtree(self.prints)
        return Outcome(code, out, err)


def start(*words: object, folder: Path = Path()) -> Running:
    """A command that runs beside the test; wait for it before the next one."""
    server, prints = _server(), Path(tempfile.mkdtemp(prefix="softspike-command-"))
    assert server.stdin is not None
    assert server.stdout is not None
    job = {"words": [str(word) for word in words], "folder": str(folder.resolve())}
    print(json.dumps({**job, "out": str(prints / "out"), "err": str(prints / "err")}), file=server.stdin, flush=True)
    return Running(int(server.stdout.readline()), server.stdout, prints)


def softspike(*words: object, folder: Path = Path()) -> Outcome:
    """A command, waited for."""
    return start(*words, folder=folder).wait()


@cache
def _server() -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
