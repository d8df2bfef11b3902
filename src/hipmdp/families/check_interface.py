"""Whether reset and step obey their contract: in JAX, and in Gymnasium. Each check is (name, passed, sentence)."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.families.family import AbstractFamily
from hipmdp.families.host import HostFamily, Live

LANES = 3
Told = tuple[str, bool, str]


def check_jax(family: AbstractFamily, seed: int, steps: int) -> Iterator[Told]:
    """Shapes, dtypes, and that JAX can compile and batch everything. The first that fails ends the list."""
    spec, keys = family.specification, jax.random.split(jax.random.key(seed), LANES)
    lengths = {len(v) for v in (spec.state_low, spec.state_high, spec.state_centre, spec.state_scale, spec.angles)}
    if lengths != {spec.state_size}:
        yield "specification", False, f"each field of the state must have {spec.state_size} values, as state_names has"
        return
    yield "specification", True, f"{spec.state_size} states, {spec.action_count} actions, horizon {spec.horizon}"
    actions = jnp.arange(LANES, dtype=jnp.int32) % spec.action_count
    held: dict[str, Any] = {}

    def parts() -> Iterator[tuple[str, Callable[[], Any]]]:
        yield "sample_instance", lambda: jax.jit(jax.vmap(family.sample_instance))(keys)
        yield "reset", lambda: jax.jit(jax.vmap(family.reset))(keys, held["sample_instance"])
        yield "step", lambda: jax.jit(jax.vmap(family.step))(keys, held["reset"], actions, held["sample_instance"])

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


def _without_theta(family: AbstractFamily, state: Any, action: Any, next_state: Any) -> Told:
    """R is shared: imagination is told no θ unless the family says that R needs it."""
    try:
        family.reward(state, action, next_state, None)
        family.terminated(next_state, None)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return "reward without θ", False, f"reward or terminated needs θ ({reason}): set reward_needs_theta = True"
    return "reward without θ", True, "reward and terminated need no hidden parameter"


def check_gymnasium(family: AbstractFamily, seed: int, steps: int) -> Iterator[Told]:
    """What `reset` and `step` return, step by step. The first that fails ends the list."""
    assert isinstance(family, HostFamily)
    spec = family.specification
    yield "spaces", True, f"{spec.state_size} observed numbers, {spec.action_count} actions, horizon {spec.horizon}"
    live = Live(family, family.values_of(family.theta()))
    try:
        wrong = _wrong_reset(live, seed)
        yield "reset", not wrong, wrong or f"returns (observation, info) of {spec.state_size} finite numbers"
        if not wrong:
            wrong = _wrong_step(live, seed, steps)
            yield "step", not wrong, wrong or "returns (observation, reward, terminated, truncated, info) as it must"
    finally:
        live.env.close()


def _wrong_reset(live: Live, seed: int) -> str:
    try:
        told: Any = live.env.reset(seed=seed)
    except Exception as error:
        return f"reset(seed={seed}) raised {type(error).__name__}: {error}"
    if not isinstance(told, tuple) or len(told) != 2 or not isinstance(told[1], dict):
        return "must return (observation, info)"
    return _wrong_observation(live, told[0])


def _wrong_observation(live: Live, observation: Any) -> str:
    size = live.family.specification.state_size
    array = np.asarray(observation)
    if array.shape != (size,):
        return f"the observation must have shape ({size},) as its space says, got {array.shape}"
    if array.dtype.kind not in "fiu":
        return f"the observation must hold numbers, got {array.dtype}"
    return "" if np.isfinite(array).all() else f"the observation is not finite: {array}"


def _wrong_step(live: Live, seed: int, steps: int) -> str:
    rng, space = np.random.default_rng(seed), live.env.action_space
    for step in range(steps):
        action = int(getattr(space, "start", 0) + rng.integers(live.family.specification.action_count))
        try:
            told: Any = live.env.step(action)
        except Exception as error:
            return f"step({action}) raised {type(error).__name__} at step {step}: {error}"
        if not isinstance(told, tuple) or len(told) != 5:
            return "must return (observation, reward, terminated, truncated, info)"
        observation, reward, *ends = told[:4]
        wrong = _wrong_observation(live, observation)
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
