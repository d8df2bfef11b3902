"""A family whose members are Gymnasium environments: Python steps them, not JAX.

Such a member cannot be put into a state, and cannot be stepped inside jit. What can be told without it (R, terminal
states) is a JAX function, for imagination; real episodes are lived by `hipmdp.families.play` and learned from by
`hipmdp.control.host`.
"""

import collections
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp.families.checks import known_name, number
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.specification import Specification

Sampler = Callable[[np.random.Generator], Mapping[str, float]]
"""Draws θ by name."""
Factory = Callable[[dict[str, float]], gymnasium.Env[Any, Any]]
"""θ by name → an environment."""


class Uniform(NamedTuple):
    """Each parameter independently from its range."""

    ranges: tuple[tuple[str, float, float], ...]

    def __call__(self, rng: np.random.Generator) -> dict[str, float]:
        """θ by name."""
        return {name: float(rng.uniform(low, high)) for name, low, high in self.ranges}


@functools.cache
def theta_type(family: str, names: tuple[str, ...]) -> Any:
    """The `NamedTuple` of a family's hidden parameters."""
    for name in names:
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"A parameter's name must be a Python name such as 'length', got {name!r}.")
    return collections.namedtuple(f"{''.join(filter(str.isalnum, family)).capitalize()}Theta", names)


class Given(NamedTuple):
    """What users may tell about a family beyond its environments."""

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


class HostFamily(AbstractFamily):
    """Made by `hipmdp.gymnasium_family`."""

    fixed_start: ClassVar[bool] = False

    described: Specification = eqx.field(static=True)
    nominal: Theta = eqx.field(static=True)
    factory: Factory = eqx.field(static=True)
    sampler: Sampler = eqx.field(static=True)
    given: Given = eqx.field(static=True)

    def __repr__(self) -> str:
        # Without addresses of functions: collections and runs are told apart by this text, in other processes too.
        prior = self.sampler if isinstance(self.sampler, Uniform) else self.parameter_names
        return f"HostFamily({self.described}, {prior}, {self.given.sets})"

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

    @property
    def given_sets(self) -> Mapping[str, Sequence[Mapping[str, float]]]:
        """The sets that the user gave."""
        return {name: [dict(theta) for theta in thetas] for name, thetas in self.given.sets}

    def sample_instance(self, key: PRNGKeyArray) -> Theta:
        """Draw θ_b ~ P_W, on the host: it cannot be jitted."""
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        drawn = dict(self.sampler(rng))
        if set(drawn) != set(self.parameter_names):
            raise ValueError(
                f"The sampler of {self.name} must give {', '.join(self.parameter_names)}, it gave "
                f"{', '.join(drawn) or 'nothing'}."
            )
        return self.theta(drawn)

    def draw_instances(self, key: PRNGKeyArray, n: int) -> Theta:
        """The first `n` draws from the prior, stacked; draw i uses `fold_in(key, i)`."""
        if n < 1:
            raise ValueError(f"draw_instances needs n of at least 1, got {n}.")
        drawn = [self.sample_instance(jax.random.fold_in(key, i)) for i in range(n)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *drawn)

    def well_behaved_parts(self, theta: Theta) -> dict[str, Bool[Array, ""]]:
        """A sampler draws nothing else."""
        return {"drawn": jnp.ones((), bool)}

    def check_parameter(self, name: str, value: float) -> None:
        """The factory refuses what makes no sense."""

    def initial_state(self, key: PRNGKeyArray, theta: Theta) -> Float[Array, " state"]:
        """The first state of an episode, from a new environment: on the host."""
        with Pool(self) as pool:
            return jnp.asarray(pool.take(self.values_of(theta)).reset(seed_of(key)))

    def dynamics(
        self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], theta: Theta
    ) -> Float[Array, " state"]:
        """Nobody but Gymnasium knows."""
        raise ValueError(f"{self.name} is a Gymnasium environment: it cannot be put into a state and stepped from it.")

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
        """Those that terminated; or those that did not."""
        ended = np.any(terminated, axis=-1)
        return ~ended if self.given.success == "survived" else ended

    def values_of(self, theta: Theta) -> tuple[float, ...]:
        """θ as plain numbers."""
        return tuple(float(value) for value in theta)


class Live:
    """The environment of one instance, checked at every step."""

    def __init__(self, family: HostFamily, values: tuple[float, ...]) -> None:
        self.family, self.values = family, values
        self.env = family.factory(dict(zip(family.parameter_names, values, strict=True)))
        self._first = int(getattr(self.env.action_space, "start", 0))

    def reset(self, seed: int) -> np.ndarray:
        """Begin an episode."""
        observation, _ = self.env.reset(seed=seed)
        return self._checked(observation)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """(next state, reward, terminated, truncated); an episode that ended was not cut off."""
        observation, reward, terminated, truncated, _ = self.env.step(self._first + action)
        reward = number("A reward", self.family.name, reward)
        return self._checked(observation), reward, bool(terminated), bool(truncated) and not terminated

    def _checked(self, observation: Any) -> np.ndarray:
        state = np.asarray(observation, np.float32)
        size = self.family.specification.state_size
        if state.shape != (size,) or not np.isfinite(state).all():
            raise ValueError(f"{self.family.name} gave the observation {observation}, not {size} finite numbers.")
        return state


class Pool:
    """The environments that are open. One is made when none of its instance is free; all are closed in the end."""

    def __init__(self, family: HostFamily) -> None:
        self.family = family
        self._free: dict[tuple[float, ...], list[Live]] = {}
        self._all: list[Live] = []

    def take(self, values: tuple[float, ...]) -> Live:
        """An environment of this instance, for one episode."""
        free = self._free.setdefault(values, [])
        if not free:
            free.append(Live(self.family, values))
            self._all.append(free[0])
        return free.pop()

    def give_back(self, live: Live) -> None:
        """Its episode is over."""
        self._free[live.values].append(live)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *error: object) -> None:
        for live in self._all:
            live.env.close()


def seed_of(key: PRNGKeyArray) -> int:
    """A seed that every environment takes: positive, 31 bits."""
    return int(jax.random.bits(key, (), jnp.uint32) >> 1)


def no_reward(name: str) -> str:
    """What to do where R was not given."""
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
