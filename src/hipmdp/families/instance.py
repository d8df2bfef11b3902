"""An instance: its hidden parameters θ_b, and the returns that are known on it."""

import functools
import math
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp

from hipmdp._files import checked_json

Theta = Any
"""An instance's hidden parameters θ_b: the family's own `NamedTuple` of scalars."""


def theta_values(theta: Theta) -> dict[str, float]:
    """θ as plain numbers by name."""
    return {name: float(value) for name, value in theta._asdict().items()}


def stack_thetas(thetas: list[Theta]) -> Theta:
    """A list of θ's as one θ with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *thetas)


def unstack_thetas(stacked: Theta) -> list[Theta]:
    """The inverse of `stack_thetas`."""
    count = jax.tree.leaves(stacked)[0].shape[0]
    return [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(count)]


@dataclass(frozen=True)
class Instance:
    """One member of a frozen set."""

    label: str
    """Set and position, such as "test:3"."""
    theta: Theta
    """θ_b."""
    random: float
    """Mean undiscounted return of the uniformly random policy."""
    constant: float
    """Mean undiscounted return of the best constant action."""
    scripted: float
    """Mean undiscounted return of the family's scripted rule (`hipmdp.families.scripted`)."""
    best_known: float
    """Best mean undiscounted return known; NaN, as all returns are, where none was searched for."""
    source: dict[str, Any]
    """How the best known return was found: method, seed, date, command."""

    @property
    def is_scored(self) -> bool:
        """Whether a best return is known; otherwise a score is the plain return."""
        return not math.isnan(self.best_known)

    def score(self, value: float) -> float:
        """(R − R_random) / (R_best_known − R_random); R where no best return is known."""
        return (value - self.random) / (self.best_known - self.random) if self.is_scored else value


def unscored(label: str, theta: Theta = None) -> Instance:
    """An instance on which no returns are known."""
    return Instance(label, theta, math.nan, math.nan, math.nan, math.nan, {})


@functools.cache
def read_sets(name: str) -> dict[str, list[dict[str, Any]]]:
    """The frozen sets in the file `name` of the package: rows with θ by name, returns and their source."""
    path = resources.files("hipmdp.families").joinpath("instances", name)
    if not path.is_file():
        raise ValueError(f"This installation has no frozen instances {name!r}: make them with `hipmdp instances`.")
    return checked_json(path.read_text(encoding="utf-8"), str(path))["sets"]
