"""Where the largest of many numbers is."""

from torch import Tensor

__all__ = ["BLOCK", "largest"]

BLOCK = 64


def largest(values: Tensor) -> tuple[Tensor, Tensor]:
    """The place of each row's maximum and the maximum, both (B, 1), of values (B, n·64); the first of equals.

    The maximum of columns 64 apart is vectorised, the place of a maximum is not: so it is looked for among 64 columns,
    then down one of them.
    """
    blocks = values.view(len(values), -1, BLOCK)
    column = blocks.amax(1).argmax(-1, keepdim=True)
    down = blocks.gather(2, column[:, :, None].expand(-1, blocks.shape[1], 1))[:, :, 0]
    block = down.argmax(-1, keepdim=True)
    return block * BLOCK + column, down.gather(1, block)
