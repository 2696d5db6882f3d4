"""Ctrl-C: the step at hand is saved, what to do next is said, and going on ends in the same bits."""

import gc
import os
import shlex
import signal
import threading

import numpy as np
import pytest
from small import QUICK, same_bits, small_data

from softspike import SparseCoder
from softspike.cli import app
from softspike.command import jobs
from softspike.data import ArrayRows
from softspike.fitting import Checkpoint
from softspike.run import RunFolder
from softspike.train import Interrupted, stop_on_interrupt


def interrupt_after(calls):
    """A stop function that presses Ctrl-C itself on the given call."""
    count = iter(range(1, calls + 1))

    def pressed(stop):
        def asked():
            if next(count, None) == calls:
                os.kill(os.getpid(), signal.SIGINT)
            return stop()

        return asked

    return pressed


def test_the_signal_stops_training_after_the_step_and_it_goes_on_bit_for_bit():
    rows, saved = ArrayRows(small_data()), {}
    whole = SparseCoder(**QUICK, max_steps=20).fit_rows(rows)
    before = signal.getsignal(signal.SIGINT)
    coder = SparseCoder(**QUICK, max_steps=20)
    with pytest.raises(Interrupted) as stopped, stop_on_interrupt() as stop:
        coder.fit_rows(rows, on_checkpoint=saved.__setitem__, stop=interrupt_after(7)(stop))
    assert signal.getsignal(signal.SIGINT) is before
    assert stopped.value.step == 7
    assert list(saved) == [7]
    again = SparseCoder(**QUICK, max_steps=20).fit_rows(rows, resume=Checkpoint(7, saved[7]))
    assert same_bits(whole.model_tensors(), again.model_tensors())


def test_a_second_signal_stops_at_once():
    def pressed_twice():
        with stop_on_interrupt() as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert stop()
            os.kill(os.getpid(), signal.SIGINT)
            pytest.fail("the second signal was ignored")

    with pytest.raises(KeyboardInterrupt) as stopped:
        pressed_twice()
    assert not isinstance(stopped.value, Interrupted)


def test_a_signal_after_the_last_step_is_not_lost():
    with pytest.raises(KeyboardInterrupt), stop_on_interrupt():
        os.kill(os.getpid(), signal.SIGINT)


def test_other_threads_are_left_alone():
    """Python hands signals to the main thread only."""
    answers = []

    def work():
        with stop_on_interrupt() as stop:
            answers.append(stop())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [False]


@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_the_demo_says_how_to_go_on_and_does(tmp_path, monkeypatch, capsys):
    """On a few random patches instead of its own."""
    random = np.random.default_rng(0)
    patches = [ArrayRows(random.standard_normal((n, 256), dtype=np.float32)) for n in (220, 60)]
    monkeypatch.setattr(jobs, "demo_rows", lambda seed: patches)
    monkeypatch.chdir(tmp_path)
    fit = SparseCoder.fit_rows

    def interrupted(self, *args, stop, **options):
        return fit(self, *args, stop=interrupt_after(3)(stop), **options)

    with monkeypatch.context() as patch:
        patch.setattr(SparseCoder, "fit_rows", interrupted)
        with pytest.raises(SystemExit) as end:
            app(["demo", "-o", "run/my demo", "--steps", "5"])
    assert end.value.code == 130
    del end
    gc.collect()  # the folder is claimed for as long as the traceback holds it
    said, hint = capsys.readouterr().err.split("; go on with: softspike ")
    assert said == "softspike: interrupted after step 3, which is saved"
    assert RunFolder("run/my demo").last_checkpoint()[0] == 3

    app(shlex.split(hint), standalone_mode=False)  # as a shell would read it
    assert {"model.safetensors", "report.html", "summary.json"} <= {
        path.name for path in (tmp_path / "run/my demo").iterdir()
    }
    assert [line["step"] for line in RunFolder("run/my demo").metrics()] == [5]
