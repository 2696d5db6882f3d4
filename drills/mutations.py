"""Damage to bytes: what a bad disk, a bad link or a bad neighbour does to a file."""

import random
import re
from collections.abc import Callable

__all__ = ["mutated"]

# Where formats tend to break: nothing, one, the ends of every width, and what becomes negative.
_NUMBERS = [
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**40,
    2**62,
    2**63,
    2**64 - 1,
]
_WORDS = [b"0", b"-1", b"1e999", b"NaN", b"null", b"true", b"[]", b"{}", b'""', b"99999999999999999999", b"4294967296",
          b"1099511627776", b"(", b"[[[[[[[[", b'"\\ud800"', b"../../x"]  # fmt: skip


def mutated(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """One to four injuries to `content`; `other` is a whole file to graft from."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
        content = chance.choice(_INJURIES)(content, other, chance)
    return content


def _flip(content: bytes, other: bytes, chance: random.Random) -> bytes:
    if not content:
        return b"\0"
    changed = bytearray(content)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _byte(content: bytes, other: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content) + 1)
    return content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]


def _number(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """A telling number over 1, 2, 4 or 8 bytes, either end first; half of them near the start, where headers are."""
    width = chance.choice((1, 2, 4, 8))
    value = chance.choice(_NUMBERS) % 2 ** (8 * width)
    place = (
        chance.randrange(min(len(content), 128) + 1) if chance.random() < 0.5 else chance.randrange(len(content) + 1)
    )
    return content[:place] + value.to_bytes(width, chance.choice(("little", "big"))) + content[place + width :]


def _word(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """A number or a quoted word in a text replaced by something else."""
    found = list(re.finditer(rb'-?\d+(?:\.\d+)?|"[^"]{0,40}"|true|false|null', content))
    if not found:
        return _byte(content, other, chance)
    one = chance.choice(found)
    return content[: one.start()] + chance.choice(_WORDS) + content[one.end() :]


def _cut(content: bytes, other: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _drop(content: bytes, other: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(content) + 1)
    return content[:first] + content[first + chance.randrange(1, 64) :]


def _double(content: bytes, other: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(content) + 1)
    return (
        content[:first] + content[first : first + chance.randrange(1, 64)] * chance.choice((2, 3, 50)) + content[first:]
    )


def _graft(content: bytes, other: bytes, chance: random.Random) -> bytes:
    here, there = chance.randrange(len(content) + 1), chance.randrange(len(other) + 1)
    return content[:here] + other[there : there + chance.randrange(1, 256)] + content[here:]


def _noise(content: bytes, other: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(content) + 1)
    return content[:first] + chance.randbytes(chance.randrange(1, 64)) + content[first:]


_INJURIES: list[Callable[[bytes, bytes, random.Random], bytes]] = [
    _flip, _flip, _byte, _number, _number, _number, _word, _word, _cut, _drop, _double, _graft, _noise
]  # fmt: skip
