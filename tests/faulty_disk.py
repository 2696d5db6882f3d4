"""Run by test_faults.py in a mount namespace of its own: training on a disk that fills up, turns read-only, or loses
the folder. Prints, for each fault, the exit code, what was said, and what was left."""

import contextlib
import gc
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from softspike.cli import app
from softspike.command import jobs
from softspike.data import synthetic
from softspike.run import RunFolder

torch.set_num_threads(1)
WORDS = ["train", "data.npy", "--method", "topk", "--components", "24", "--active", "3", "--steps", "60"]


def mount(*words):
    subprocess.run(["mount", *words, str(Path("disk").resolve())], check=True)


def fill():
    with open("disk/filler", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 1024):
            pass


def make_read_only():
    """Through a second mount on top: the first cannot turn, as the lock is open for writing."""
    mount("--bind", "disk")
    mount("-o", "remount,bind,ro")


def vanish():
    shutil.rmtree("disk/run")


def mend(fault):
    if fault is fill:
        os.unlink("disk/filler")
    if fault is make_read_only:
        subprocess.run(["umount", "--lazy", "disk"], check=True)


def softspike(*words, before_save=None):
    """A command, with a fault that comes just before the third checkpoint of step 30 is written."""
    save = RunFolder.save_checkpoint

    def saving(self, step, tensors):
        if step == 30 and before_save:
            before_save()
        save(self, step, tensors)

    jobs.RunFolder.save_checkpoint = saving
    said, code = io.StringIO(), 0
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            app([*words, "--checkpoint-every", "10"], prog_name="softspike")
        except SystemExit as end:
            code = end.code or 0
    jobs.RunFolder.save_checkpoint = save
    gc.collect()  # the folder is claimed for as long as a traceback holds it
    return code, [line for line in said.getvalue().splitlines() if line.startswith("softspike: ")]


def main():
    data = synthetic(256, 12, 24, 3, 0, noise=0.05, positive=False).x.numpy()
    np.save("data.npy", data)
    os.mkdir("disk")
    assert softspike(*WORDS, "-o", "whole")[0] == 0
    whole, found = Path("whole/model.safetensors").read_bytes(), {}
    for fault in (fill, make_read_only, vanish):
        mount("-t", "tmpfs", "-o", "size=2m", "tmpfs")
        code, said = softspike(*WORDS, "-o", "disk/run", before_save=fault)
        kept = RunFolder("disk/run").last_checkpoint() if fault is not vanish else None
        result = {"code": code, "said": said, "kept": kept[0] if kept else None}
        result["resumed while broken"] = softspike("train", "data.npy", "-o", "disk/run", "--resume")
        mend(fault)
        result["resumed"] = softspike("train", "data.npy", "-o", "disk/run", "--resume")[0]
        model = Path("disk/run/model.safetensors")
        result["same bits"] = model.exists() and model.read_bytes() == whole
        found[fault.__name__] = result
        subprocess.run(["umount", "--lazy", "disk"], check=True)
    print(json.dumps(found))


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    main()
