"""The chance of breaking a limit after each action, by imagined rollouts.

A draw is all that is not known: a member that the belief still allows, a function that the batch allows, and the noise
of every step. In each draw every action is taken once, and the policy acts afterwards. The same draws serve all actions.

A decision costs draws × actions × steps of the model and of the policy, all side by side.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp.control.caution import Chances, choose
from hipmdp.families.rollout import AbstractEnvironment
from hipmdp.families.specification import Specification
from hipmdp.settings.limits import Limits

FEWEST, MOST = 64, 512
"""Draws behind a chance."""
PER_RISK = 4
"""So many draws are to break a limit at the risk that is allowed, where `MOST` does not forbid it."""


class Boundary(NamedTuple):
    """Limits as arrays, from the origin of the specification."""

    index: Int[Array, " limits"]
    """Which state dimension."""
    sign: Float[Array, " limits"]
    bound: Float[Array, " limits"]
    strict: Bool[Array, " limits"]

    def is_broken(self, state: Float[Array, "*rows state"]) -> Bool[Array, "*rows"]:
        """Whether a state breaks any limit."""
        over = self.sign * (state[..., self.index] - self.bound)
        return ((over > 0) | (self.strict & (over == 0))).any(axis=-1)


def boundary(limits: Limits, specification: Specification) -> Boundary:
    """The limits on states as `Specification.from_origin` gives them."""
    parsed, names = limits.parsed(specification), specification.state_names
    index = np.asarray([names.index(limit.name) for limit in parsed], np.int32)
    origin = np.asarray(specification.origin or np.zeros(specification.state_size))
    bounds = np.asarray([limit.bound for limit in parsed]) - origin[index]
    signs, strict = ([getattr(limit, part) for limit in parsed] for part in ("sign", "strict"))
    return Boundary(
        jnp.asarray(index), jnp.asarray(signs, jnp.float32), jnp.asarray(bounds, jnp.float32), jnp.asarray(strict, bool)
    )


def draw_count(risk: float) -> int:
    """Draws behind a chance that is compared with this risk."""
    return int(np.clip(round(PER_RISK / risk), FEWEST, MOST))


class Guard(eqx.Module):
    """Says of each action with which chance it breaks a limit within some steps."""

    environment: AbstractEnvironment
    contexts: Callable[[PRNGKeyArray, Any], Any]
    """Draws of what is not known, by what is remembered of the member."""
    policy: Callable[[Float[Array, " state"], Any], Int[Array, ""]]
    """The action in a state of a draw, from the second step on."""
    boundary: Boundary
    within: int = eqx.field(static=True)
    risk: float = eqx.field(static=True)
    """The chance up to which an action is allowed."""
    backup: bool = eqx.field(static=True, default=True)

    def chances(self, key: PRNGKeyArray, state: Float[Array, " state"], memory: Any, actions: int) -> Chances:
        """What happens to the limits after each of so many actions."""
        context_key, step_key = jax.random.split(key)
        contexts = self.contexts(context_key, memory)
        keys = jax.random.split(step_key, (jax.tree.leaves(contexts)[0].shape[0], self.within))
        each = jnp.arange(actions, dtype=jnp.int32)

        def after(first: Int[Array, " actions"], held: Int[Array, " actions"] | None) -> Chances:
            def count(first, held, keys, context):
                policy = self.policy if held is None else lambda state, context: held
                return self._broken(first, policy, state, keys, context)

            over_draws = jax.vmap(count, in_axes=(None, None, 0, 0))
            axes = (0, None if held is None else 0, None, None)
            counts = jax.vmap(over_draws, in_axes=axes)(first, held, keys, contexts)
            return Chances(
                jnp.mean(counts > 0, axis=1, dtype=jnp.float32),
                jnp.mean(counts, axis=1, dtype=jnp.float32) / self.within,
            )

        found = [after(each, None)]
        if self.backup:
            held = after(each, each)
            safest = jnp.argmin(held.chance + 1e-3 * held.beyond)
            found += [held, after(each, jnp.full(actions, safest, jnp.int32))]
        chance, beyond = (jnp.stack([getattr(c, n) for c in found]) for n in Chances._fields)
        best = jnp.argmin(chance + 1e-3 * beyond, axis=0)
        return Chances(*(jnp.take_along_axis(v, best[None], axis=0)[0] for v in (chance, beyond)))

    def _broken(self, action, policy, state, keys, context):
        def step(state: Array, alive: Array, key: PRNGKeyArray, action: Array) -> tuple[Array, Array, Array]:
            outcome = self.environment.step(key, state, action, context)
            broken = alive & self.boundary.is_broken(outcome.state)
            return outcome.state, alive & ~outcome.terminated & ~jnp.asarray(outcome.cut), broken

        def afterwards(carry: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], Array]:
            state, alive, broken = step(*carry, key, policy(carry[0], context))
            return (state, alive), broken

        next_state, alive, first = step(state, jnp.ones((), bool), keys[0], action)
        _, later = jax.lax.scan(afterwards, (next_state, alive), keys[1:])
        return jnp.sum(later, dtype=jnp.int32) + first


class Decision(NamedTuple):
    """An action, and what it was chosen by."""

    action: Int[Array, ""]
    chances: Chances | None = None
    """Of breaking a limit, of all actions; None without limits."""


def guarded(
    guard: Guard | None, key: PRNGKeyArray, state: Float[Array, " state"], memory: Any, scores: Float[Array, " actions"]
) -> Decision:
    """The action with the highest score of those that the guard allows; without a guard, of all."""
    if guard is None:
        return Decision(jnp.argmax(scores).astype(jnp.int32))
    chances = guard.chances(key, state, memory, scores.shape[0])
    return Decision(choose(scores, chances, guard.risk), chances)


def keys_of(key: PRNGKeyArray, guard: Guard | None) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """Keys for values and for a guard; without one, values get the key itself."""
    if guard is None:
        return key, key
    values_key, guard_key = jax.random.split(key)
    return values_key, guard_key


def broken_within(limits: Limits, specification: Specification, next_states: Any) -> np.ndarray:
    """[time]: whether any of the next `within` states of an episode breaks a limit; rows of s' in natural units."""
    broken = np.asarray(boundary(limits, specification).is_broken(jnp.asarray(specification.from_origin(next_states))))
    return np.asarray([broken[time : time + limits.within].any() for time in range(len(broken))], bool)
