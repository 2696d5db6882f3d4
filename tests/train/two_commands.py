"""Run by test_team.py: the same softspike command as two processes of one job, forked after the slow imports."""

import os
import socket
import sys

import torch

import softspike.command.jobs  # noqa: F401
from softspike.cli import app

torch.set_num_threads(1)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started():
    """The command line given to this process, as the two processes of one job: their numbers."""
    os.environ |= {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            app(prog_name="softspike")
        children.append(child)
    return children


if __name__ == "__main__":
    print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in started()))
    sys.exit(0)
