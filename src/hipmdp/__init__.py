"""Families of control problems that differ in hidden parameters: learn the family, recognise a new member."""

from hipmdp.families import make
from hipmdp.families.environments import register as _register
from hipmdp.families.family import AbstractFamily, Step
from hipmdp.families.specification import Specification

__version__ = "0.1.0"
__all__ = ["AbstractFamily", "Specification", "Step", "make"]

_register()
