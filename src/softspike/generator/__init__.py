"""5  z → x̂: the linear dictionary, with room for deep generators beside it."""

from softspike.generator.base import LinearGenerator
from softspike.generator.dictionary import Dictionary, UnitNormDictionary, random_atoms

__all__ = ["Dictionary", "LinearGenerator", "UnitNormDictionary", "random_atoms"]
