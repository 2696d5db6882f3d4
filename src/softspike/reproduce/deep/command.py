"""softspike reproduce fashion-mnist | celeba | deep-page: heavy imports wait until a command runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["add_deep_commands"]

PlainErrors = Callable[..., AbstractContextManager[None]]

HELP = {
    "fashion-mnist": "Fashion-MNIST with convolutional networks: sweeps over dimension and sparsity.",
    "celeba": "CelebA with convolutional networks: sweeps over dimension and sparsity.",
}


def _option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, show_default=False)


Out = Annotated[Path, _option("The folder to write; a second call goes on where the first stopped.", "--out", "-o")]
Data = Annotated[Path | None, _option("The official folder, or one with train.parquet and test.parquet.")]
Quick = Annotated[bool, _option("A small version that only shows that everything runs.", "--quick")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Epochs = Annotated[int | None, _option("Passes over the training images (default: the paper's 300).")]
Rate = Annotated[float | None, _option("Peak of a one-cycle learning rate (default: the paper's constant 3e-4).")]
Methods = Annotated[str | None, _option("Only these methods, with commas.")]
Dimensions = Annotated[str | None, _option("Dimensions at 10 % active, with commas, or none (default: the paper's).")]
Shares = Annotated[str | None, _option("Active shares at the middle dimension, or none (default: .05,.1,.2,.5).")]
Seeds = Annotated[str, typer.Option(help="Seeds, with commas.")]
Conventions = Annotated[str, typer.Option(help="equations (the paper's), scripts or both.")]
Precision = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
InceptionFile = Annotated[Path | None, _option("Weights of Inception v3 (safetensors), for the FID proper.")]
Minutes = Annotated[float | None, _option("Stop before this many minutes have passed; go on later.")]
Keep = Annotated[bool, _option("Keep the trained models in OUT/models.", "--keep-models")]


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
        with plain_errors(out, "; run the same command again to go on where it stopped"):
            from softspike.reproduce.deep.job import DeepOptions, deep_job

            deep_job(what, DeepOptions(
                out, data, quick, device, epochs, peak_rate, methods, dimensions, shares, seeds, conventions, precision,
                inception, limit_minutes, keep_models,
            ))  # fmt: skip

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
