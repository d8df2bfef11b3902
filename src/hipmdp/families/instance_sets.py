"""The frozen instance sets that ship with the package, with the best returns anybody has found on them.

One file per family, `instances/<family>.json`; the wide acrobot (sd 0.25) has its own. Each instance holds θ by
name, the mean returns of the random policy and of the best constant action, the best known one, and its source.
A family of users' own has the sets it gives; others are drawn, always alike, and nobody knows returns on them.
"""

import functools
import json
import math
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from hipmdp.families.acrobot import Acrobot
from hipmdp.families.checks import known_name
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.grid import Grid
from hipmdp.families.hiv import HIV

OWN_SIZES = {"train": 5, "train32": 32, "test": 20}
"""Sizes of the sets that are drawn for a family of users' own."""
OWN_KEYS = {"train": 1, "train32": 1, "test": 2}
"""Key streams of these draws: `train` is the beginning of `train32`."""


@dataclass(frozen=True)
class Instance:
    """One member of a frozen set."""

    label: str
    """Where it stands, such as "test:3"."""
    theta: Theta
    """θ_b."""
    random: float
    """Mean undiscounted return of the uniformly random policy."""
    constant: float
    """Mean undiscounted return of the best constant action."""
    scripted: float
    """Mean undiscounted return of the family's scripted rule (`hipmdp.families.scripted`)."""
    best_known: float
    """Best mean undiscounted return known; NaN (as all returns are) where nobody has looked for one."""
    source: dict[str, Any]
    """How the best known return was found: method, seed, date, command."""

    @property
    def is_scored(self) -> bool:
        """Whether a best return is known; otherwise a score is the plain return."""
        return not math.isnan(self.best_known)

    def score(self, value: float) -> float:
        """(R − R_random) / (R_best_known − R_random); R where no best return is known."""
        return (value - self.random) / (self.best_known - self.random) if self.is_scored else value


def file_name(family: AbstractFamily) -> str:
    """The file that holds the sets of this family, decided by its prior."""
    if isinstance(family, Grid) and family.beta == 0.23:
        return "grid.json"
    if isinstance(family, Acrobot) and family.sd in (0.10, 0.25):
        return "acrobot.json" if family.sd == 0.10 else "acrobot-wide.json"
    if isinstance(family, HIV) and family.sd == 0.25 and family.vary == "twelve":
        return "hiv.json"
    raise ValueError(
        f"There are no frozen instances for {family!r}: they exist for grid (beta 0.23), acrobot (sd 0.10 and 0.25) "
        "and hiv (sd 0.25, twelve parameters); draw some with draw_instances."
    )


@functools.cache
def _read(name: str) -> dict[str, Any]:
    path = resources.files("hipmdp.families").joinpath("instances", name)
    if not path.is_file():
        raise ValueError(f"This installation has no frozen instances {name!r}: make them with `hipmdp instances`.")
    return json.loads(path.read_text(encoding="utf-8"))


def frozen_instances(family: AbstractFamily, name: str) -> list[Instance]:
    """The set `name` of a family."""
    return list(_members(family, name))


@functools.cache
def _members(family: AbstractFamily, name: str) -> tuple[Instance, ...]:
    """Kept, because a θ is many small arrays, and studies ask for the same ones again and again."""
    if type(family) not in (Grid, Acrobot, HIV):
        return tuple(unscored(f"{name}:{i}", theta) for i, theta in enumerate(_own(family, name)))
    sets = _read(file_name(family))["sets"]
    rows = sets[known_name(f"instance set of {family.name}", name, sets)]
    return tuple(
        Instance(
            label=f"{name}:{i}",
            theta=family.theta(row["theta"]),
            random=row["random"],
            constant=row["constant"],
            scripted=row["scripted"],
            best_known=row["best_known"],
            source=row["source"],
        )
        for i, row in enumerate(rows)
    )


def unscored(label: str, theta: Theta = None) -> Instance:
    """An instance on which no returns are known."""
    return Instance(label, theta, math.nan, math.nan, math.nan, math.nan, {})


def _own(family: AbstractFamily, name: str) -> list[Theta]:
    """The set `name` of a family of users' own: given, or drawn."""
    given = family.given_sets
    known_name(f"instance set of {family.name}", name, {**OWN_SIZES, **given})
    if name in given:
        return [family.theta(values) for values in given[name]]
    stacked = family.draw_instances(jax.random.fold_in(jax.random.key(2017), OWN_KEYS[name]), OWN_SIZES[name])
    return [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(OWN_SIZES[name])]


def training_pool(family: AbstractFamily) -> str:
    """The set of which a number of training instances are the first so many: `train32`, where there is one."""
    only_train = "train" in family.given_sets and "train32" not in family.given_sets
    return "train" if only_train or type(family) is Grid else "train32"


def resolve_instance(family: AbstractFamily, instance: Any, key: PRNGKeyArray) -> Theta:
    """θ_b from any of the forms users may give: θ, a dict by name, "test:3", or None (drawn with `key`)."""
    if instance is None:
        return jax.tree.map(lambda leaf: leaf[0], family.draw_instances(key, 1))
    if isinstance(instance, Instance):
        return instance.theta
    if isinstance(instance, str):
        return frozen_instance(family, instance).theta
    return family.theta(instance)


def frozen_instance(family: AbstractFamily, label: str) -> Instance:
    """The instance called "test:3"."""
    name, _, position = label.partition(":")
    members = frozen_instances(family, name)
    if not position.isdigit() or int(position) >= len(members):
        raise ValueError(f"Instance {label!r} of {family.name} must be written {name}:0 to {name}:{len(members) - 1}.")
    return members[int(position)]


def resolve_instances(family: AbstractFamily, instances: Any, key: PRNGKeyArray) -> list[Theta]:
    """θ_b's from a count (the first n of `train32`, or of `train` on grid), a set's name, or a list of any form."""
    if isinstance(instances, bool) or instances is None:
        raise ValueError(f"instances must be a number, the name of a set or a list, got {instances!r}.")
    if isinstance(instances, int):
        members = frozen_instances(family, training_pool(family))
        if not 1 <= instances <= len(members):
            raise ValueError(f"instances of {family.name} must be between 1 and {len(members)}, got {instances}.")
        return [member.theta for member in members[:instances]]
    if isinstance(instances, str):
        if ":" in instances:
            return [resolve_instance(family, instances, key)]
        return [member.theta for member in frozen_instances(family, instances)]
    if isinstance(instances, (list, tuple)) and not isinstance(instances, type(family.baseline)):
        if not instances:
            raise ValueError("instances must name at least one instance, got an empty list.")
        return [resolve_instance(family, instance, jax.random.fold_in(key, i)) for i, instance in enumerate(instances)]
    return [family.theta(instances)]


def stack_thetas(thetas: list[Theta]) -> Theta:
    """A list of θ's as one θ with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *thetas)
