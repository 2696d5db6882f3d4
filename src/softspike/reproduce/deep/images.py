"""The images of the deep study: train and test, with their attributes, on the device where they fit."""

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from softspike.data import DataError, Labels, PixelRows, Rows, on_device, read_labels, read_rows
from softspike.data.celeba import is_celeba
from softspike.data.mnist import FASHION_FOLDER, is_mnist
from softspike.report.progress import decoding_shown
from softspike.reproduce.deep.setting import DeepSetting

__all__ = ["Images", "load_images"]


class Images(NamedTuple):
    train: Rows
    test: Rows
    train_labels: Labels
    test_labels: Labels
    image_shape: tuple[int, ...]
    fingerprint: str


def load_images(setting: DeepSetting, path: Path | None, device: torch.device) -> Images:
    """The parts train and test of the official layout, or of a folder with both as .parquet or as .npz."""
    train, test = (_part(setting, path, part) for part in ("train", "test"))
    wanted = tuple(length for length in setting.image_shape if length > 1)
    if train[0].image_shape != wanted or test[0].image_shape != wanted:
        found = "×".join(map(str, train[0].image_shape or ()))
        raise DataError(f"{path}: the images are {found}, expected {'×'.join(map(str, wanted))} for {setting.title}.")
    if train[1].names != test[1].names:
        raise DataError(
            f"{path}: the attributes to train on are {_listed(train[1])}, those to test on {_listed(test[1])}, "
            "expected the same; write the files again."
        )
    if setting.most_images is not None:
        train, test = _first(*train, setting.most_images), _first(*test, setting.most_images // 2)
    pixels = hashlib.sha256(b"".join(rows.images[:: max(len(rows) // 32, 1)].tobytes() for rows, _ in (train, test)))
    return Images(
        on_device(train[0], device), on_device(test[0], device), train[1], test[1], wanted,
        f"{len(train[0])}+{len(test[0])}:{pixels.hexdigest()[:16]}",
    )  # fmt: skip


def _part(setting: DeepSetting, path: Path | None, part: str) -> tuple[PixelRows, Labels]:
    if path is None and setting.name == "fashion-mnist":
        path = FASHION_FOLDER
    if path is None or not path.exists():
        where = "Debian's dataset-fashion-mnist, or --data with a folder of its four idx.gz files"
        if setting.name == "celeba":
            where = "--data with the official folder, or with one that holds train.parquet and test.parquet"
        raise DataError(f"{path or 'no data was given'}: {setting.title} is not there; give {where}.")
    if (path / f"{part}.npz").exists():
        return _archive(path / f"{part}.npz")
    file, key = path / f"{part}.parquet", None
    if not file.exists():
        if not (is_mnist(path) or is_celeba(path)):
            raise DataError(
                f"{path} holds neither the official files nor {file.name}; give the folder of {setting.title}."
            )
        file, key = path, part
    labels = read_labels(file, key, setting.class_names)
    with decoding_shown() as watch:
        rows = read_rows(file, key, watch)
    if not isinstance(rows, PixelRows) or rows.images.dtype != np.uint8:
        raise DataError(f"{file} holds no 8-bit images; give the images themselves.")
    return rows, labels


def _archive(path: Path) -> tuple[PixelRows, Labels]:
    """images (n, h, w[, c]) of bytes, labels (n, m) of booleans, and their names (m,)."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            images, labels, names = (archive[name] for name in ("images", "labels", "names"))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read ({error}), expected the arrays images, labels and names.") from error
    if images.dtype != np.uint8 or labels.shape != (len(images), len(names)):
        given = f"{images.dtype} images and labels of shape {labels.shape}"
        raise DataError(f"{path} holds {given}, expected bytes and shape {(len(images), len(names))}.")
    return PixelRows(images), Labels(tuple(map(str, names)), labels.astype(bool))


def _listed(labels: Labels) -> str:
    return ", ".join(labels.names[:3]) + (f", … ({len(labels.names)})" if len(labels.names) > 3 else "")


def _first(rows: PixelRows, labels: Labels, most: int) -> tuple[PixelRows, Labels]:
    return PixelRows(rows.images[:most]), Labels(labels.names, labels.values[:most])
