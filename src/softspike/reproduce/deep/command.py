"""softspike reproduce fashion-mnist | celeba | deep-page: heavy imports wait until a command runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from softspike.reproduce.options import GO_ON, Device, Minutes, Out, PlainErrors, option

__all__ = ["add_deep_commands"]

HELP = {
    "fashion-mnist": "Fashion-MNIST with convolutional networks: sweeps over dimension and sparsity.",
    "celeba": "CelebA with convolutional networks: sweeps over dimension and sparsity.",
}


Data = Annotated[Path | None, option("The official folder, or one with train.parquet and test.parquet.")]
Quick = Annotated[bool, option("A small version that only shows that everything runs.", "--quick")]
Epochs = Annotated[int | None, option("Passes over the training images (default: the paper's 300).")]
Rate = Annotated[float | None, option("Peak of a one-cycle learning rate (default: the paper's constant 3e-4).")]
Methods = Annotated[str | None, option("Only these methods, with commas.")]
Dimensions = Annotated[str | None, option("Dimensions at 10 % active, with commas, or none (default: the paper's).")]
Shares = Annotated[str | None, option("Active shares at the middle dimension, or none (default: .05,.1,.2,.5).")]
Seeds = Annotated[str, typer.Option(help="Seeds, with commas.")]
Conventions = Annotated[str, typer.Option(help="equations (the paper's), scripts or both.")]
Precision = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
InceptionFile = Annotated[Path | None, option("Weights of Inception v3 (safetensors), for the FID proper.")]
Keep = Annotated[bool, option("Keep the trained models in OUT/models.", "--keep-models")]


def add_deep_commands(app: typer.Typer, plain_errors: PlainErrors) -> None:
    for name, text in HELP.items():
        app.command(name, help=text)(_command(name, plain_errors))
    app.command("deep-page", help="Write the page of the deep study from what has been measured.")(_page(plain_errors))


def _command(what: str, plain_errors: PlainErrors) -> Callable[..., None]:
    def command(
        out: Out, data: Data = None, quick: Quick = False, device: Device = "auto", epochs: Epochs = None,
        peak_rate: Rate = None, methods: Methods = None, dimensions: Dimensions = None, shares: Shares = None,
        seeds: Seeds = "0", conventions: Conventions = "equations", precision: Precision = "auto",
        inception: InceptionFile = None, limit_minutes: Minutes = None, keep_models: Keep = False,
    ) -> None:  # fmt: skip
        with plain_errors(out, GO_ON):
            from softspike.reproduce.deep.asked import DeepOptions
            from softspike.reproduce.deep.job import deep_job

            asked = DeepOptions(
                out, data, quick, device, epochs=epochs, peak_rate=peak_rate, methods=methods, dimensions=dimensions,
                shares=shares, seeds=seeds, conventions=conventions, precision=precision, inception=inception,
                limit_minutes=limit_minutes, keep_models=keep_models,
            )  # fmt: skip
            deep_job(what, asked)

    return command


def _page(plain_errors: PlainErrors) -> Callable[..., None]:
    def command(
        results: Annotated[list[Path], typer.Argument(help="Folders that fashion-mnist and celeba wrote.")],
        page: Annotated[Path, typer.Option("--out", "-o", help="The page to write; pictures go beside it.")],
    ) -> None:
        with plain_errors():
            from softspike.reproduce.deep.report import write_deep_page

            write_deep_page(results, page)

    return command
