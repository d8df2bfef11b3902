"""Families of MDPs: what a HiP-MDP is, the three of the paper and `compass`, users' own, and Gymnasium both ways."""

import dataclasses
from typing import Any

from hipmdp._errors import known_name
from hipmdp.families.acrobot import Acrobot
from hipmdp.families.compass import Compass
from hipmdp.families.grid import Grid
from hipmdp.families.hiv import HIV
from hipmdp.families.loading import load_family
from hipmdp.families.protocol import AbstractFamily, BaseFamily

FAMILIES: dict[str, type[AbstractFamily]] = {"grid": Grid, "compass": Compass, "acrobot": Acrobot, "hiv": HIV}
"""The built-in families by name."""


def make(name: str, **options: Any) -> BaseFamily:
    """A family by name: `make("grid", beta=0.1)`, `make("acrobot", sd=0.25)`, `make("hiv", vary="all")`.

    `make("module:name")` is one of your own: a class that follows `AbstractFamily` (which takes the options), an
    instance, or what `gymnasium_family` returned; the module is imported from the current directory or the Python path.
    """
    found: type[BaseFamily] | BaseFamily
    if isinstance(name, str) and ":" in name:
        found = load_family(name)
    else:
        found = FAMILIES[known_name("family", name, [*FAMILIES, "module:name"])]
    if not isinstance(found, type):
        if options:
            raise ValueError(f"{name} is made already and takes no options, got {', '.join(options)}.")
        return found
    fields = [field.name for field in dataclasses.fields(found)]
    for option in options:
        known_name(f"option of {name}", option, fields)
    try:
        return found(**options)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"{name} cannot be made: {error}") from error
