"""Small sets of images in the layouts of the large ones: made, never downloaded."""

import gzip
import io
import struct
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image


def shapes(n: int, size: int = 8, channels: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(n, size, size[, channels]) uint8 and (n,) classes: a bright bar, upright (0), lying (1) or a blob (2)."""
    random = np.random.default_rng(seed)
    classes = random.integers(0, 3, n).astype(np.uint8)
    images = random.integers(0, 40, (n, size, size, channels))
    for image, kind in zip(images, classes, strict=True):
        at, colour = random.integers(1, size - 2), random.integers(120, 210, channels)
        if kind == 0:
            image[:, at : at + 2] += colour
        elif kind == 1:
            image[at : at + 2] += colour
        else:
            image[size // 4 : -size // 4, size // 4 : -size // 4] += colour
    return images.astype(np.uint8).reshape(n, size, size, *([channels] if channels > 1 else [])), classes


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    content = header + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def write_mnist(folder: Path, n_train: int = 60, n_test: int = 20, size: int = 8, suffix: str = ".gz") -> None:
    folder.mkdir(parents=True)
    for seed, (prefix, n) in enumerate([("train", n_train), ("t10k", n_test)]):
        images, classes = shapes(n, size, seed=seed)
        write_idx(folder / f"{prefix}-images-idx3-ubyte{suffix}", images)
        write_idx(folder / f"{prefix}-labels-idx1-ubyte{suffix}", classes)


ATTRIBUTES = ("Upright", "Lying", "Blob")


def write_celeba(folder: Path, n: int = 12) -> None:
    """The official layout: 178×218 JPEG, the part and the attributes in text files."""
    (folder / "img_align_celeba").mkdir(parents=True)
    images, classes = shapes(n, 16, channels=3)
    partition, attributes = [], [str(n), " ".join(ATTRIBUTES)]
    for number, (image, kind) in enumerate(zip(images, classes, strict=True), start=1):
        name = f"{number:06d}.jpg"
        Image.fromarray(image).resize((178, 218)).save(folder / "img_align_celeba" / name, quality=95)
        partition.append(f"{name} {(number - 1) % 3}")
        attributes.append(f"{name}  " + "  ".join("1" if kind == other else "-1" for other in range(3)))
    (folder / "list_eval_partition.txt").write_text("\n".join(partition) + "\n")
    (folder / "list_attr_celeba.txt").write_text("\n".join(attributes) + "\n")


def write_parquet(path: Path, n: int = 40, size: int = 8, channels: int = 3, seed: int = 0) -> None:
    """As image data sets are shared: {bytes, path} and columns of booleans."""
    images, classes = shapes(n, size, channels, seed)
    encoded = []
    for image in images:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        encoded.append({"bytes": buffer.getvalue(), "path": None})
    columns = {name: classes == kind for kind, name in enumerate(ATTRIBUTES)}
    pd.DataFrame({"image": encoded, "identity": np.arange(n), **columns}).to_parquet(path)
