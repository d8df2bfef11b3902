"""`gymnasium_family`: a family from any Gymnasium environment with discrete actions and a flat Box observation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import jax
import numpy as np

from hipmdp._errors import LARGEST, in_range, known_name, number
from hipmdp._random import host_seed, numpy_generator, root_key, stream
from hipmdp._units import rounding
from hipmdp.families import FAMILIES
from hipmdp.families.gymnasium.family import (
    Factory,
    Given,
    GymnasiumFamily,
    Sampler,
    Uniform,
    check_success,
    theta_type,
)
from hipmdp.families.specification import Specification

PROBE_EPISODES, PROBE_STEPS = 8, 200
"""Random episodes that show which states are typical, and the most steps of each."""
PROBE_SEED = 2017
"""The random episodes are the same in every process."""
FAR = 100
"""A bound that is more than this many times what random episodes reach does not show which states are typical."""


def gymnasium_family(
    name: str,
    make: Factory,
    parameters: Mapping[str, Sequence[float]] | Sampler,
    *,
    reward: Callable[[Any, Any, Any], Any] | None = None,
    terminated: Callable[[Any], Any] | None = None,
    horizon: int | None = None,
    discount: float = 0.99,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    angles: Sequence[str] = (),
    state_centre: Sequence[float] | None = None,
    state_scale: Sequence[float] | None = None,
    baseline: Mapping[str, float] | None = None,
    sets: Mapping[str, Sequence[Mapping[str, float]]] | None = None,
    success: str = "terminated",
    evaluation_episodes: int = 20,
    copies: int = 20,
) -> GymnasiumFamily:
    """A family whose member θ is the environment `make(θ)`, θ a dict by name.

    Args:
        name: The name of the family.
        make: θ by name → a `gymnasium.Env` with discrete actions and a flat Box observation.
        parameters: The hidden parameters: uniform ranges by name, or a function of a `numpy.random.Generator` that
            draws θ by name.
        reward: R(s, a, s') as a JAX function of one transition, for imagination with `reward="given"`.
        terminated: Whether the MDP ends in s', as a JAX function; given together with `reward`.
        horizon: Steps after which an episode is cut off; by default the environment's own time limit.
        discount: γ used for learning.
        state_names: One per number of the observation; by default x0, x1, ….
        action_names: One per action; by default 0, 1, ….
        angles: Names of states that are angles in [−π, π] and jump where they wrap.
        state_centre: A typical observation; by default from a few random episodes.
        state_scale: The typical spread of each number; by default from the same episodes and the bounds.
        baseline: The nominal member; by default the middle of the ranges, or the first draw.
        sets: Frozen instance sets ("train", "train32", "test", others); those not given are drawn, always alike.
        success: When an episode succeeds: to have "terminated", or to have "survived" until time is up.
        evaluation_episodes: Episodes behind a greedy return.
        copies: How many environments of one instance may exist side by side.
    """
    _check_name(name)
    if (reward is None) != (terminated is None):
        raise ValueError(
            f"Give {name} reward and terminated together (terminated=lambda state: False where episodes never end), "
            "or neither."
        )
    for kind, value in (("copies", copies), ("evaluation_episodes", evaluation_episodes)):
        in_range(f"Option of {name}", kind, value, 1, 10_000)
    in_range(f"Option of {name}", "discount", discount, 0, 1, open_low=True)
    sampler: Any = parameters if callable(parameters) else _uniform(name, parameters)
    nominal = dict(baseline or _nominal(sampler))
    theta = theta_type(name, tuple(nominal))(*(number(f"{name} parameter", n, v) for n, v in nominal.items()))
    frozen = tuple((s, tuple(tuple(t.items()) for t in members)) for s, members in (sets or {}).items())
    given = Given(reward, terminated, check_success(success), frozen, copies, evaluation_episodes)
    env = make(dict(nominal))
    if not isinstance(env, gymnasium.Env):
        raise ValueError(f"make(theta) of {name} must return a gymnasium.Env, got {type(env).__name__}.")
    try:
        specification = _describe(name, env, horizon, discount, state_names, action_names, angles)
        if state_centre is None or state_scale is None:
            seen = _random_states(env)
            state_centre = seen.mean(axis=0).tolist() if state_centre is None else state_centre
            state_scale = _spread(seen, specification).tolist() if state_scale is None else state_scale
    finally:
        env.close()
    values = {**specification.to_dict(), "state_centre": _rounded(state_centre), "state_scale": _rounded(state_scale)}
    for field in ("state_centre", "state_scale"):
        if len(values[field]) != specification.state_size:
            raise ValueError(f"{field} of {name} must have {specification.state_size} numbers, got {values[field]}.")
    family = GymnasiumFamily(Specification.from_dict(values), theta, make, sampler, given)
    for members in family.given_sets.values():
        for member in members:
            family.theta(member)
    return family


def _check_name(name: str) -> None:
    if not name or name in FAMILIES:
        raise ValueError(f"Give your family a name of its own, not {name!r}.")


def _uniform(name: str, parameters: Mapping[str, Sequence[float]]) -> Uniform:
    ranges = []
    for parameter, pair in parameters.items():
        values = [number(f"{name} parameter", parameter, value) for value in pair]
        if len(values) != 2 or not values[0] < values[1]:
            raise ValueError(f"The range of {name}'s {parameter!r} must be (low, high), got {pair!r}.")
        ranges.append((parameter, values[0], values[1]))
    if not ranges:
        raise ValueError(f"{name} needs at least one hidden parameter: parameters={{'length': (0.5, 1.5)}}.")
    return Uniform(tuple(ranges))


def _nominal(sampler: Sampler) -> Mapping[str, float]:
    if isinstance(sampler, Uniform):
        return {name: (low + high) / 2 for name, low, high in sampler.ranges}
    return sampler(numpy_generator(stream(root_key(PROBE_SEED), "families/nominal")))


def _describe(
    name: str,
    env: gymnasium.Env[Any, Any],
    horizon: int | None,
    discount: float,
    state_names: Sequence[str] | None,
    action_names: Sequence[str] | None,
    angles: Sequence[str],
) -> Specification:
    """Names, bounds and counts from the environment's spaces; centre and scale are filled in later."""
    space, actions = env.observation_space, env.action_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise ValueError(
            f"{name} must have discrete actions, but its action space is {actions}: "
            "wrap it so that each action is one of a few numbers (gymnasium.wrappers.DiscretizeAction)."
        )
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise ValueError(
            f"{name} must have a flat Box observation, but its observation space is {space}: "
            "wrap it in gymnasium.wrappers.FlattenObservation."
        )
    limit = None if env.spec is None else env.spec.max_episode_steps
    steps = limit if horizon is None else horizon
    if steps is None:
        raise ValueError(f"{name} has no time limit of its own: give horizon, the steps of an episode.")
    in_range(f"Option of {name}", "horizon", steps, 1, 10**9)
    size, count = int(space.shape[0]), int(actions.n)
    names = tuple(state_names or (f"x{i}" for i in range(size)))
    labels = tuple(action_names or map(str, range(count)))
    for kind, given, needed in (("state_names", names, size), ("action_names", labels, count)):
        if len(set(given)) != needed or len(given) != needed:
            raise ValueError(f"{kind} of {name} must be {needed} different names, got {', '.join(given)}.")
    for angle in angles:
        known_name(f"state of {name}", angle, names)
    # Bounds that are infinite become the largest float32: JSON knows no infinity.
    low, high = (np.clip(b.astype(np.float64), -LARGEST, LARGEST).tolist() for b in (space.low, space.high))
    zeros = (0.0,) * size
    return Specification(
        name, names, tuple(low), tuple(high), zeros, zeros, tuple(n in angles for n in names), labels, int(steps),
        float(discount),
    )  # fmt: skip


def _random_states(env: gymnasium.Env[Any, Any]) -> np.ndarray:
    """States of a few random episodes, always the same ones."""
    states = []
    space: Any = env.action_space
    for episode in range(PROBE_EPISODES):
        action_key, reset_key = jax.random.split(stream(root_key(PROBE_SEED), "families/typical_states", episode))
        rng = numpy_generator(action_key)
        observation, _ = env.reset(seed=host_seed(reset_key))
        states.append(np.asarray(observation, np.float64))
        for _ in range(PROBE_STEPS):
            observation, _, terminated, truncated, _ = env.step(int(space.start + rng.integers(space.n)))
            states.append(np.asarray(observation, np.float64))
            if terminated or truncated:
                break
    return np.stack(states)


def _spread(seen: np.ndarray, specification: Specification) -> np.ndarray:
    """Standard deviation in random episodes, but at least a tenth of the range where that is informative."""
    width = np.asarray(specification.state_high) - np.asarray(specification.state_low)
    reached = np.abs(seen).max(axis=0)
    spread = np.maximum(seen.std(axis=0), np.where(width <= FAR * reached, width / 10, 0))
    return np.where(spread > rounding(seen), spread, 1.0)


def _rounded(values: Sequence[float]) -> list[float]:
    """Six digits: the same on every machine, where rounding may differ."""
    return [float(f"{value:.6g}") for value in values]
