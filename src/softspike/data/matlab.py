"""MATLAB files (versions 4 to 7) → their arrays of real numbers. Cells, structures, texts, sparse arrays are left out.

scipy reads these files too, and ends the process on some broken ones: its reader trusts the types and lengths that a
file states. Here every length is compared with what is left of the file before anything is made of it.
"""

import mmap
import os
import zlib
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softspike.data.error import DataError
from softspike.data.mapped import SMALL
from softspike.data.promise import check_promise

__all__ = ["load_mat"]

# Number types of version 5, by code, and of version 4, by digit.
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TYPES_4 = {0: "f8", 1: "f4", 2: "i4", 3: "i2", 4: "u2", 5: "u1"}
_MATRIX, _COMPRESSED, _FLAGS, _LENGTHS, _NAME = 14, 15, 6, 5, 1
_NUMERIC = range(6, 16)  # classes of arrays, from double to uint64
_COMPLEX = 0x0800
_MOST_AXES = 32
_MOST_EXPANSION, _AT_ONCE = 1032, 2**16  # of deflate; bytes that are unpacked at a time


class _Element(NamedTuple):
    kind: int
    content: memoryview
    end: int  # of the element within what it was read from


def load_mat(path: Path) -> dict[str, np.ndarray]:
    """The arrays of real numbers in a file, by name, in the types they are stored in."""
    held = _held(path)
    if len(held) >= 4 and 0 in bytes(held[:4]):
        return _version_4(held)
    if len(held) < 128 or bytes(held[126:128]) not in (b"IM", b"MI"):
        raise DataError("this does not begin as a MATLAB file does; save it again with -v7.")
    order = "<" if bytes(held[126:128]) == b"IM" else ">"
    if int(np.frombuffer(held[124:126], f"{order}u2")[0]) >> 8 == 2:
        raise DataError("this is a MATLAB 7.3 file, expected an older version; save it with -v7.")
    arrays, place, unpacked = {}, 128, 0
    while place < len(held):
        element = _read(held, place, order)
        # Compressed elements are not padded to eight bytes.
        place = element.end if element.kind == _COMPRESSED else element.end + -element.end % 8
        if element.kind == _COMPRESSED:
            content = _expanded(element.content, unpacked, len(held))
            unpacked += len(content)
            element = _read(content, 0, order)
        named = _matrix(element.content, order) if element.kind == _MATRIX else None
        if named is not None:
            arrays[named[0]] = named[1]
    return arrays


def _held(path: Path) -> memoryview:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size <= SMALL:
            return memoryview(file.read())
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _read(held: memoryview, place: int, order: str) -> _Element:
    """An element: type and length in eight bytes, or in four where its content fits into the other four."""
    if len(held) - place < 8:
        raise DataError("the file ends inside an element; get it again.")
    kind, length = (int(word) for word in np.frombuffer(held[place : place + 8], f"{order}u4"))
    first = place + 8
    if kind >> 16:
        kind, length, first = kind & 0xFFFF, kind >> 16, place + 4
        if length > 4:
            raise DataError(f"a small element says it holds {length} bytes, expected at most 4; get the file again.")
    if length > len(held) - first:
        raise DataError(f"an element says it holds {length} bytes, {len(held) - first} are left; get the file again.")
    return _Element(kind, held[first : first + length], place + 8 if first == place + 4 else first + length)


def _expanded(content: memoryview, unpacked: int, stored: int) -> memoryview:
    """Unpacked, but no further than the length that its first bytes state, nor, with what was `unpacked` before it,
    beyond what a file of `stored` bytes may become."""
    unpacking = zlib.decompressobj()
    start = unpacking.decompress(content, 8)
    length = max(int.from_bytes(start[4:8], "little"), int.from_bytes(start[4:8], "big")) if len(start) == 8 else 0
    most = min(length, _MOST_EXPANSION * len(content) + 64)
    check_promise(unpacked + most, stored, "what is compressed in it")
    room, found = np.empty(len(start) + most, np.uint8), len(start)
    room[:found] = np.frombuffer(start, np.uint8)
    left, packed = len(room) - found, memoryview(unpacking.unconsumed_tail)
    for place in range(0, len(packed) + 1, _AT_ONCE):  # at last of nothing, for what zlib still holds
        part: bytes | memoryview = packed[place : place + _AT_ONCE]
        while left and (got := unpacking.decompress(part, left)):
            room[found : found + len(got)] = np.frombuffer(got, np.uint8)
            found, left, part = found + len(got), left - len(got), unpacking.unconsumed_tail
    return room[:found].data


def _matrix(content: memoryview, order: str) -> tuple[str, np.ndarray] | None:
    """Flags, lengths of the axes, name, values; None where the values are not real numbers."""
    parts: list[_Element] = []
    place = 0
    while len(parts) < 4 and place < len(content):
        part = _read(content, place, order)
        parts.append(part)
        place = part.end + -part.end % 8
        if len(parts) == 1 and not _holds_reals(part, order):
            return None
    if len(parts) < 4 or [part.kind for part in parts[1:3]] != [_LENGTHS, _NAME] or parts[3].kind not in _TYPES:
        raise DataError("an array lacks its lengths, its name or its values; get the file again.")
    shape = tuple(int(n) for n in np.frombuffer(parts[1].content, f"{order}i4"))
    values = parts[3]
    return bytes(parts[2].content).decode("latin1"), _shaped(values.content, order + _TYPES[values.kind], shape)


def _holds_reals(flags: _Element, order: str) -> bool:
    if flags.kind != _FLAGS or len(flags.content) != 8:
        return False
    word = int(np.frombuffer(flags.content[:4], f"{order}u4")[0])
    return word & 0xFF in _NUMERIC and not word & _COMPLEX


def _shaped(content: memoryview, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """First axis fastest, as MATLAB keeps them."""
    size = np.dtype(dtype).itemsize
    if not 1 <= len(shape) <= _MOST_AXES or min(shape) < 0 or prod(shape) * size != len(content):
        raise DataError(
            f"an array of shape {shape[:8]} has {len(content)} bytes of {dtype} values; get the file again."
        )
    return np.frombuffer(content, dtype).reshape(shape, order="F")


def _version_4(held: memoryview) -> dict[str, np.ndarray]:
    """Type, rows, columns, whether complex, length of the name; the name; the values: until the file ends."""
    arrays, place = {}, 0
    while place < len(held):
        if len(held) - place < 20:
            raise DataError("the file ends inside the header of an array; get it again.")
        order = "<" if 0 <= int(np.frombuffer(held[place : place + 4], "<i4")[0]) <= 5000 else ">"
        code, rows, columns, is_complex, length = map(int, np.frombuffer(held[place : place + 20], f"{order}i4"))
        kind, first = _TYPES_4.get(code // 10 % 10), place + 20 + max(length, 0)
        if kind is None or min(rows, columns, length) < 0 or is_complex not in (0, 1) or not 0 <= code % 10 <= 2:
            raise DataError(f"an array has the type {code} and {rows} × {columns} values; get the file again.")
        place = first + rows * columns * np.dtype(kind).itemsize * (1 + is_complex)
        if place > len(held):
            raise DataError(f"an array of {rows} × {columns} values is longer than the file; get it again.")
        if code % 10 == 0 and not is_complex:
            name = bytes(held[first - length : first]).rstrip(b"\0").decode("latin1")
            arrays[name] = _shaped(held[first:place], order + kind, (rows, columns))
    return arrays
