"""Run by test_lost_process.py: a softspike command as two processes of one job, of which the second stops answering
after the first checkpoint. Prints the exit code of the first."""

import os
import signal
import sys
import time
from pathlib import Path

from two_commands import started

if __name__ == "__main__":
    children = started()
    while not any(Path("run/checkpoints").glob("*.safetensors")):
        time.sleep(0.01)
    os.kill(children[1], signal.SIGSTOP)
    code = os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1])
    os.kill(children[1], signal.SIGKILL)
    os.waitpid(children[1], 0)
    print(code)
    sys.exit(0)
