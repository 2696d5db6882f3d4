"""5  z → x̂: linear dictionaries, and convolutional networks for images."""

from softspike.generator.base import Generator, LinearGenerator
from softspike.generator.conv import ConvGenerator
from softspike.generator.dictionary import Dictionary, UnitNormDictionary, random_atoms

__all__ = ["ConvGenerator", "Dictionary", "Generator", "LinearGenerator", "UnitNormDictionary", "random_atoms"]
