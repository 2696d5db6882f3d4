"""Faults put into the library by hand, each of which the tests must notice: python -m drills.mutants [word …]

Every fault is applied to a copy of the package in a temporary folder, and the tests that should notice it are run
there, the smallest files first. For each fault the test that caught it is named; where none does, a test is
missing.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["MUTANTS", "Mutant", "tried"]

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    name: str
    file: str  # below src/softspike
    old: str  # occurs once
    new: str
    tests: str  # files below tests/, in the order they are tried


MUTANTS = [
    Mutant(
        "the shift has the wrong sign",
        "threshold/functions.py",
        "(noise.abs() > level) * location",
        "-(noise.abs() > level) * location",
        "threshold/test_laws.py",
    ),
    Mutant(
        "active where the noise is small",
        "threshold/functions.py",
        "(noise.abs() > level) * location",
        "(noise.abs() < level) * location",
        "threshold/test_laws.py",
    ),
    Mutant(
        "a straight-through draw that is not detached",
        "threshold/gradient.py",
        ".transform(s.detach())",
        ".transform(s)",
        "threshold/test_gradient.py",
    ),
    Mutant(
        "the level's gradient is cut off",
        "threshold/gradient.py",
        "type(law)(fixed, law.level, validate",
        "type(law)(fixed, law.level.detach(), validate",
        "threshold/test_gradient.py",
    ),
    Mutant(
        "KL the wrong way round",
        "objective/evidence.py",
        "kl_divergence(q, self.prior.expand(q.batch_shape))",
        "kl_divergence(self.prior.expand(q.batch_shape), q)",
        "objective/test_samples.py objective/test_importance.py",
    ),
    Mutant(
        "KL averaged over components",
        "objective/evidence.py",
        "self.prior.expand(q.batch_shape)).sum(-1)",
        "self.prior.expand(q.batch_shape)).mean(-1)",
        "objective/test_samples.py objective/test_importance.py",
    ),
    Mutant(
        "squared error summed over features",
        "objective/evidence.py",
        ".square().flatten(2).mean(-1)",
        ".square().flatten(2).sum(-1)",
        "objective/test_samples.py objective/test_importance.py",
    ),
    Mutant(
        "the worst sample wins",
        "objective/samples.py",
        "evidence.scores(evidence.values(noise)).min(0)",
        "evidence.scores(evidence.values(noise)).max(0)",
        "objective/test_samples.py",
    ),
    Mutant(
        "a later part never wins",
        "objective/samples.py",
        "better = misfit < least",
        "better = misfit > least",
        "objective/test_samples.py",
    ),
    Mutant(
        "the importance bound forgets 1/J",
        "objective/importance.py",
        " - math.log(log_weights.shape[0])",
        "",
        "objective/test_importance.py",
    ),
    Mutant(
        "warm-up one step early",
        "schedule.py",
        "_at_least(step - self.delay, 0)",
        "_at_least(step + 1 - self.delay, 0)",
        "test_schedule.py",
    ),
    Mutant(
        "one cycle peaks one step late",
        "schedule.py",
        "max(self.rise * self.n_steps - 1, 1e-9)",
        "max(self.rise * self.n_steps, 1e-9)",
        "test_schedule.py",
    ),
    Mutant(
        "rates of the next step",
        "train/recipe.py",
        'self.groups[group["name"]].rate(step)',
        'self.groups[group["name"]].rate(step + 1)',
        "train/test_dictionary_step.py",
    ),
    Mutant(
        "every epoch in the same order",
        "train/order.py",
        "epoch_order(seed, epoch, n_rows)",
        "epoch_order(seed, 0, n_rows)",
        "train/test_determinism.py",
    ),
    Mutant(
        "batches overlap by a row",
        "train/order.py",
        "[index * size : (index + 1) * size]",
        "[max(index * size - 1, 0) : (index + 1) * size - (index > 0)]",
        "train/test_determinism.py",
    ),
    Mutant(
        "gradients are not shared between processes",
        "train/step.py",
        "        self.team.average_gradients(self.coder.parameters())\n",
        "",
        "train/test_team.py",
    ),
    Mutant(
        "gradients are added up, not averaged",
        "train/team.py",
        "_put(flat.div_(self.size), gradients)",
        "_put(flat, gradients)",
        "train/test_team.py",
    ),
    Mutant(
        "a process keeps its own levels",
        "train/loop.py",
        "            team.follow(kept)\n",
        "",
        "train/test_team.py",
    ),
    Mutant(
        "all processes draw the same noise",
        "train/order.py",
        "return _mix(seed, 1, step, rank) if rank else _mix(seed, 1, step)",
        "return _mix(seed, 1, step)",
        "train/test_determinism.py",
    ),
    Mutant(
        "a partial moment with the wrong sign",
        "threshold/partial.py",
        "* above + m * sigma * density)",
        "* above - m * sigma * density)",
        "threshold/test_laws.py",
    ),
    Mutant(
        "the survival of the wrong tail",
        "threshold/partial.py",
        "torch.special.log_ndtr((base.loc - point) / base.scale)",
        "torch.special.log_ndtr((point - base.loc) / base.scale)",
        "threshold/test_laws.py",
    ),
    Mutant(
        "KL of Bernoullis with the wrong sign",
        "prior/divergence.py",
        "return gamma * on + (1 - gamma) * off",
        "return -(gamma * on + (1 - gamma) * off)",
        "prior/test_divergence.py",
    ),
    Mutant(
        "spikes that are too rare",
        "posterior/spike_slab.py",
        "hard = (noisy > 0)",
        "hard = (noisy > 0.2)",
        "posterior/test_noise.py",
    ),
    Mutant(
        "a slab's variance without its spike",
        "posterior/spike_slab.py",
        "gamma * self.slab.variance + gamma * (1 - gamma)",
        "gamma * self.slab.variance + gamma",
        "posterior/test_noise.py threshold/test_laws.py",
    ),
    Mutant(
        "the closed-form bound loses a term",
        "objective/hard.py",
        "second + (level - location) * other",
        "second",
        "objective/test_expected.py",
    ),
    Mutant(
        "gradients leave the sphere",
        "generator/dictionary.py",
        "self.weight.grad -= self.weight",
        "self.weight.grad += self.weight",
        "generator/test_dictionary.py",
    ),
    Mutant(
        "the level is steered away from its target",
        "threshold/tracked.py",
        "move = -0.3 * (self.count",
        "move = 0.3 * (self.count",
        "threshold/test_tracked.py",
    ),
    Mutant(
        "FISTA shrinks by the whole penalty",
        "solver/fista.py",
        "step * level[rows], positive)",
        "level[rows], positive)",
        "solver/test_lasso.py",
    ),
    Mutant(
        "the cut is one component off",
        "threshold/cut.py",
        "return ordered[first_over]",
        "return ordered[max(first_over - 1, 0)]",
        "threshold/test_cut.py",
    ),
    Mutant(
        "variance divided by n − 1",
        "data/standardise.py",
        "self.squares / max(self.count, 1)",
        "self.squares / max(self.count - 1, 1)",
        "data/test_standardise.py",
    ),
    Mutant(
        "moments merged without the shift of means",
        "data/standardise.py",
        " + delta.square() * (self.count * count / total)",
        "",
        "data/test_standardise.py",
    ),
    Mutant(
        "moments of the optimiser are not saved",
        "train/state.py",
        'tensors[f"optimizer.{number}.{key}"] = value',
        "pass",
        "train/test_resume.py",
    ),
    Mutant(
        "restored moments share memory with the checkpoint",
        "train/state.py",
        "[key] = value.clone()",
        "[key] = value",
        "train/test_going_back.py",
    ),
    Mutant(
        "after a return the rate stays as it was",
        "train/recovery.py",
        "return recipe.slowed(FACTOR**self.tries) if self.tries else recipe",
        "return recipe",
        "train/test_going_back.py",
    ),
    Mutant(
        "a return that puts nothing back",
        "train/recovery.py",
        "        self.put(self.tensors)\n",
        "",
        "train/test_going_back.py",
    ),
    Mutant(
        "files are renamed before they are on the disk",
        "files.py",
        "                os.fsync(file.fileno())\n",
        "",
        "test_run.py",
    ),
    Mutant(
        "checksums are not compared",
        "files.py",
        'if metadata.pop("sha256", None) != digest(tensors, metadata):',
        'if metadata.pop("sha256", None) is None:',
        "test_run.py",
    ),
    Mutant(
        "a second process is let in",
        "run.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        "test_run.py",
    ),
    Mutant(
        "SIGTERM ends training at once",
        "train/interrupt.py",
        "_SIGNALS = (signal.SIGINT, signal.SIGTERM)",
        "_SIGNALS = (signal.SIGINT,)",
        "test_faults.py",
    ),
    Mutant(
        "the server answers the whole network",
        "report/serve.py",
        '_LOOPBACK = "127.0.0.1"',
        '_LOOPBACK = "0.0.0.0"',
        "report/test_serve.py",
    ),
    Mutant(
        "archives may hold pickles",
        "data/arrays.py",
        "np.load(path, allow_pickle=False)",
        "np.load(path, allow_pickle=True)",
        "data/test_broken_files.py",
    ),
]


def tried(mutant: Mutant) -> str | None:
    """The test that caught the fault, or None."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for part in ("src", "tests", "drills", "benchmarks", "experiments"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("pyproject.toml", "CONTRIBUTING.md", "README.md"):
            shutil.copy(ROOT / part, copy / part)
        path = copy / "src/softspike" / mutant.file
        content = path.read_text(encoding="utf-8")
        if content.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.name}: {mutant.file} does not hold {mutant.old!r} exactly once")
        path.write_text(content.replace(mutant.old, mutant.new), encoding="utf-8")
        return next((caught for test in mutant.tests.split() if (caught := _caught(copy, test))), None)


def _caught(copy: Path, test: str) -> str | None:
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", f"tests/{test}"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=environment)
    if done.returncode == 0:
        return None
    named = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if named is None:
        raise SystemExit(f"{test} did not run: {done.stdout[-500:]}{done.stderr[-500:]}")
    return named[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of the names of faults to try (default: all)")
    words, survived, begun = parser.parse_args().words, 0, time.monotonic()
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.name for word in words)]
    for mutant in chosen:
        caught = tried(mutant)
        survived += caught is None
        print(f"{mutant.name}: {f'caught by {caught}' if caught else 'SURVIVED'}", flush=True)
    print(f"{len(chosen)} faults, {survived} survived ({time.monotonic() - begun:.0f} s)")
    raise SystemExit(1 if survived else 0)


if __name__ == "__main__":
    main()
