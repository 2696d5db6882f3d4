"""Pieces that convolutional encoders and generators share: image geometry, and batch normalisation over processes."""

from softspike.layers.batch_norm import BatchNorm
from softspike.layers.image import ImageShape, as_images, as_rows

__all__ = ["BatchNorm", "ImageShape", "as_images", "as_rows"]
