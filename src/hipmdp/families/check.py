"""Is this a family that hipmdp can learn? A list of named checks, each with one sentence.

The same checks for a family in JAX and for one of Gymnasium environments: both are played from a seed with a fixed
sequence of actions. What must hold inside JAX, or inside Gymnasium, is asked of that kind alone.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.families.check_interface import check_gymnasium, check_jax
from hipmdp.families.checks import in_range
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.host import HostFamily
from hipmdp.families.instance_sets import stack_thetas
from hipmdp.families.play import play
from hipmdp.families.rollout import Episode
from hipmdp.families.scripted import Schedule

DRAWS, LOOKED_AT = 16, 4
"""Instances that are drawn, and how many different ones of them are played."""
TOLERANCE = 1e-4
"""Relative; everything is computed in float32."""
MOST = 20_000
"""Steps that `check_family` takes at most in one episode."""


class Check(NamedTuple):
    """What was looked at, and what was seen."""

    name: str
    passed: bool
    sentence: str


class Played(NamedTuple):
    """The valid steps of one episode, as NumPy arrays."""

    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray


class Examination:
    """Instances, a seed and a sequence of actions; episodes are played when they are needed."""

    def __init__(self, family: AbstractFamily, seed: int, steps: int) -> None:
        in_range("check-env option", "steps", steps, 1, MOST)
        self.family, self.key = family, jax.random.key(seed)
        drawn = family.draw_instances(jax.random.fold_in(self.key, 0), DRAWS)
        every = [jax.tree.map(lambda leaf, i=i: leaf[i], drawn) for i in range(DRAWS)]
        self.drawn: list[Theta] = list({tuple(map(float, theta)): theta for theta in every}.values())
        self.thetas = self.drawn[:LOOKED_AT]
        rng = np.random.default_rng(seed)
        count, self.steps = family.specification.action_count, min(steps, family.horizon)
        self.actions = jnp.asarray(rng.integers(count, size=family.horizon), jnp.int32)

    def play(self, thetas: list[Theta], stream: int = 1) -> list[Played]:
        """The same actions from the same seed with each θ."""
        # Always as many lanes, so that JAX compiles once.
        lanes = stack_thetas([*thetas, *thetas[:1] * (LOOKED_AT - len(thetas))])
        keys = jnp.broadcast_to(jax.random.fold_in(self.key, stream), (LOOKED_AT,))
        told: Episode = jax.tree.map(np.asarray, play(self.family, Schedule(self.actions), keys, lanes))
        return [self._valid(told, lane) for lane in range(len(thetas))]

    def _valid(self, told: Episode, lane: int) -> Played:
        valid = np.asarray(told.valid[lane])[: self.steps]
        columns = (told.states, told.actions, told.rewards, told.next_states, told.terminated)
        return Played(*(np.asarray(column[lane])[: self.steps][valid] for column in columns))


def check_family(family: AbstractFamily, seed: int = 0, steps: int = 200) -> list[Check]:
    """All checks, in order; after one that makes the rest impossible the rest is left out."""
    interface = check_gymnasium if isinstance(family, HostFamily) else check_jax
    checks = [Check(*told) for told in interface(family, seed, min(steps, family.horizon))]
    if not all(check.passed for check in checks):
        return checks
    examination = Examination(family, seed, steps)
    for part in (_seeds, _bounds, _hidden, _each_parameter, _reward, _terminated, _episodes):
        try:
            checks += list(part(examination))
        except Exception as error:
            name = part.__name__.strip("_").replace("_", " ")
            checks.append(Check(name, False, f"raised {type(error).__name__}: {str(error).splitlines()[0]}"))
    return checks


def _seeds(x: Examination) -> Iterator[Check]:
    first, again = (x.play(x.thetas[:1])[0] for _ in range(2))
    if _same(first, again):
        yield Check("seeds", True, "the same seed gives the same episode to the bit")
    else:
        step = _first_difference(first, again)
        yield Check(
            "seeds", False, f"two episodes from the same seed differ at step {step}: reset(seed=…) must fix all"
        )
    if not x.family.fixed_start:
        other = x.play(x.thetas[:1], stream=2)[0]
        differ = not np.array_equal(first.state[0], other.state[0])
        words = "another seed gives another start" if differ else "every seed gives the same start"
        yield Check("starts", True, words)


def _bounds(x: Examination) -> Iterator[Check]:
    spec = x.family.specification
    for played in x.play(x.thetas):
        low, high = (np.asarray(bound, np.float32) for bound in (spec.state_low, spec.state_high))
        outside = (played.next_state < low) | (played.next_state > high)
        if outside.any():
            step, column = np.argwhere(outside)[0]
            value, name = played.next_state[step, column], spec.state_names[column]
            yield Check("bounds", True, f"warning: {name} is {value:g} at step {step}, outside its bounds")
            return
    yield Check("bounds", True, "observations stay within their bounds")


def _hidden(x: Examination) -> Iterator[Check]:
    if len(x.thetas) < 2:
        yield Check("hidden parameters", False, f"{DRAWS} draws are all the same instance: nothing is hidden")
        return
    first, second = x.play(x.thetas[:2])
    if _same_path(first, second):
        yield Check("hidden parameters", False, _unchanged("two instances behave the same", x))
        return
    step = _first_difference(first, second)
    yield Check("hidden parameters", True, f"two instances given the same actions differ from step {step} on")


def _each_parameter(x: Examination) -> Iterator[Check]:
    base = x.thetas[0]
    for name in x.family.parameter_names:
        others = [theta for theta in x.drawn[1:] if float(getattr(theta, name)) != float(getattr(base, name))]
        if not others:
            yield Check(
                name, False, f"{DRAWS} draws all have {name} = {float(getattr(base, name)):g}: it is not hidden"
            )
            continue
        changed = base._replace(**{name: getattr(others[0], name)})
        before, after = x.play([base, changed])
        values = f"{float(getattr(base, name)):.3g} and {float(getattr(changed, name)):.3g}"
        if not _same_path(before, after):
            yield Check(name, True, f"{values} differ from step {_first_difference(before, after)} on")
        elif not _same(before, after):
            yield Check(name, True, f"{values} differ in rewards and ends alone, not in the states")
        else:
            yield Check(name, False, _unchanged(f"{values} behave the same", x))


def _unchanged(what: str, x: Examination) -> str:
    return f"{what} in {x.steps} steps of the same actions: does make(theta) use it, also where it is cached?"


def _reward(x: Examination) -> Iterator[Check]:
    if not x.family.knows_reward:
        yield Check("reward", True, 'no function was given: use reward="learned"')
        return
    yield _compared(x, "reward", "reward", lambda p, theta: _rewards(x.family, p, theta))


def _terminated(x: Examination) -> Iterator[Check]:
    if x.family.knows_reward:
        yield _compared(x, "terminated", "terminated", lambda p, theta: _ends(x.family, p, theta))


def _compared(x: Examination, name: str, field: str, told: Callable[[Played, Theta], np.ndarray]) -> Check:
    """The function against what the environment gave, in every step of every instance."""
    total, worst, where = 0, 0.0, ""
    for number, (played, theta) in enumerate(zip(x.play(x.thetas), x.thetas, strict=True)):
        given = told(played, theta if x.family.reward_needs_theta else None).astype(np.float64)
        true = getattr(played, field).astype(np.float64)
        difference = np.abs(given - true) / np.maximum(1, np.abs(true))
        step = int(np.argmax(difference))
        total += len(true)
        if difference[step] > worst:
            worst = float(difference[step])
            both = f"the function says {given[step]:g}, the environment {true[step]:g}"
            where = f"at step {step} of instance {number}: {both}"
    if worst > TOLERANCE:
        return Check(name, False, f"the function differs {where}")
    return Check(name, True, f"the function agrees in {total} steps (largest difference {worst:.2g})")


def _rewards(family: AbstractFamily, played: Played, theta: Theta) -> np.ndarray:
    rows = (jnp.asarray(column) for column in (played.state, played.action, played.next_state))
    return np.asarray(jax.vmap(lambda s, a, after: family.reward(s, a, after, theta))(*rows))


def _ends(family: AbstractFamily, played: Played, theta: Theta) -> np.ndarray:
    return np.asarray(jax.vmap(lambda after: family.terminated(after, theta))(jnp.asarray(played.next_state)))


def _episodes(x: Examination) -> Iterator[Check]:
    ended = sum(bool(played.terminated.any()) for played in x.play(x.thetas))
    yield Check("episodes", True, f"{ended} of {len(x.thetas)} random episodes terminated within {x.steps} steps")


def _same(first: Played, second: Played) -> bool:
    return all(a.shape == b.shape and np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def _same_path(first: Played, second: Played) -> bool:
    """The same states, for as long as both go on."""
    count = min(len(first.state), len(second.state))
    return np.array_equal(first.next_state[:count], second.next_state[:count])


def _first_difference(first: Played, second: Played) -> int:
    count = min(len(first.state), len(second.state))
    differ = np.zeros(count, bool)
    pairs: Any = zip(first, second, strict=True)
    for a, b in pairs:
        differ |= (a[:count] != b[:count]).reshape(count, -1).any(axis=1)
    return int(np.argmax(differ)) if differ.any() else count
