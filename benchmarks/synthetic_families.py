"""Families that nobody tuned anything for: everything about family n is drawn from the seed n.

    s' = s + dt (A(θ) s + f(C s) + B(θ)[:, a]) + noise,   f = 0, tanh or sin, sometimes between walls
    A(θ) = A ∏ₖ (1 + gₖ (θₖ − 1)) + Σₖ (θₖ − 1) Aₖ,   B(θ) = B ∏ₖ (1 + Gₖ (θₖ − 1)) + Σₖ (θₖ − 1) Bₖ

so that a hidden parameter multiplies A or columns of B, adds to them, or both; θ = 1 is the nominal member. Rewards are
of any size from 1e-6 to 1e6. The kind and sign of the reward go round from seed to seed and its size spreads evenly
over all sizes, so that a few families have all of them; everything else is drawn independently.
"""

import collections
import functools
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp._errors import in_range
from hipmdp.families.protocol import AbstractFamily
from hipmdp.families.specification import Specification

HORIZONS = (10, 30, 100)
DYNAMICS = ("linear", "tanh", "sine")
REWARDS = ("quadratic", "distance", "region", "cost")
"""Quadratic cost, distance to a target, a bonus in a region that ends the episode, a cost below zero at every step."""
SIGNS = ("as it is", "negative", "as it is", "positive")
"""Whether an offset gives all rewards the same sign; these go round."""
ENTRIES = ("multiplies A", "multiplies B", "adds to A", "adds to B")
"""How a hidden parameter may enter; some do in two ways."""
DECADES = 6.0
"""Rewards are multiplied by 10^x, x uniform within so many decades of zero on either side."""
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo one, are as even over [0, 1) as can be, however many there are."""
LARGEST_GROWTH = 4.0
"""A member whose A(θ) makes some state grow more than so many times in an episode is left out."""
START = 0.5
"""Episodes start uniformly in a box of this half-width."""
PROBE_MEMBERS, PROBE_LANES, HOLDS = 4, 8, 4
"""Episodes behind the target and the range of the reward: so many members, lanes, and actions per episode."""


@dataclass(frozen=True)
class Draw:
    """What was drawn, in plain values."""

    seed: int
    states: int
    actions: int
    horizon: int
    instances: int
    """Training instances."""
    entries: tuple[tuple[str, ...], ...]
    """How each hidden parameter enters."""
    dynamics: str
    wall: float | None
    """Half-width of the box that states are kept in; None: no walls."""
    noise: float
    """Standard deviation of the process noise per √time; 0: none."""
    duration: float
    """Time that an episode takes: horizon · dt."""
    discount: float
    reward: str
    scale: float
    sign: str


class System(NamedTuple):
    """The numbers behind a draw, in float32."""

    a: np.ndarray
    a_gain: np.ndarray
    """(parameters,): gₖ, 0 or 1."""
    a_added: np.ndarray
    """(parameters, states, states): Aₖ."""
    b: np.ndarray
    b_gain: np.ndarray
    """(parameters, actions): Gₖ, 0 or 1 for each column of B."""
    b_added: np.ndarray
    """(parameters, states, actions): Bₖ."""
    c: np.ndarray
    width: np.ndarray
    """(parameters,): θₖ is uniform in [1 − width, 1 + width]."""
    weights: np.ndarray
    """(states,): of the quadratic cost."""
    prices: np.ndarray
    """(actions,): what actions cost, in the quadratic cost and the one below zero."""


class Goal(NamedTuple):
    """What is known of the reward only after some episodes."""

    target: np.ndarray
    radius: float
    low: float
    """Smallest reward before scale and offset, where an offset must know it."""
    high: float


class Numbers(NamedTuple):
    """Everything that a seed decides."""

    draw: Draw
    system: System
    goal: Goal


@functools.cache
def theta_type(count: int) -> Any:
    """θ of a family with `count` hidden parameters."""
    return collections.namedtuple("SyntheticTheta", [f"theta{k}" for k in range(count)])


# The equations, in NumPy or JAX: `xp` is one of the two.


def matrices(system: System, theta: Any, xp: Any) -> tuple[Any, Any]:
    """A(θ) and B(θ)."""
    shift = theta - 1
    a = system.a * xp.prod(1 + system.a_gain * shift) + xp.einsum("k,kij->ij", shift, system.a_added)
    gain = xp.prod(1 + system.b_gain * shift[:, None], axis=0)
    return a, system.b * gain[None, :] + xp.einsum("k,kij->ij", shift, system.b_added)


def drift(draw: Draw, system: System, state: Any, chosen: Any, theta: Any, xp: Any) -> Any:
    """The change of states (…, D) per time, for one-hot actions (…, |A|)."""
    a, b = matrices(system, theta, xp)
    change = state @ a.T + chosen @ b.T
    if draw.dynamics == "linear":
        return change
    return change + {"tanh": xp.tanh, "sine": xp.sin}[draw.dynamics](state @ system.c.T)


def is_tame(draw: Draw, system: System, theta: Any, xp: Any) -> Any:
    """Whether no state dimension grows too much in an episode without actions."""
    a, _ = matrices(system, theta, xp)
    once = np.eye(draw.states, dtype=np.float32) + a * (draw.duration / draw.horizon)
    return xp.max(xp.abs(xp.linalg.matrix_power(once, draw.horizon))) <= LARGEST_GROWTH


def within(draw: Draw, state: Any, xp: Any) -> Any:
    """The state that walls leave of a state."""
    return state if draw.wall is None else xp.clip(state, -draw.wall, draw.wall)


def in_region(goal: Goal, state: Any, xp: Any) -> Any:
    """Whether the first two state dimensions (or the only one) are near the target's."""
    return xp.sum((state[..., :2] - goal.target[:2]) ** 2, axis=-1) < goal.radius**2


def plain_reward(draw: Draw, system: System, goal: Goal, chosen: Any, after: Any, xp: Any) -> Any:
    """R before scale and offset; `after` is (D,)."""
    if draw.reward == "quadratic":
        return -xp.sum(system.weights * after**2) - xp.sum(system.prices * chosen)
    if draw.reward == "distance":
        return -xp.sqrt(xp.sum((after - goal.target) ** 2))
    if draw.reward == "region":
        return xp.where(in_region(goal, after, xp), np.float32(1), np.float32(0))
    return -np.float32(0.1) - xp.mean(xp.abs(after)) - xp.sum(system.prices * chosen)


# What a seed decides.


@functools.cache
def numbers(seed: int) -> Numbers:
    """Family `seed`."""
    rng = np.random.default_rng(seed)
    draw = _draw(rng, seed)
    system = _system(rng, draw)
    return Numbers(draw, system, _goal(rng, draw, system))


def _draw(rng: np.random.Generator, seed: int) -> Draw:
    def choice(values: tuple[Any, ...], weights: tuple[float, ...] | None = None) -> Any:
        return values[int(rng.choice(len(values), p=weights))]

    entries = []
    for _ in range(int(rng.integers(1, 5))):
        order = rng.permutation(len(ENTRIES))[: choice((1, 2), (0.7, 0.3))]
        entries.append(tuple(ENTRIES[i] for i in sorted(order)))
    return Draw(
        seed=seed,
        states=int(rng.integers(1, 9)),
        actions=int(rng.integers(2, 7)),
        horizon=choice(HORIZONS),
        instances=int(rng.integers(4, 17)),
        entries=tuple(entries),
        dynamics=choice(DYNAMICS),
        wall=float(rng.uniform(1.0, 2.0)) if rng.random() < 0.35 else None,
        noise=float(rng.uniform(0.02, 0.1)) if rng.random() < 0.4 else 0.0,
        duration=float(rng.uniform(2.0, 6.0)),
        discount=choice((0.95, 0.99)),
        reward=REWARDS[seed % len(REWARDS)],
        scale=float(10 ** (DECADES * (2 * (seed * GOLDEN % 1) - 1))),
        sign=SIGNS[seed // len(REWARDS) % len(SIGNS)],
    )


def _system(rng: np.random.Generator, draw: Draw) -> System:
    """A is stable: a damped rotation. A parameter may make it a little unstable."""
    size, count, parameters = draw.states, draw.actions, len(draw.entries)
    turn = rng.normal(size=(size, size)) / np.sqrt(size)
    a = 0.7 * (turn - turn.T) / 2 - np.diag(rng.uniform(0.1, 0.8, size))
    width = rng.choice([0.3, 0.6, 0.9], parameters)
    a_gain, a_added = np.zeros(parameters), np.zeros((parameters, size, size))
    b_gain, b_added = np.zeros((parameters, count)), np.zeros((parameters, size, count))
    for k, entries in enumerate(draw.entries):
        if "multiplies A" in entries:
            a_gain[k] = 1
        if "multiplies B" in entries:
            # All actions, or one.
            b_gain[k] = 1 if rng.random() < 0.5 else np.eye(count)[rng.integers(count)]
        if "adds to A" in entries:
            a_added[k] = 0.25 * rng.normal(size=(size, size)) / np.sqrt(size) / width[k]
        if "adds to B" in entries:
            b_added[k] = rng.normal(size=(size, count)) / width[k]
    return System(
        *(
            np.asarray(values, np.float32)
            for values in (
                a,
                a_gain,
                a_added,
                rng.normal(size=(size, count)),
                b_gain,
                b_added,
                rng.normal(size=(size, size)) * 0.3 / np.sqrt(size),
                width,
                rng.uniform(0.2, 1.0, size),
                rng.uniform(0.0, 0.3, count),
            )
        )
    )


def _goal(rng: np.random.Generator, draw: Draw, system: System) -> Goal:
    """A target that some members reach by a few constant actions, and the range of the reward on the way."""
    paths, actions = _probe(rng, draw, system)
    late = paths[:, draw.horizon // 2 :].reshape(-1, draw.states)
    distance = np.linalg.norm(late[:, :2], axis=1)
    target = late[np.argsort(distance)[int(0.7 * len(late))]].astype(np.float32)
    radius = float(max(0.1, 0.5 * late[:, :2].std()))
    goal = Goal(target, radius, 0.0, 1.0)
    if draw.reward == "region":
        return goal
    rewards = [
        plain_reward(draw, system, goal, chosen, after, np)
        for path, chosens in zip(paths, actions, strict=True)
        for chosen, after in zip(chosens, path, strict=True)
    ]
    return Goal(target, radius, -1.5 * float(np.max(np.abs(rewards))), 0.0)


def _probe(rng: np.random.Generator, draw: Draw, system: System) -> tuple[np.ndarray, np.ndarray]:
    """States (episodes, horizon, D) that are reached without noise, and the one-hot actions that led there."""
    paths, actions = [], []
    step = np.float32(draw.duration / draw.horizon)
    for _ in range(PROBE_MEMBERS):
        theta = _tame_member(rng, draw, system)
        state = rng.uniform(-START, START, (PROBE_LANES, draw.states)).astype(np.float32)
        held = rng.integers(draw.actions, size=(HOLDS, PROBE_LANES))
        chosen = np.eye(draw.actions, dtype=np.float32)[held]
        states, taken = [], []
        for time in range(draw.horizon):
            now = chosen[time * HOLDS // draw.horizon]
            state = within(draw, state + step * drift(draw, system, state, now, theta, np), np)
            states.append(state)
            taken.append(now)
        paths.append(np.stack(states, axis=1))
        actions.append(np.stack(taken, axis=1))
    return np.concatenate(paths), np.concatenate(actions)


def _tame_member(rng: np.random.Generator, draw: Draw, system: System) -> np.ndarray:
    while True:
        theta = rng.uniform(1 - system.width, 1 + system.width).astype(np.float32)
        if is_tame(draw, system, theta, np):
            return theta


class Synthetic(AbstractFamily):
    """Family `seed`."""

    fixed_start: ClassVar[bool] = False
    seed: int = eqx.field(static=True, default=0, converter=int)

    @property
    def numbers(self) -> Numbers:
        """Everything that the seed decides."""
        return numbers(self.seed)

    @property
    def draw(self) -> Draw:
        """What was drawn, in plain values."""
        return self.numbers.draw

    @property
    def baseline(self) -> Any:
        """θ = 1."""
        count = len(self.draw.entries)
        return theta_type(count)(*(1.0,) * count)

    @property
    def specification(self) -> Specification:
        """As a user would write it: states are of order one, and unbounded where there is no wall."""
        draw = self.draw
        bound, size = float("inf") if draw.wall is None else draw.wall, draw.states
        return Specification(
            family=f"synthetic{self.seed}",
            state_names=tuple(f"s{i}" for i in range(size)),
            state_low=(-bound,) * size,
            state_high=(bound,) * size,
            state_centre=(0.0,) * size,
            state_scale=(1.0,) * size,
            angles=(False,) * size,
            action_names=tuple(f"a{i}" for i in range(draw.actions)),
            horizon=draw.horizon,
            discount=draw.discount,
        )

    def sample_instance(self, key: PRNGKeyArray) -> Any:
        """Draw each parameter uniformly on its own."""
        width = self.numbers.system.width
        drawn = jax.random.uniform(key, width.shape, jnp.float32, 1 - width, 1 + width)
        return type(self.baseline)(*drawn)

    def well_behaved_parts(self, theta: Any) -> dict[str, Bool[Array, ""]]:
        """States must not grow too much."""
        draw, system, _ = self.numbers
        return {"tame": is_tame(draw, system, jnp.stack(theta), jnp)}

    def check_parameter(self, name: str, value: float) -> None:
        """Raise `ValueError` unless θₖ is in the range of the prior, give or take a rounding."""
        width = float(self.numbers.system.width[self.parameter_names.index(name)]) + 1e-6
        in_range(f"{self.name} parameter", name, value, 1 - width, 1 + width)

    def initial_state(self, key: PRNGKeyArray, theta: Any) -> Float[Array, " state"]:
        """Uniform in a box."""
        return jax.random.uniform(key, (self.draw.states,), jnp.float32, -START, START)

    def dynamics(
        self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], theta: Any
    ) -> Float[Array, " state"]:
        """s' of the module's docstring."""
        draw, system, _ = self.numbers
        step = draw.duration / draw.horizon
        after = state + step * drift(draw, system, state, self._one_hot(action), jnp.stack(theta), jnp)
        if draw.noise > 0:
            after = after + draw.noise * step**0.5 * jax.random.normal(key, after.shape, jnp.float32)
        return within(draw, after, jnp)

    def reward(
        self,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        next_state: Float[Array, " state"],
        theta: Any = None,
    ) -> Float[Array, ""]:
        """R(s, a, s'): θ is not needed."""
        draw, system, goal = self.numbers
        value = plain_reward(draw, system, goal, self._one_hot(action), next_state, jnp)
        if draw.sign != "as it is":
            # A tenth of the range away from zero.
            offset = 0.1 * (goal.high - goal.low) - goal.low
            if draw.sign == "negative":
                offset = -0.1 * (goal.high - goal.low) - goal.high
            value = jnp.clip(value, goal.low, goal.high) + offset
        return draw.scale * value

    def terminated(self, next_state: Float[Array, " state"], theta: Any = None) -> Bool[Array, ""]:
        """In the region, where there is one."""
        draw, _, goal = self.numbers
        return in_region(goal, next_state, jnp) if draw.reward == "region" else jnp.zeros((), bool)

    def _one_hot(self, action: Int[Array, ""]) -> Float[Array, " actions"]:
        # Computed, not looked up: a gather would stop vectorisation over lanes.
        return jax.nn.one_hot(action, self.draw.actions, dtype=jnp.float32)
