"""1  tensors in: rows of arrays, files, patches, images and synthetic data, read a batch at a time."""

from softspike.data.arrays import read_rows
from softspike.data.check import DataError, check_rows
from softspike.data.device import on_device
from softspike.data.images import PixelRows
from softspike.data.labelled import has_labels, read_labels
from softspike.data.labels import Labels
from softspike.data.olshausen import load_olshausen, olshausen_patches
from softspike.data.patches import Patches, extract_patches, whiten
from softspike.data.photographs import photograph_patches, photographs
from softspike.data.rows import ArrayRows, Rows, ShardRows, SubsetRows, TensorRows
from softspike.data.standardise import RunningMoments, StandardisedRows, Standardiser
from softspike.data.synthetic import SparseSample, power_law_synthetic, synthetic
from softspike.data.watch import Unwatched, Watch

__all__ = [
    "ArrayRows",
    "DataError",
    "Labels",
    "Patches",
    "PixelRows",
    "Rows",
    "RunningMoments",
    "ShardRows",
    "SparseSample",
    "StandardisedRows",
    "Standardiser",
    "SubsetRows",
    "TensorRows",
    "Unwatched",
    "Watch",
    "check_rows",
    "extract_patches",
    "has_labels",
    "load_olshausen",
    "olshausen_patches",
    "on_device",
    "photograph_patches",
    "photographs",
    "power_law_synthetic",
    "read_labels",
    "read_rows",
    "synthetic",
    "whiten",
]
