"""Files on a disk, opened with care: regular ones only, written whole or not at all, never through a link.

A pipe would be waited on for ever and a device read without end; a link in a folder that others can write to would
have us overwrite what it points to.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["NotRegular", "check_regular", "named", "open_own", "read_whole", "refuse_link", "write_atomically"]

_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a symbolic link",
}  # fmt: skip


class NotRegular(ValueError):
    """Something else stands where a file was expected."""


def check_regular(path: Path) -> None:
    """Raise NotRegular where the path leads to a pipe, a device or a folder; what is not there is not its business."""
    with suppress(FileNotFoundError):
        _check(path, os.stat(path).st_mode)


def read_whole(path: Path, most: int | None = None) -> bytes:
    """What a regular file holds; NotRegular for anything else, and ValueError where it is longer than `most` bytes."""
    check_regular(path)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())  # of what was really opened
        _check(path, status.st_mode)
        if most is not None and status.st_size > most:
            raise ValueError(f"it has {status.st_size} bytes, expected at most {most}")
        return file.read()


def open_own(path: Path, flags: int) -> int:
    """A descriptor of a file of ours, made where it is missing; NotRegular for a link or whatever is not a file."""
    refuse_link(path)
    check_regular(path)
    number = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        _check(path, os.fstat(number).st_mode)
    except NotRegular:
        os.close(number)
        raise
    return number


def refuse_link(path: Path, needed: str = "a regular file") -> None:
    """Raise NotRegular where a link stands in the place of a file or folder of ours."""
    if path.is_symlink():
        _check(path, stat.S_IFLNK, needed)


def _check(path: Path, mode: int, needed: str = "a regular file") -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise NotRegular(f"{path} is {kind}, expected {needed}; remove it or choose another place")


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the target, flush to disk, rename: a crash leaves the old file or the new one, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with named(path):
            temporary.unlink(missing_ok=True)  # of a process that was killed and had our number
            with open(open_own(temporary, os.O_WRONLY | os.O_EXCL), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    finally:
        with suppress(OSError):  # the folder may be gone, or read-only: what matters has been said
            temporary.unlink(missing_ok=True)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """An error of the disk, with the file that could not be written and what still holds."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        remedy = "make room or choose another place; what was written before is whole"
        raise OSError(f"cannot write {path} ({why}); {remedy}") from error
