"""What the fuzzer feeds: whole files of every kind that softspike reads, and the call that reads them.

A format that guards itself by checksums would turn most damage away at the door. So each kind has, besides whole
files, files that are injured inside and sealed again: the array within the archive, the values within the gzip, the
chunk within the picture, the tensors under a checksum that agrees.
"""

import gzip
import io
import json
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from PIL import Image
from safetensors.torch import save
from scipy.io import savemat

from softspike import SparseCoder
from softspike.command.config import config_file
from softspike.command.jobs import coder_from
from softspike.command.listing import describe_run, state_of
from softspike.data import DataError, check_rows, read_labels, read_rows
from softspike.metric import Baselines, Summary
from softspike.run import RunError, RunFolder

__all__ = ["TARGETS", "Sample", "Target"]


class Sample(NamedTuple):
    content: bytes
    name: str  # of the file that the injured content becomes
    sealed: Callable[[bytes], bytes] = bytes  # what makes a file of it


class Target(NamedTuple):
    samples: Callable[[], list[Sample]]
    read: Callable[[Path], object]  # given the injured file
    error: type[Exception]  # the only one that may come out


def _values(shape: tuple[int, ...] = (12, 6), dtype: str = "f4") -> np.ndarray:
    return (50 * np.random.default_rng(0).random(shape)).astype(dtype)


def _bytes(write: Callable[[Any], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def _file(suffix: str, write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{suffix}"
        write(path)
        return path.read_bytes()


# ── arrays ──


def _npy() -> list[Sample]:
    kinds = [("f4", (12, 6)), ("<f8", (5, 3, 2)), (">i2", (9, 4)), ("bool", (8, 3)), ("f2", (7, 5))]
    arrays = [_bytes(lambda f, d=d, s=s: np.save(f, _values(s, d))) for d, s in kinds]
    return [Sample(content, "x.npy") for content in arrays]


def _npz() -> list[Sample]:
    whole = [_bytes(lambda f, s=s: s(f, x=_values())) for s in (np.savez, np.savez_compressed)]

    def zipped(content: bytes) -> bytes:
        def write(file: Any) -> None:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("../../x.npy", content)

        return _bytes(write)

    return [Sample(c, "x.npz") for c in whole] + [Sample(s.content, "x.npz", zipped) for s in _npy()]


def _mat() -> list[Sample]:
    def saved(**options: Any) -> bytes:
        return _bytes(lambda file: savemat(file, {"x": _values((12, 6), "f8")}, **options))

    many = _bytes(
        lambda f: savemat(f, {"x": _values(), "s": {"a": [1, 2], "b": "text"}, "c": np.array([[1], "x"], object)})
    )
    head, body = saved()[:128], saved()[128:]

    def packed(content: bytes) -> bytes:
        squeezed = zlib.compress(content)
        return head + struct.pack("<II", 15, len(squeezed)) + squeezed

    plain = [saved(), saved(do_compression=True), saved(format="4"), many]
    return [Sample(content, "x.mat") for content in plain] + [Sample(body, "x.mat", packed)]


def _idx() -> list[Sample]:
    images = struct.pack(">BBBBIII", 0, 0, 8, 3, 5, 4, 4) + _values((5, 4, 4), "u1").tobytes()
    floats = struct.pack(">BBBBII", 0, 0, 13, 2, 6, 3) + _values((6, 3), ">f4").tobytes()
    squeeze = lambda content: gzip.compress(content, mtime=0)  # noqa: E731
    return [
        Sample(images, "x-idx3-ubyte"), Sample(floats, "x.idx"), Sample(squeeze(images), "x.gz"),
        Sample(images, "x.gz", squeeze), Sample(floats, "x.gz", squeeze),
    ]  # fmt: skip


def _safetensors() -> list[Sample]:
    tensors = {
        "f32": torch.from_numpy(_values()), "bf16": torch.from_numpy(_values()).bfloat16(),
        "image": torch.arange(60, dtype=torch.uint8).reshape(5, 4, 3),
    }  # fmt: skip
    return [Sample(save({name: value}), "x.safetensors") for name, value in tensors.items()]


# ── tables and pictures ──


def _parquet() -> list[Sample]:
    numbers = pd.DataFrame(_values(), columns=list("abcdef")).assign(label=1)
    same = pd.DataFrame({"a": np.zeros(5000), "label": np.arange(5000) % 3})
    lists = pd.DataFrame({"x": list(_values((20, 7), "f8")), "yes": np.arange(20) % 2 == 0})
    picture = _picture("PNG", (6, 5))
    images = pd.DataFrame({"image": [{"bytes": picture, "path": "../x"}] * 3, "label": [0, 1, 0]})
    return [
        Sample(_bytes(lambda f, t=table, o=options: t.to_parquet(f, **o)), "x.parquet")
        for table in (numbers, same, lists, images)
        for options in ({}, {"compression": None}, {"compression": "zstd", "use_dictionary": False})
    ]


def _picture(kind: str, size: tuple[int, ...], **options: Any) -> bytes:
    return _bytes(lambda file: Image.fromarray(_values(size, "u1")).save(file, kind, **options))


def _checked(content: bytes) -> bytes:
    """A PNG whose chunks carry the checksums of what they hold now."""
    fixed, place = content[:8], 8
    while place + 12 <= len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        kind, held = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        fixed += content[place : place + 8] + held + struct.pack(">I", zlib.crc32(kind + held))
        place += 12 + length
    return fixed


def _images() -> list[Sample]:
    kinds = {"PNG": ".png", "JPEG": ".jpg", "BMP": ".bmp", "TIFF": ".tif", "WEBP": ".webp"}
    drawn = [
        Sample(_picture(kind, size), f"x{suffix}") for kind, suffix in kinds.items() for size in ((9, 7), (9, 7, 3))
    ]
    squeezed = [
        Sample(_picture("TIFF", (9, 7, 3), compression=c), "x.tif") for c in ("tiff_lzw", "tiff_deflate", "jpeg")
    ]
    return drawn + squeezed + [Sample(_picture("PNG", (9, 7, 3)), "x.png", _checked)] * 3


def _read_data(path: Path) -> None:
    """Read it, and walk over every value."""
    check_rows(read_rows(path), min_samples=1, constant="keep")


def _read_image(path: Path) -> None:
    _read_data(path.parent)


def _read_table(path: Path) -> None:
    _all(DataError, lambda: _read_data(path), lambda: read_labels(path))


def _all(error: type[Exception], *uses: Callable[[], object]) -> None:
    """Each on its own: one that is refused does not spare the others."""
    refusals = []
    for use in uses:
        try:
            use()
        except error as refused:
            refusals.append(refused)
    if refusals:
        raise refusals[0]


# ── configurations and runs ──


def _configs() -> list[Sample]:
    plain = {name: value for name, value in SparseCoder(n_components=8).get_params().items() if value is not None}
    deep = {**plain, "generator": "conv", "image_shape": [28, 28], "method": "laplacian"}
    return [Sample(json.dumps(content).encode(), "x.json") for content in (plain, deep)]


def _read_config(path: Path) -> None:
    coder_from(config_file(path)).check_parameters(n_features=784)


_RUN: dict[str, bytes] = {}


def _run() -> list[Sample]:
    """The files of a small run; those of tensors also injured inside and signed again."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "run"
        coder = SparseCoder(4, max_steps=2, batch_size=8, random_state=0, verbose=False).fit(_values())
        coder.save(place)
        run = RunFolder(place)
        run.write_json("config.json", {**run.config(), "data": {"name": "x.npy", "image_shape": [2, 3]}})
        summary = {**Summary(12, 0.5, 1.0, 0.25, 0, 4, 2.0, 3.0)._asdict(), "on": "rows", "target_active": 0.4}
        run.write_json("summary.json", {**summary, "baselines": Baselines(12, 0.4, None)._asdict()})
        run.write_json("diverged.json", {"step": 3, "cause": "the loss is not finite"})
        for step in (1, 2):
            run.append_metrics({"step": step, "total": 1.5, "seconds": 0.1})
            run.save_checkpoint(step, coder._fitted.tensors())
        _RUN.update({str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()})
    whole = [Sample(content, name) for name, content in _RUN.items()]
    model = _RUN["model.safetensors"]
    signed = [Sample(_header(model), "model.safetensors", lambda header: _signed(header, model))]
    return whole + 3 * [s for s in whole if s.name.endswith((".json", ".jsonl"))] + 2 * signed


def _header(file: bytes) -> bytes:
    return file[8 : 8 + int.from_bytes(file[:8], "little")]


def _signed(header: bytes, file: bytes) -> bytes:
    """The file under an injured header, with the checksum of whatever that header makes of the values."""
    from safetensors.torch import load, save

    from softspike.files import FORMAT, digest

    values = file[8 + int.from_bytes(file[:8], "little") :]
    injured = len(header).to_bytes(8, "little") + header + values
    try:
        tensors, named = load(injured), {"format": str(FORMAT)}
        return save(tensors, {"softspike": json.dumps({**named, "sha256": digest(tensors, named)}, sort_keys=True)})
    except Exception:
        return injured


def _read_run(path: Path) -> None:
    """Everything that reads a run folder."""
    place = path.parent if path.parent.name != "checkpoints" else path.parent.parent
    for name, content in _RUN.items():
        if place / name != path:
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(content)
    run = RunFolder(place)
    _all(
        RunError, run.config, run.metrics, run.last_checkpoint, run.latest, lambda: state_of(run),
        lambda: describe_run(run), lambda: SparseCoder.load(place, device="cpu"), lambda: run.drop_metrics_after(1),
        lambda: SparseCoder.restored(run.config(), (run.last_checkpoint() or (0, {}))[1], "cpu"),
    )  # fmt: skip


TARGETS: dict[str, Target] = {
    "npy": Target(_npy, _read_data, DataError),
    "npz": Target(_npz, _read_data, DataError),
    "mat": Target(_mat, _read_data, DataError),
    "idx": Target(_idx, _read_data, DataError),
    "parquet": Target(_parquet, _read_table, DataError),
    "safetensors": Target(_safetensors, _read_data, DataError),
    "images": Target(_images, _read_image, DataError),
    "config": Target(_configs, _read_config, ValueError),
    "run folder": Target(_run, _read_run, RunError),
}
