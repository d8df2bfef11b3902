"""The MDPs: what a HiP-MDP family is, the three of the paper, and the same as Gymnasium environments."""

import dataclasses
from typing import Any

from hipmdp.families.acrobot import Acrobot
from hipmdp.families.checks import known_name
from hipmdp.families.family import AbstractFamily
from hipmdp.families.grid import Grid
from hipmdp.families.hiv import HIV

FAMILIES: dict[str, type[AbstractFamily]] = {"grid": Grid, "acrobot": Acrobot, "hiv": HIV}
"""Every registered family by name."""


def make(name: str, **options: Any) -> AbstractFamily:
    """A family by name: `make("grid", beta=0.1)`, `make("acrobot", sd=0.25)`, `make("hiv", vary="all")`."""
    family = FAMILIES[known_name("family", name, FAMILIES)]
    fields = [field.name for field in dataclasses.fields(family)]
    for option in options:
        known_name(f"option of {name}", option, fields)
    return family(**options)
