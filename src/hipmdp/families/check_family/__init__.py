"""Can hipmdp learn this family? A list of named checks, each with one sentence.

The same checks for a family in JAX and for one of Gymnasium environments: in both, episodes of a fixed sequence of
actions are run from a seed. `check_interface` holds what only one of the two kinds must satisfy.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp._errors import in_range
from hipmdp._random import numpy_generator, root_key, stream
from hipmdp._units import single_fault
from hipmdp.families.check_family.interface import check_interface
from hipmdp.families.instance import stack_thetas, unstack_thetas
from hipmdp.families.protocol import BaseFamily, Theta
from hipmdp.families.rollout import Transition
from hipmdp.families.scripted import Schedule

DRAWS, EXAMINED = 16, 4
"""Instances that are drawn, and how many different ones of them are examined."""
TOLERANCE = 1e-4
"""Relative; everything is computed in float32."""
NEGLIGIBLE = 1e-2
"""What is smaller than this share of the largest value counts as so large."""
MOST = 20_000
"""Steps that `check_family` takes at most in one episode."""
INSTANCES, ACTIONS, EPISODE, OTHER_EPISODE, INTERFACE = range(5)
"""Members of the stream "families/check"."""


class Check(NamedTuple):
    """The outcome of one check."""

    name: str
    passed: bool
    sentence: str
    warns: bool = False
    """Whether it passed, but deserves a second thought."""


class Examination:
    """Instances, a seed and a sequence of actions; episodes are run when they are needed."""

    def __init__(self, family: BaseFamily, seed: int, steps: int) -> None:
        in_range("check-env option", "steps", steps, 1, MOST)
        self.family, self.key = family, root_key(seed)
        drawn = unstack_thetas(family.draw_instances(stream(self.key, "families/check", INSTANCES), DRAWS))
        self.drawn: list[Theta] = list({tuple(map(float, theta)): theta for theta in drawn}.values())
        self.thetas = self.drawn[:EXAMINED]
        rng = numpy_generator(stream(self.key, "families/check", ACTIONS))
        count, self.steps = family.specification.action_count, min(steps, family.horizon)
        self.actions = jnp.asarray(rng.integers(count, size=family.horizon), jnp.int32)

    def run(self, thetas: list[Theta], member: int = EPISODE) -> list[Transition]:
        """The valid steps, as NumPy arrays, of one episode with each θ: the same actions from the same seed."""
        # Always as many lanes, so that JAX compiles once.
        lanes = stack_thetas([*thetas, *thetas[:1] * (EXAMINED - len(thetas))])
        keys = jnp.broadcast_to(stream(self.key, "families/check", member), (EXAMINED,))
        episodes = jax.tree.map(np.asarray, self.family.rollouts(Schedule(self.actions), keys, lanes))
        valid = episodes.valid[:, : self.steps]
        return [
            jax.tree.map(lambda column, i=i: column[i, : self.steps][valid[i]], episodes.steps)
            for i in range(len(thetas))
        ]


def check_family(family: BaseFamily, seed: int = 0, steps: int = 200) -> list[Check]:
    """All checks, in order; after one that makes the rest impossible the rest is left out."""
    key = stream(root_key(seed), "families/check", INTERFACE)
    checks = [Check(*found) for found in check_interface(family, key, min(steps, family.horizon))]
    if not all(check.passed for check in checks):
        return checks
    examination = Examination(family, seed, steps)
    for part in (_seeds, _bounds, _units, _hidden, _each_parameter, _reward, _terminated, _episodes):
        try:
            checks += list(part(examination))
        except Exception as error:
            name = part.__name__.strip("_").replace("_", " ")
            checks.append(Check(name, False, f"raised {type(error).__name__}: {str(error).splitlines()[0]}"))
    return checks


def _seeds(x: Examination) -> Iterator[Check]:
    first, again = (x.run(x.thetas[:1])[0] for _ in range(2))
    if _same(first, again):
        yield Check("seeds", True, "the same seed gives the same episode to the bit")
    else:
        step = _first_difference(first, again)
        yield Check(
            "seeds", False, f"two episodes from the same seed differ at step {step}: reset(seed=…) must fix all"
        )
    if not x.family.fixed_start:
        other = x.run(x.thetas[:1], OTHER_EPISODE)[0]
        differ = not np.array_equal(first.state[0], other.state[0])
        words = "another seed gives another start" if differ else "every seed gives the same start"
        yield Check("starts", True, words)


def _bounds(x: Examination) -> Iterator[Check]:
    spec = x.family.specification
    for steps in x.run(x.thetas):
        low, high = (np.asarray(bound, np.float32) for bound in (spec.state_low, spec.state_high))
        outside = (steps.next_state < low) | (steps.next_state > high)
        if outside.any():
            step, column = np.argwhere(outside)[0]
            value, name = steps.next_state[step, column], spec.state_names[column]
            yield Check("bounds", True, f"warning: {name} is {value:g} at step {step}, outside its bounds")
            return
    yield Check("bounds", True, "observations stay within their bounds")


def _units(x: Examination) -> Iterator[Check]:
    states = np.concatenate([np.asarray(steps.next_state, np.float64) for steps in x.run(x.thetas)])
    for name, values in zip(x.family.specification.state_names, states.T, strict=True):
        fault = single_fault(values)
        if fault is not None:
            yield Check("units", False, f"{name} {fault}")


def _hidden(x: Examination) -> Iterator[Check]:
    if len(x.thetas) < 2:
        yield Check("hidden parameters", False, f"{DRAWS} draws are all the same instance: nothing is hidden")
        return
    first, second = x.run(x.thetas[:2])
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
        before, after = x.run([base, changed])
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
    yield _compared(x, "reward", "reward", lambda steps, theta: _rewards(x.family, steps, theta))


def _terminated(x: Examination) -> Iterator[Check]:
    if x.family.knows_reward:
        yield _compared(x, "terminated", "terminated", lambda steps, theta: _ends(x.family, steps, theta))


def _compared(x: Examination, name: str, field: str, function: Callable[[Transition, Theta], np.ndarray]) -> Check:
    """Compare the function with what the environment gave, in every step of every instance."""
    total, worst, where = 0, 0.0, ""
    for number, (steps, theta) in enumerate(zip(x.run(x.thetas), x.thetas, strict=True)):
        given = function(steps, theta if x.family.reward_needs_theta else None).astype(np.float64)
        true = getattr(steps, field).astype(np.float64)
        # In any unit: what is small beside the largest one counts by that.
        largest = float(np.max(np.abs(true), initial=0.0)) or 1.0
        difference = np.abs(given - true) / np.maximum(NEGLIGIBLE * largest, np.abs(true))
        step = int(np.argmax(difference))
        total += len(true)
        if difference[step] > worst:
            worst = float(difference[step])
            both = f"the function says {given[step]:g}, the environment {true[step]:g}"
            where = f"at step {step} of instance {number}: {both}"
    if worst > TOLERANCE:
        return Check(name, False, f"the function differs {where}")
    return Check(name, True, f"the function agrees in {total} steps (largest difference {worst:.2g})")


def _rewards(family: BaseFamily, steps: Transition, theta: Theta) -> np.ndarray:
    rows = (jnp.asarray(column) for column in (steps.state, steps.action, steps.next_state))
    return np.asarray(jax.vmap(lambda s, a, after: family.reward(s, a, after, theta))(*rows))


def _ends(family: BaseFamily, steps: Transition, theta: Theta) -> np.ndarray:
    return np.asarray(jax.vmap(lambda after: family.terminated(after, theta))(jnp.asarray(steps.next_state)))


def _episodes(x: Examination) -> Iterator[Check]:
    episodes = x.run(x.thetas)
    ended = sum(bool(steps.terminated.any()) for steps in episodes)
    sentence = f"{ended} of {len(x.thetas)} random episodes terminated within {x.steps} steps"
    rewards = np.concatenate([steps.reward for steps in episodes])
    alike = ended == 0 and float(np.ptp(rewards)) == 0
    if alike:
        sentence += (
            f", and every reward was {float(rewards[0]):g}: nothing tells a good policy from a bad one, unless longer "
            "or better episodes end; give a reward that says when the goal is near, or log episodes that reach it"
        )
    yield Check("episodes", True, sentence, warns=alike)


def _same(first: Transition, second: Transition) -> bool:
    return all(a.shape == b.shape and np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def _same_path(first: Transition, second: Transition) -> bool:
    """Whether both went through the same states, until the first of them ended."""
    count = min(len(first.state), len(second.state))
    return np.array_equal(first.next_state[:count], second.next_state[:count])


def _first_difference(first: Transition, second: Transition) -> int:
    count = min(len(first.state), len(second.state))
    differ = np.zeros(count, bool)
    pairs: Any = zip(first, second, strict=True)
    for a, b in pairs:
        differ |= (a[:count] != b[:count]).reshape(count, -1).any(axis=1)
    return int(np.argmax(differ)) if differ.any() else count
