"""What the commands of `softspike reproduce` share; nothing heavy is imported."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["GO_ON", "Device", "Minutes", "Out", "PlainErrors", "option"]

PlainErrors = Callable[..., AbstractContextManager[None]]
GO_ON = "; run the same command again to go on where it stopped"


def option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, show_default=False)


Out = Annotated[Path, option("The folder to write; a second call goes on where the first stopped.", "--out", "-o")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Minutes = Annotated[float | None, option("Stop before this many minutes have passed; go on later.")]
