"""Whether reset and step obey their contract: in JAX, and in Gymnasium. Each check is (name, passed, sentence)."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._random import host_seed, numpy_generator
from hipmdp.families.gymnasium.family import GymnasiumFamily
from hipmdp.families.gymnasium.pool import CheckedEnvironment, bounds_with_slack
from hipmdp.families.instance import theta_values
from hipmdp.families.protocol import AbstractFamily, BaseFamily

LANES = 3
Found = tuple[str, bool, str]
"""Name, whether it passed, sentence."""


@functools.singledispatch
def check_interface(family: BaseFamily, key: PRNGKeyArray, steps: int) -> Iterator[Found]:
    """Check `reset` and `step` of the family's kind, in an episode of `steps` steps."""
    raise TypeError(f"check_interface has no checks for a {type(family).__name__}.")


@check_interface.register(AbstractFamily)
def _check_jax(family: AbstractFamily, key: PRNGKeyArray, steps: int) -> Iterator[Found]:
    """Shapes, dtypes, and that JAX can compile and batch everything. The first that fails ends the list."""
    spec = family.specification
    lengths = {len(v) for v in (spec.state_low, spec.state_high, spec.state_centre, spec.state_scale, spec.angles)}
    if lengths != {spec.state_size}:
        yield "specification", False, f"each field of the state must have {spec.state_size} values, as state_names has"
        return
    if spec.origin:
        yield "specification", False, "a family computes from zero: leave origin empty"
        return
    yield "specification", True, f"{spec.state_size} states, {spec.action_count} actions, horizon {spec.horizon}"
    actions = jnp.arange(LANES, dtype=jnp.int32) % spec.action_count
    instance_keys, reset_keys, step_keys = (jax.random.split(part, LANES) for part in jax.random.split(key, 3))
    held: dict[str, Any] = {}

    def parts() -> Iterator[tuple[str, Callable[[], Any]]]:
        yield "sample_instance", lambda: jax.jit(jax.vmap(family.sample_instance))(instance_keys)
        yield "reset", lambda: jax.jit(jax.vmap(family.reset))(reset_keys, held["sample_instance"])
        yield "step", lambda: jax.jit(jax.vmap(family.step))(step_keys, held["reset"], actions, held["sample_instance"])

    for name, run in parts():
        try:
            held[name] = run()
            wrong = _wrong(family, name, held[name])
        except Exception as error:
            wrong = f"cannot be jitted and vmapped: {type(error).__name__}: {str(error).splitlines()[0]}"
        yield name, not wrong, wrong or "can be jitted and vmapped; shapes and dtypes are right"
        if wrong:
            return
    if not family.reward_needs_theta:
        yield _without_theta(family, held["reset"][0], actions[0], held["step"].state[0])


def _wrong(family: AbstractFamily, name: str, value: Any) -> str:
    size = family.specification.state_size
    wanted: list[tuple[Any, tuple[int, ...], Any, str]]
    if name == "sample_instance":
        if getattr(value, "_fields", None) != family.parameter_names:
            return f"must return the same NamedTuple as baseline ({', '.join(family.parameter_names)})"
        wanted = [(leaf, (LANES,), jnp.float32, field) for field, leaf in value._asdict().items()]
    elif name == "reset":
        wanted = [(value, (LANES, size), jnp.float32, "the state")]
    else:
        wanted = [
            (value.state, (LANES, size), jnp.float32, "the state"),
            (value.reward, (LANES,), jnp.float32, "the reward"),
            (value.terminated, (LANES,), jnp.bool_, "terminated"),
        ]
    for leaf, shape, dtype, what in wanted:
        if leaf.shape != shape or leaf.dtype != dtype:
            return f"{what} must be {np.dtype(dtype)} of shape {shape[1:]}, got {leaf.dtype} of shape {leaf.shape[1:]}"
        if not np.isfinite(np.asarray(leaf)).all():
            return f"{what} is not finite"
    return ""


def _without_theta(family: AbstractFamily, state: Any, action: Any, next_state: Any) -> Found:
    """R is shared: imagination passes no θ to it unless the family says that R needs it."""
    try:
        family.reward(state, action, next_state, None)
        family.terminated(next_state, None)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return "reward without θ", False, f"reward or terminated needs θ ({reason}): set reward_needs_theta = True"
    return "reward without θ", True, "reward and terminated need no hidden parameter"


@check_interface.register(GymnasiumFamily)
def _check_gymnasium(family: GymnasiumFamily, key: PRNGKeyArray, steps: int) -> Iterator[Found]:
    """What `reset` and `step` return, step by step. The first that fails ends the list."""
    spec = family.specification
    yield "spaces", True, f"{spec.state_size} observed numbers, {spec.action_count} actions, horizon {spec.horizon}"
    environment = family.environment(tuple(theta_values(family.theta()).values()))
    reset_key, action_key = jax.random.split(key)
    try:
        wrong = _wrong_reset(environment, host_seed(reset_key))
        yield "reset", not wrong, wrong or f"returns (observation, info) of {spec.state_size} finite numbers"
        if not wrong:
            wrong = _wrong_step(environment, numpy_generator(action_key), steps)
            yield "step", not wrong, wrong or "returns (observation, reward, terminated, truncated, info) as it must"
    finally:
        environment.close()


def _wrong_reset(checked: CheckedEnvironment, seed: int) -> str:
    try:
        returned: Any = checked.environment.reset(seed=seed)
    except Exception as error:
        return f"reset(seed={seed}) raised {type(error).__name__}: {error}"
    if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], dict):
        return "must return (observation, info)"
    return _wrong_observation(checked, returned[0])


def _wrong_observation(checked: CheckedEnvironment, observation: Any) -> str:
    size = checked.specification.state_size
    array = np.asarray(observation)
    if array.shape != (size,):
        return f"the observation must have shape ({size},) as its space says, got {array.shape}"
    if array.dtype.kind not in "fiu":
        return f"the observation must hold numbers, got {array.dtype}"
    if not np.isfinite(array).all():
        return f"the observation is not finite: {array}"
    spec, (low, high) = checked.specification, bounds_with_slack(checked.specification)
    outside = (array < low) | (array > high)
    if outside.any():
        column = int(np.argmax(outside))
        space = f"[{spec.state_low[column]:g}, {spec.state_high[column]:g}]"
        return f"{spec.state_names[column]} is {array[column]:g}, outside its observation space {space}"
    return ""


def _wrong_step(checked: CheckedEnvironment, rng: np.random.Generator, steps: int) -> str:
    for step in range(steps):
        action = checked.first_action + int(rng.integers(checked.specification.action_count))
        try:
            returned: Any = checked.environment.step(action)
        except Exception as error:
            return f"step({action}) raised {type(error).__name__} at step {step}: {error}"
        if not isinstance(returned, tuple) or len(returned) != 5:
            return "must return (observation, reward, terminated, truncated, info)"
        observation, reward, *ends = returned[:4]
        wrong = _wrong_observation(checked, observation)
        if wrong:
            return f"at step {step} {wrong}"
        if np.shape(reward) != () or not np.isfinite(float(reward)):
            return f"the reward must be one finite number, got {reward!r} at step {step}"
        for name, value in zip(("terminated", "truncated"), ends, strict=True):
            if not isinstance(value, (bool, np.bool_)):
                return f"{name} must be a bool, got {value!r} at step {step}"
        if any(ends):
            break
    return ""
