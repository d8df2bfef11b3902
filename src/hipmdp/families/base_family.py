"""What every family has, whoever computes its steps: S, A, R, γ, the prior P_W over θ_b, and real episodes."""

import abc
import functools
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from hipmdp._errors import known_name, number
from hipmdp._random import root_key, stream
from hipmdp.families.instance import Instance, Theta, read_sets, unscored, unstack_thetas
from hipmdp.families.rollout import AbstractActor, Episode, Policy
from hipmdp.families.specification import FamilyFacts, Parameter, Specification

if TYPE_CHECKING:
    from hipmdp.families.protocol import AbstractFamily

SET_SIZES = {"train": 5, "train32": 32, "test": 20, "validation": 20, "final": 20}
"""Sizes of the instance sets: settings are chosen on `train` and `validation`, results reported on `test` and `final`.
"""
DRAWN_STREAMS = {"train": 0, "train32": 0, "test": 1, "validation": 2, "final": 3}
"""Members of the stream "families/drawn_set": `train` is the beginning of `train32`."""
DRAWN_SEED = 2017
"""Drawn sets are the same in every process."""


class AbstractInteraction(abc.ABC):
    """One real instance, stepped from Python, one episode at a time; a context manager that frees what it holds."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> np.ndarray:
        """Begin an episode; return its first state."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Take one step; return (next state, reward, terminated, truncated by the environment itself).

        The horizon is the caller's: an interaction does not count steps.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Free what the interaction holds."""

    def __enter__(self) -> "AbstractInteraction":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BaseFamily(eqx.Module):
    """A family of MDPs that share S, A, R and γ and differ in the hidden parameters θ_b of T(s'|s,a,θ_b).

    Its subclasses are `AbstractFamily`, whose steps are JAX functions, and the families of Gymnasium environments.
    """

    baseline: eqx.AbstractClassVar[Theta]
    """The nominal member, as a `NamedTuple` of Python floats; its type is the family's θ."""
    fixed_start: eqx.AbstractClassVar[bool]
    """True if every episode starts in the same state."""
    simulated: eqx.AbstractClassVar[bool]
    """True if steps are pure JAX functions, so that episodes cost next to nothing."""
    reward_needs_theta: ClassVar[bool] = False
    """True if `reward` and `terminated` read θ (then imagination that is given R is given part of θ)."""
    ships_instances: ClassVar[bool] = False
    """True for the built-in families, whose instance sets are frozen in files of the package."""
    set_sizes: ClassVar[Mapping[str, int]] = SET_SIZES
    """How many members each frozen set has."""
    listed_members: ClassVar[tuple[Mapping[str, float], ...]] = ()
    """θ by name of all members, where there are only a few: each set then holds all of them."""

    @property
    @abc.abstractmethod
    def specification(self) -> Specification:
        """Names, bounds and counts of S and A, horizon and γ."""

    @abc.abstractmethod
    def sample_instance(self, key: PRNGKeyArray) -> Theta:
        """Draw θ_b ~ P_W, the raw prior: some draws may be unphysical, which `draw_instances` leaves out."""

    @abc.abstractmethod
    def draw_instances(self, key: PRNGKeyArray, n: int) -> Theta:
        """Draw `n` physical members of the prior, stacked; a longer list starts with the shorter one."""

    @abc.abstractmethod
    def check_parameter(self, name: str, value: float) -> None:
        """Raise `ValueError` if `value` is not physical for the parameter `name`."""

    @abc.abstractmethod
    def reward(
        self,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        next_state: Float[Array, " state"],
        theta: Theta = None,
    ) -> Float[Array, ""]:
        """R(s, a, s'), the function that all instances share."""

    @abc.abstractmethod
    def terminated(self, next_state: Float[Array, " state"], theta: Theta = None) -> Bool[Array, ""]:
        """Whether the MDP ends in `next_state`; never because time is up."""

    @abc.abstractmethod
    def rollouts(self, policy: Policy, keys: Key[Array, " lanes"], thetas: Theta) -> Episode:
        """Run one real episode of `policy` per (key, θ) pair; every field has a leading axis."""

    @abc.abstractmethod
    def rollout_actors(
        self, actor: AbstractActor, memory: Any, keys: Key[Array, " lanes"], thetas: Theta
    ) -> tuple[Episode, Any]:
        """Run one real episode of an actor per (key, θ) pair, each from `memory`; return the last memories too."""

    @abc.abstractmethod
    def first_states(self, keys: Key[Array, " count"], theta: Theta) -> Float[Array, "count state"]:
        """First states of episodes of one instance."""

    @abc.abstractmethod
    def interaction(self, theta: Theta) -> AbstractInteraction:
        """Step the instance θ from Python: `with family.interaction(theta) as real: real.reset(key)`."""

    @abc.abstractmethod
    def simulator(self, purpose: str) -> "AbstractFamily":
        """The family as an environment in JAX; a `ValueError` that names `purpose` where it has none."""

    # What follows is the same for every family, unless it says otherwise.

    @property
    def instance_file(self) -> str | None:
        """The file of the package that holds this family's frozen instance sets; None where there is none."""
        return None

    @property
    def scripted_rule(self) -> tuple[str, Policy] | None:
        """A policy that needs no learning and does not see θ, after the words for it; None where there is none."""
        return None

    def facts(self) -> FamilyFacts:
        """What a report needs to know of this family; override it to name success, parameters or a picture."""
        parameters = tuple(Parameter(name, float(value)) for name, value in self.baseline._asdict().items())
        specification = self.specification
        return FamilyFacts(specification.state_names, specification.action_names, parameters, self.horizon)

    @property
    def given_sets(self) -> Mapping[str, Sequence[Mapping[str, float]]]:
        """Frozen instance sets of a user's own family, θ by name; sets that are not given are drawn, always alike."""
        return {}

    @property
    def training_pool(self) -> str:
        """The set of which a number n of training instances takes the first n: `train32`, where there is one."""
        return "train" if "train" in self.given_sets and "train32" not in self.given_sets else "train32"

    def succeeded(self, terminated: np.ndarray, last_state: np.ndarray) -> np.ndarray:
        """Which episodes succeeded: by default, those that terminated.

        `terminated` is (episodes, time), `last_state` (episodes, D).
        """
        return np.any(terminated, axis=-1)

    @property
    def evaluation_episodes(self) -> int:
        """Episodes behind a greedy return: 20, or 1 where every episode starts in the same state."""
        return 1 if self.fixed_start else 20

    @property
    def knows_reward(self) -> bool:
        """Whether `reward` and `terminated` can be called; where not, imagination must learn them."""
        return True

    @property
    def name(self) -> str:
        """Name of the family."""
        return self.specification.family

    @property
    def horizon(self) -> int:
        """Steps after which an episode is truncated."""
        return self.specification.horizon

    @property
    def discount(self) -> float:
        """γ used for learning."""
        return self.specification.discount

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the hidden parameters."""
        return tuple(self.baseline._fields)

    def instances(self, name: str) -> list[Instance]:
        """A frozen set: controllable members with the best returns known on them.

        Its name is `train`, `train32`, `validation`, `test` or `final`, where the family has it.
        """
        return list(_instances(self, name))

    def theta(self, values: Mapping[str, Any] | Theta | None = None) -> Theta:
        """θ_b from a mapping by name; what is missing takes its baseline value."""
        if values is None:
            values = {}
        if isinstance(values, type(self.baseline)):
            values = values._asdict()
        if not isinstance(values, Mapping):
            raise ValueError(
                f"theta of {self.name} must be a mapping by name or a {type(self.baseline).__name__}, "
                f"got {type(values).__name__}."
            )
        merged = dict(self.baseline._asdict())
        for name, value in values.items():
            known_name(f"parameter of {self.name}", name, self.parameter_names)
            # Checked as the float32 it will be: a rate that underflows to zero is not a rate.
            merged[name] = float(np.float32(number(f"{self.name} parameter", name, value)))
            self.check_parameter(name, merged[name])
        return type(self.baseline)(**{k: jnp.asarray(v, jnp.float32) for k, v in merged.items()})

    def check_action(self, action: Any) -> int:
        """`action` as an int in range, otherwise a `ValueError`."""
        count = self.specification.action_count
        whole = isinstance(action, (int, np.integer)) or (
            isinstance(action, np.ndarray) and action.shape == () and np.issubdtype(action.dtype, np.integer)
        )
        if not whole or isinstance(action, bool) or not 0 <= int(action) < count:
            names = ", ".join(f"{i} {n}" for i, n in enumerate(self.specification.action_names))
            raise ValueError(f"Action of {self.name} must be a whole number: {names}; got {action!r}.")
        return int(action)

    def check_state(self, state: Any) -> Float[Array, " state"]:
        """`state`, given in natural units, as the family's state, otherwise a `ValueError`."""
        try:
            values = np.asarray(state, np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"State of {self.name} must be a list of numbers, got {state!r}.") from None
        check_numbers(self.specification, values)
        values = self.from_natural_units(values)
        spec = self.specification
        for name, value, low, high in zip(spec.state_names, values, spec.state_low, spec.state_high, strict=True):
            # Bounds such as π are compared as float32, which is what a user's state often is.
            if not float(np.float32(low)) <= value <= float(np.float32(high)):
                raise ValueError(f"State {name!r} of {self.name} must be in [{low:g}, {high:g}], got {value:g}.")
        return jnp.asarray(values, jnp.float32)

    def from_natural_units(self, state: np.ndarray) -> np.ndarray:
        """Convert from the units a person would give to the family's state (the same, unless overridden)."""
        return state


def check_numbers(specification: Specification, state: np.ndarray) -> None:
    """Raise a `ValueError` unless `state` is one finite number per state dimension."""
    names = specification.state_names
    if state.shape != (len(names),):
        raise ValueError(
            f"State of {specification.family} must have {len(names)} numbers ({', '.join(names)}), got shape "
            f"{state.shape}."
        )
    bad = [name for name, value in zip(names, state, strict=True) if not np.isfinite(value)]
    if bad:
        raise ValueError(f"State of {specification.family} must be finite, but {', '.join(bad)} is not.")


# Cached, because a θ is many small arrays, and studies use the same ones again and again.
@functools.cache
def _instances(family: BaseFamily, name: str) -> tuple[Instance, ...]:
    kind, path = f"instance set of {family.name}", family.instance_file
    if path is not None:
        sets = read_sets(path)
        rows = sets[known_name(kind, name, sets)]
        returns = ("random", "constant", "scripted", "best_known", "source")
        return tuple(
            Instance(f"{name}:{i}", family.theta(row["theta"]), **{field: row[field] for field in returns})
            for i, row in enumerate(rows)
        )
    if family.ships_instances:
        raise ValueError(
            f"There are no frozen instances for {family!r}: they exist for grid (beta 0.23), acrobot (sd 0.10 and "
            "0.25) and hiv (sd 0.25, twelve parameters); draw some with draw_instances."
        )
    given = family.given_sets
    known_name(kind, name, {**SET_SIZES, **given})
    if name in given:
        thetas = [family.theta(values) for values in given[name]]
    else:
        key = stream(root_key(DRAWN_SEED), "families/drawn_set", DRAWN_STREAMS[name])
        thetas = unstack_thetas(family.draw_instances(key, SET_SIZES[name]))
    return tuple(unscored(f"{name}:{i}", theta) for i, theta in enumerate(thetas))
