"""softspike reproduce …: heavy imports wait until a command runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from softspike.reproduce.deep.command import add_deep_commands
from softspike.reproduce.options import GO_ON, Device, Minutes, PlainErrors, option

__all__ = ["add_commands"]

HELP = {
    "table1": "Table 1: FISTA and seven variational methods, J = 1 and 20, with the audit of every measure.",
    "table2": "Table 2: straight-through against subgradient: collapse and divergence.",
    "snr": "Signal-to-noise ratio of the gradients of inference network and generator.",
    "jaccard": "Support consistency of average, max and importance-weighted training.",
    "dictionaries": "The learned dictionaries, one picture each.",
}


Data = Annotated[Path | None, option("The Olshausen–Field images: IMAGES.mat or npy.")]
Quick = Annotated[bool, option("A small version on embedded photographs: minutes on 2 cores.", "--quick")]
Seeds = Annotated[str | None, option("Seeds, with commas (default: 0,1337,747; quick: 0).")]
Steps = Annotated[int | None, option("Training steps (default: the paper's 240,000; quick: 2,000).")]
Conventions = Annotated[
    str | None,
    option(
        "scripts, equations (the paper's), both (default; quick: scripts), or scripts with one switch set otherwise: "
        "scripts-logit, -unclipped (log γ = log σ(raw) where the scripts clip it at 0), -start-0, -no-delay, "
        "-no-norm, -single-gradient."
    ),
]
Methods = Annotated[str | None, option("Only these methods, with commas (tables over methods).")]
Samplings = Annotated[str | None, option("Of mean, max and iw only these, with commas (jaccard).")]
Together = Annotated[int | None, option("Models trained at once (default: 1; on a GPU all that fit together).")]
Cells = Annotated[
    Path | None,
    option("Where trained models are kept (default: OUT/cells); one folder for several tables spares training twice."),
]
Others = Annotated[list[Path] | None, option("Also count what these folders have measured.", "--from")]
TrainOnly = Annotated[bool, option("Train and save; measure later, perhaps elsewhere.", "--train-only")]


def add_commands(app: typer.Typer, plain_errors: PlainErrors) -> None:
    """One command for each table and figure, all with the same options, and one for the page of results."""
    for name, text in HELP.items():
        app.command(name, help=text)(_command(name, plain_errors))
    add_deep_commands(app, plain_errors)
    app.command("page", help="Write the page of results from what has been measured.")(_page(plain_errors))


def _command(what: str, plain_errors: PlainErrors) -> Callable[..., None]:
    default = Path("reproduced") / what
    folder = f"The folder to write; a second call goes on where the first stopped (default: {default})."
    Folder = Annotated[Path, option(folder, "--out", "-o")]

    def command(
        out: Folder = default, data: Data = None, quick: Quick = False, device: Device = "auto", seeds: Seeds = None,
        steps: Steps = None, conventions: Conventions = None, methods: Methods = None, samplings: Samplings = None,
        together: Together = None, cells: Cells = None, others: Others = None, limit_minutes: Minutes = None,
        train_only: TrainOnly = False,
    ) -> None:  # fmt: skip
        with plain_errors(out, GO_ON):
            from softspike.reproduce.asked import Asked
            from softspike.reproduce.job import reproduce_job

            asked = Asked(
                out, data, quick, device, seeds=seeds, steps=steps, conventions=conventions, methods=methods,
                samplings=samplings, together=together, cells=cells, others=others or (), limit_minutes=limit_minutes,
                train_only=train_only,
            )  # fmt: skip
            reproduce_job(what, asked)

    return command


def _page(plain_errors: PlainErrors) -> Callable[..., None]:
    def command(
        results: Annotated[list[Path], typer.Argument(help="Folders that reproduce wrote.")],
        page: Annotated[Path, typer.Option("--out", "-o", help="The page to write; pictures go beside it.")],
    ) -> None:
        with plain_errors():
            from softspike.reproduce.page import write_page

            write_page(results, page)

    return command
