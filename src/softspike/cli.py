"""The softspike command. Heavy imports wait until a command runs, so that --help is quick."""

from pathlib import Path
from typing import Annotated, Any

import typer

from softspike import __version__
from softspike.command.config import config_file
from softspike.command.exits import again, plain_errors
from softspike.reproduce.command import add_commands

app = typer.Typer(
    name="softspike", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Sparse codes with exact zeros, learned thresholds and closed-form probabilities.",
)  # fmt: skip
data_app = typer.Typer(no_args_is_help=True, help="About the data sets of the paper.")
app.add_typer(data_app, name="data")
reproduce_app = typer.Typer(no_args_is_help=True, help="The paper's tables and figures, with its numbers beside ours.")
app.add_typer(reproduce_app, name="reproduce")


_EVERY = 1000  # steps between checkpoints


def _unset(text: str) -> Any:
    """An option that is None unless given; its help says what happens then."""
    return typer.Option(help=text, show_default=False)


Data = Annotated[
    Path,
    typer.Argument(
        help="npy, npz, mat, safetensors, parquet, idx, a folder of npy shards or of images, CelebA or an MNIST."
    ),
]
Run = Annotated[Path, typer.Argument(help="A run folder.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The run folder to write.", show_default=False)]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out from its last checkpoint.")]
Every = Annotated[int, typer.Option(help="Steps between checkpoints.")]
Steps = Annotated[int | None, _unset("Training steps (default: 3000).")]
Seed = Annotated[int | None, _unset("Seed of all random numbers (default: 0).")]
Key = Annotated[
    str | None,
    _unset("Array of an npz, mat or safetensors file, column of a parquet file, or part (train, test) of a set."),
]
Method = Annotated[
    str | None,
    _unset("The method; an unknown name lists all (default: hard-gaussian; with --generator conv, centred-gaussian)."),
]
Components = Annotated[int | None, _unset("Dictionary atoms (default: as many as features).")]
Sparsity = Annotated[float | None, _unset("Target share of active components (default: 0.1).")]
Active = Annotated[float | None, _unset("Target mean count of active components, instead of --sparsity.")]
Samples = Annotated[int | None, _unset("Posterior samples J per input, for methods that sample (default: 20).")]
Batch = Annotated[int | None, _unset("Rows per step (default: 256).")]
Rate = Annotated[float | None, _unset("Peak learning rate (default: the method's own).")]
Positive = Annotated[bool | None, _unset("Codes ≥ 0, or of either sign (default: either).")]
Generator = Annotated[str | None, _unset("dictionary (the default), or conv: convolutional networks for images.")]
Mirrored = Annotated[
    bool | None,
    _unset("Mirror each image with probability ½, anew in every epoch (default: only for CelebA's official folder)."),
]
Beta = Annotated[float | None, _unset("Weight of the divergence, for methods that sample (default: 0.01).")]
Precision = Annotated[str | None, _unset("Networks in float32, bfloat16 or float16 (default: by model and device).")]
Constant = Annotated[str | None, _unset("error refuses constant features, keep lets them pass (default: error).")]
Config = Annotated[
    Path | None,
    _unset(
        "A JSON file of SparseCoder parameters, such as correction_rounds and dictionary_refits, which have no option "
        "of their own; options override it."
    ),
]


Logs = Annotated[list[str] | None, _unset("Also write csv or tensorboard into the run folder; may be repeated.")]


def _version(show: bool) -> None:
    if show:
        print(f"softspike {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn sparse codes, use them, measure them."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The run folder to write; where one holds a run, OUT-2, OUT-3 …")
    ] = Path("run/demo"),
    steps: Steps = None,
    seed: Seed = None,
    device: Device = "auto",
    resume: Resume = False,
) -> None:
    """Train 256 components on patches of the embedded photographs: under 2 minutes on 2 cores."""
    out = out if resume else _free_folder(out)
    with plain_errors(out, again("demo", "-o", out, options=[("--device", None if device == "auto" else device)])):
        from softspike.command.jobs import demo_job

        demo_job(out, steps, seed, device, resume)


@app.command()
def train(
    data: Data,
    out: Out,
    method: Method = None,
    generator: Generator = None,
    components: Components = None,
    sparsity: Sparsity = None,
    active: Active = None,
    samples: Samples = None,
    steps: Steps = None,
    batch: Batch = None,
    rate: Rate = None,
    beta: Beta = None,
    positive: Positive = None,
    mirrored: Mirrored = None,
    constant_features: Constant = None,
    seed: Seed = None,
    device: Annotated[str | None, typer.Option(help="auto (the default), cpu or cuda.", show_default=False)] = None,
    precision: Precision = None,
    key: Key = None,
    config: Config = None,
    checkpoint_every: Every = _EVERY,
    log: Logs = None,
    resume: Resume = False,
) -> None:
    """Train a coder on DATA and leave a run folder. Under torchrun, on all its processes together."""
    options = {
        "method": method, "n_components": components, "sparsity": sparsity, "n_active": active, "n_samples": samples,
        "max_steps": steps, "batch_size": batch, "learning_rate": rate, "positive": positive,
        "constant_features": constant_features, "random_state": seed, "device": device, "generator": generator,
        "beta": beta, "mirrored": mirrored, "precision": precision,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    with plain_errors():
        from softspike.command.checking import refuse_both

        parameters = {**config_file(config), **given}
        refuse_both(given)
    # What a run folder does not know; all else is in its config.json.
    every = None if checkpoint_every == _EVERY else checkpoint_every
    kept = {"--key": key, "--device": parameters.get("device"), "--checkpoint-every": every}
    logs = [("--log", name) for name in log or []]
    with plain_errors(out, again("train", data, "-o", out, options=[*kept.items(), *logs])):
        from softspike.command.jobs import train_job

        train_job(data, out, parameters, key, resume, checkpoint_every, log or [], set(given))


@app.command()
def encode(
    run: Run,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The codes to write: CSR, scipy's npz.")],
    key: Key = None,
    device: Device = "auto",
) -> None:
    """Write the sparse codes of DATA."""
    with plain_errors():
        from softspike.command.jobs import encode_job

        encode_job(run, data, out, key, device)


@app.command()
def evaluate(run: Run, data: Data, key: Key = None, device: Device = "auto") -> None:
    """Measure a trained coder on DATA, beside its baselines."""
    with plain_errors():
        from softspike.command.jobs import evaluate_job

        evaluate_job(run, data, key, device)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; several are shown side by side.")],
    data: Annotated[Path | None, _unset("Data to measure on (default: what each run was trained on).")] = None,
    key: Key = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The page to write (default: RUN/report.html, for several ./report.html).",
            show_default=False,
        ),
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the page on this machine's loopback address.")] = False,
    port: Annotated[int | None, _unset("The port for --serve (default: a free one).")] = None,
    device: Device = "auto",
) -> None:
    """Write a page of what was learned: figures, dictionary, inputs, curves."""
    with plain_errors():
        from softspike.command.reporting import report_job

        report_job(runs, data, key, out, serve, port, device)


@app.command()
def runs(folder: Annotated[Path, typer.Argument(help="Where to look, and a few folders below.")] = Path()) -> None:
    """List runs with their figures."""
    with plain_errors():
        from softspike.command.listing import runs_job

        runs_job(folder)


@app.command()
def show(run: Run) -> None:
    """Print the summary of a run and, on a terminal, a small picture of its dictionary."""
    with plain_errors():
        from softspike.command.listing import show_job

        show_job(run)


@app.command()
def inspect(
    run: Run,
    data: Data,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write (default: RUN/inspect).")] = None,
    beside: Annotated[
        list[Path] | None, typer.Option("--with", help="A further run to show reconstructions of.")
    ] = None,
    components: Annotated[str | None, typer.Option(help="Components to lead through their range, as in 3,17.")] = None,
    key: Key = None,
    device: Device = "auto",
) -> None:
    """Draw what the components of a trained coder stand for, by its codes of DATA."""
    with plain_errors():
        from softspike.command.inspecting import inspect_job

        inspect_job(run, data, out, key, beside or (), components, device)


@app.command()
def bench(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write OUT.md and OUT.json.")] = None,
    components: Annotated[str | None, _unset("Numbers of atoms, with commas (default: 256,1024,4096).")] = None,
    signals: Annotated[int | None, _unset("Signals to code (default: 10000).")] = None,
    rounds: Annotated[int | None, _unset("Rounds in which all methods take turns (default: 5).")] = None,
    steps: Annotated[int | None, _unset("Training steps of the encoders (default: 1000).")] = None,
    seconds: Annotated[float | None, _unset("What one turn of a slow method may take (default: 3).")] = None,
    peers: Annotated[str | None, _unset("Only these peers, with commas (default: all that are installed).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, to see that it works.")] = False,
) -> None:
    """Time this library beside scikit-learn, SPAMS, celer and skglm, with what each time buys."""
    with plain_errors():
        from softspike.bench.job import Size, bench_job

        given: dict[str, Any] = {
            "components": _numbers(components), "signals": signals, "rounds": rounds, "training_steps": steps,
            "seconds": seconds, "peers": None if peers is None else peers.split(","),
        }  # fmt: skip
        size = Size.quick() if quick else Size()
        bench_job(out, size._replace(**{name: value for name, value in given.items() if value is not None}))


@data_app.command()
def olshausen(
    path: Annotated[
        Path | None, typer.Argument(help="IMAGES.mat or an npy of the ten whitened images.", show_default=False)
    ] = None,
) -> None:
    """Say where the whitened Olshausen–Field images come from, and verify a file of them, if one is given."""
    with plain_errors():
        from softspike.data.olshausen import EXPLANATION, load_olshausen

        print(EXPLANATION)
        if path is None:
            return
        images = load_olshausen(path)
        print(f"{path}: verified, {len(images)} images of {images.shape[1]}×{images.shape[2]}.")


add_commands(reproduce_app, plain_errors)


def _free_folder(path: Path) -> Path:
    """The path itself, or the first of path-2, path-3 … that holds no run yet."""
    number, candidate = 1, path
    while (candidate / "config.json").exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(f"{text!r} was given, expected whole numbers with commas, as in 256,1024") from error
