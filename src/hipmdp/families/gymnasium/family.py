"""A family whose members are Gymnasium environments: Python steps them, not JAX.

Such a member cannot be put into a state, and cannot be stepped inside jit: the family has no `reset`, `step` or
`dynamics`. R and the terminal states, where they are given, are JAX functions, for imagination.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from hipmdp._errors import known_name
from hipmdp._random import host_seed, numpy_generator, stream
from hipmdp.families.base_family import AbstractInteraction, BaseFamily
from hipmdp.families.gymnasium.episodes import run_lanes
from hipmdp.families.gymnasium.pool import CheckedEnvironment, GymnasiumInteraction, Pool, Values
from hipmdp.families.instance import Theta, theta_values
from hipmdp.families.rollout import AbstractActor, Episode, Memoryless, Policy
from hipmdp.families.specification import FamilyFacts, Specification

Sampler = Callable[[np.random.Generator], Mapping[str, float]]
"""Draws θ by name."""
Factory = Callable[[dict[str, float]], gymnasium.Env[Any, Any]]
"""θ by name → an environment."""


class Uniform(NamedTuple):
    """A sampler that draws each parameter independently from its range."""

    ranges: tuple[tuple[str, float, float], ...]

    def __call__(self, rng: np.random.Generator) -> dict[str, float]:
        """Draw θ by name."""
        return {name: float(rng.uniform(low, high)) for name, low, high in self.ranges}


@functools.cache
def theta_type(family: str, names: tuple[str, ...]) -> Any:
    """The `NamedTuple` of a family's hidden parameters."""
    for name in names:
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"A parameter's name must be a Python name such as 'length', got {name!r}.")
    return collections.namedtuple(f"{''.join(filter(str.isalnum, family)).capitalize()}Theta", names)


class Given(NamedTuple):
    """What a user may give beyond the environments of a family."""

    reward: Callable[[Any, Any, Any], Any] | None
    """R(s, a, s') in JAX."""
    terminated: Callable[[Any], Any] | None
    """Whether the MDP ends in s', in JAX."""
    success: str
    """"terminated", or "survived" where to terminate is to fail."""
    sets: tuple[tuple[str, tuple[tuple[tuple[str, float], ...], ...]], ...]
    """Frozen instance sets by name, as hashable values."""
    copies: int
    """How many environments of one instance may exist side by side."""
    evaluation_episodes: int
    """Episodes behind a greedy return."""


class GymnasiumFamily(BaseFamily):
    """Made by `hipmdp.gymnasium_family`."""

    fixed_start: ClassVar[bool] = False
    simulated: ClassVar[bool] = False

    described: Specification = eqx.field(static=True)
    nominal: Theta = eqx.field(static=True)
    factory: Factory = eqx.field(static=True)
    sampler: Sampler = eqx.field(static=True)
    given: Given = eqx.field(static=True)

    def __repr__(self) -> str:
        # Without addresses of functions: this text identifies a collection or a run, in other processes too.
        prior = self.sampler if isinstance(self.sampler, Uniform) else self.parameter_names
        return f"GymnasiumFamily({self.described}, {prior}, {self.given.sets})"

    @property
    def baseline(self) -> Theta:
        """The nominal member."""
        return self.nominal

    @property
    def specification(self) -> Specification:
        """Names, bounds and counts."""
        return self.described

    @property
    def evaluation_episodes(self) -> int:
        """Episodes behind a greedy return."""
        return self.given.evaluation_episodes

    @property
    def knows_reward(self) -> bool:
        """Whether R and the terminal states were given as functions."""
        return self.given.reward is not None

    def facts(self) -> FamilyFacts:
        """Success is called what the user calls it."""
        return dataclasses.replace(super().facts(), success=self.given.success)

    @property
    def given_sets(self) -> Mapping[str, Sequence[Mapping[str, float]]]:
        """The sets that the user gave."""
        return {name: [dict(theta) for theta in thetas] for name, thetas in self.given.sets}

    def sample_instance(self, key: PRNGKeyArray) -> Theta:
        """Draw θ_b ~ P_W with the user's sampler: it cannot be jitted."""
        drawn = dict(self.sampler(numpy_generator(key)))
        if set(drawn) != set(self.parameter_names):
            raise ValueError(
                f"The sampler of {self.name} must give {', '.join(self.parameter_names)}, it gave "
                f"{', '.join(drawn) or 'nothing'}."
            )
        return self.theta(drawn)

    def draw_instances(self, key: PRNGKeyArray, n: int) -> Theta:
        """The first `n` draws from the prior, stacked; draw i has a key of its own."""
        if n < 1:
            raise ValueError(f"draw_instances needs n of at least 1, got {n}.")
        drawn = [self.sample_instance(stream(key, "families/prior", i)) for i in range(n)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *drawn)

    def check_parameter(self, name: str, value: float) -> None:
        """Accept every number: the factory refuses values that make no sense."""

    def reward(self, state: Any, action: Any, next_state: Any, theta: Theta = None) -> Float[Array, ""]:
        """The R that was given."""
        if self.given.reward is None:
            raise ValueError(no_reward(self.name))
        return _scalar(self.given.reward(state, action, next_state), jnp.float32, f"reward of {self.name}")

    def terminated(self, next_state: Any, theta: Theta = None) -> Bool[Array, ""]:
        """The terminal states that were given."""
        if self.given.terminated is None:
            raise ValueError(no_reward(self.name))
        return _scalar(self.given.terminated(next_state), jnp.bool_, f"terminated of {self.name}")

    def succeeded(self, terminated: np.ndarray, last_state: np.ndarray) -> np.ndarray:
        """Which episodes terminated; or, where success is to have survived, which did not."""
        ended = np.any(terminated, axis=-1)
        return ~ended if self.given.success == "survived" else ended

    def rollouts(self, policy: Policy, keys: Key[Array, " lanes"], thetas: Theta) -> Episode:
        """Run one episode of `policy` per (key, θ) pair, `copies` of them side by side."""
        return self.rollout_actors(Memoryless(policy), None, keys, thetas)[0]

    def rollout_actors(
        self, actor: AbstractActor, memory: Any, keys: Key[Array, " lanes"], thetas: Theta
    ) -> tuple[Episode, Any]:
        """Run one episode of an actor per (key, θ) pair, `copies` of them side by side."""
        values, copies = lane_values(thetas), self.given.copies
        with self.pool() as pool:
            parts = [
                run_lanes(pool, self.described, actor, memory, keys=keys[i : i + copies], values=values[i : i + copies])
                for i in range(0, len(values), copies)
            ]
        return jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)), *parts)

    def first_states(self, keys: Key[Array, " count"], theta: Theta) -> Float[Array, "count state"]:
        """First states of episodes of one instance, from one environment."""
        with self.pool() as pool:
            environment = pool.acquire(tuple(theta_values(theta).values()))
            return jnp.asarray(np.stack([environment.reset(host_seed(key)) for key in keys]))

    def interaction(self, theta: Theta) -> AbstractInteraction:
        """Step one environment of the instance θ; it is closed at the end."""
        return GymnasiumInteraction(self.environment(tuple(theta_values(theta).values())))

    def simulator(self, purpose: str) -> NoReturn:
        """Raise: a Gymnasium environment has no dynamics that JAX could compute."""
        raise ValueError(
            f"{purpose} needs a family in JAX: the Gymnasium environment {self.name} cannot be imagined in."
        )

    def environment(self, values: Values) -> CheckedEnvironment:
        """A new environment of the instance with these parameters."""
        theta = dict(zip(self.parameter_names, values, strict=True))
        try:
            made = self.factory(dict(theta))
        except (Exception, SystemExit) as error:
            given = ", ".join(f"{name}={value:g}" for name, value in theta.items())
            raise ValueError(f"make(theta) of {self.name} raised {type(error).__name__} at {given}: {error}") from error
        return CheckedEnvironment(made, self.described, values)

    def pool(self) -> Pool:
        """No environments yet; those that are made are closed with it."""
        return Pool(self.environment)


def lane_values(thetas: Theta) -> list[Values]:
    """Stacked θ's as tuples of plain numbers."""
    return list(zip(*(np.asarray(leaf, np.float64).tolist() for leaf in thetas), strict=True))


def no_reward(name: str) -> str:
    """The sentence for a family whose R was not given."""
    return (
        f'{name} was given no reward and terminated functions: give them to gymnasium_family, or use reward="learned".'
    )


def check_success(success: str) -> str:
    """`success` as one of the two words."""
    return known_name("success", success, ("terminated", "survived"))


def _scalar(value: Any, dtype: Any, what: str) -> Any:
    result = jnp.asarray(value).astype(dtype)
    if result.shape != ():
        raise ValueError(f"The {what} must be one number for one transition, got shape {result.shape}.")
    return result
