"""The chance of breaking a limit after each action, by imagined rollouts.

A draw is all that is not known: a member that the belief still allows, a function that the batch allows, and the noise
of every step. In each draw every action is taken once. Then the policy acts; or the same action goes on; or the action
that is safest when it goes on is held. What keeps the limits best counts: an actor that checks every decision gives way
in time, so that its policy alone would break them far more often than it does. The same draws serve all actions.

A decision costs 3 × draws × actions × steps of the model, and a third of these of the policy, all side by side.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from hipmdp.control.caution import Chances, choose
from hipmdp.families.rollout import AbstractEnvironment
from hipmdp.families.specification import Specification
from hipmdp.settings.limits import Limits

Rule = Callable[[Float[Array, " state"], Any], Int[Array, ""]]
"""(state, context of a draw) → the action, from the second step on."""
FEWEST, MOST = 64, 512
"""Draws behind a chance."""
PER_RISK = 4
"""So many draws are to break a limit at the risk that is allowed, where `MOST` does not forbid it."""


class Boundary(NamedTuple):
    """Limits as arrays, from the origin of the specification."""

    dimension: Int[Array, " limits"]
    """Which of the state."""
    sign: Float[Array, " limits"]
    bound: Float[Array, " limits"]
    strict: Bool[Array, " limits"]

    def is_broken(self, state: Float[Array, " state"]) -> Bool[Array, ""]:
        """Whether a state breaks any limit."""
        over = self.sign * (state[self.dimension] - self.bound)
        return jnp.any((over > 0) | (self.strict & (over == 0)))


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
    policy: Rule
    boundary: Boundary
    within: int = eqx.field(static=True)
    risk: float = eqx.field(static=True)
    """The chance up to which an action is allowed."""

    def chances(self, key: PRNGKeyArray, state: Float[Array, " state"], memory: Any, actions: int) -> Chances:
        """What happens to the limits after each of so many actions, if it goes on in the safest way."""
        ways = self.ways(key, state, memory, actions)
        best, action = jnp.argmin(ways.harm, axis=0), jnp.arange(actions, dtype=jnp.int32)
        return jax.tree.map(lambda part: part[best, action], ways)

    def ways(self, key: PRNGKeyArray, state: Float[Array, " state"], memory: Any, actions: int) -> Chances:
        """[way, action]: it goes on by the policy; with the same action; with the action that is safest when held."""
        context_key, step_key = jax.random.split(key)
        contexts = self.contexts(context_key, memory)
        keys = jax.random.split(step_key, (jax.tree.leaves(contexts)[0].shape[0], self.within))
        first = jnp.arange(actions, dtype=jnp.int32)

        def predicted(held: Int[Array, " actions"] | None) -> Chances:
            def steps(first: Array, held: Array | None, keys: Key[Array, " within"], context: Any) -> Int[Array, ""]:
                rule = self.policy if held is None else lambda state, context: held
                return self._steps_broken(first, rule, state, keys, context)

            over_draws = jax.vmap(steps, in_axes=(None, None, 0, 0))
            over_actions = jax.vmap(over_draws, in_axes=(0, None if held is None else 0, None, None))
            count = over_actions(first, held, keys, contexts)
            chance, steps_beyond = (jnp.mean(part, axis=1, dtype=jnp.float32) for part in (count > 0, count))
            return Chances(chance, steps_beyond / self.within)

        held = predicted(first)
        safest = jnp.full_like(first, jnp.argmin(held.harm))
        return jax.tree.map(lambda *parts: jnp.stack(parts), predicted(None), held, predicted(safest))

    def _steps_broken(
        self, first: Array, rule: Rule, state: Float[Array, " state"], keys: Key[Array, " within"], context: Any
    ) -> Int[Array, ""]:
        """In how many of the next states a limit is broken, in one draw."""

        def taken(state: Array, alive: Array, key: PRNGKeyArray, action: Array) -> tuple[tuple[Array, Array], Array]:
            outcome = self.environment.step(key, state, action, context)
            ended = outcome.terminated | jnp.asarray(outcome.cut)
            return (outcome.state, alive & ~ended), alive & self.boundary.is_broken(outcome.state)

        def step(carry: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], Array]:
            return taken(*carry, key, rule(carry[0], context))

        carry, broken = taken(state, jnp.ones((), bool), keys[0], first)
        _, later = jax.lax.scan(step, carry, keys[1:])
        return jnp.sum(jnp.append(later, broken), dtype=jnp.int32)


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
    states = jnp.asarray(specification.from_origin(next_states))
    broken = np.asarray(jax.vmap(boundary(limits, specification).is_broken)(states))
    return np.asarray([broken[time : time + limits.within].any() for time in range(len(broken))], bool)
