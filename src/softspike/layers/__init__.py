"""Pieces of networks: affine layers in one pass, AᵀAz, image geometry, and batch normalisation over processes."""

from softspike.layers.affine import affine_relu, affine_relu_plainly
from softspike.layers.batch_norm import BatchNorm
from softspike.layers.gram import gram_product
from softspike.layers.image import ImageShape, as_images, as_rows

__all__ = ["BatchNorm", "ImageShape", "affine_relu", "affine_relu_plainly", "as_images", "as_rows", "gram_product"]
