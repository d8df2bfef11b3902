"""`Policy`: what a run, an advice or a model file says to do in a state, as one thing that can be called."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp._random import root_key
from hipmdp.families.rollout import Policy as Rule
from hipmdp.families.specification import Specification


class Constant(eqx.Module):
    """The same action in every state."""

    action: int = eqx.field(static=True)

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The action."""
        return jnp.asarray(self.action, jnp.int32)


class HostRule(eqx.Module):
    """A function of the user's, in Python: it gets states in natural units, and is called for one at a time."""

    function: Callable[[np.ndarray], Any] = eqx.field(static=True)
    specification: Specification = eqx.field(static=True)

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The function's action."""
        action = jax.ShapeDtypeStruct((), jnp.int32)
        return jax.pure_callback(self._asked, action, state, vmap_method="sequential")

    def _asked(self, state: Any) -> np.ndarray:
        answer = self.function(self.specification.natural(np.asarray(state)))
        names = self.specification.action_names
        if isinstance(answer, str) and answer in names:
            answer = names.index(answer)
        if isinstance(answer, str) or np.shape(answer) != () or answer not in range(len(names)):
            raise ValueError(
                f"The policy must return an action ({', '.join(names)}) or its number from 0 to {len(names) - 1}, "
                f"got {answer!r}."
            )
        return np.asarray(int(answer), np.int32)


@dataclass(frozen=True)
class Policy:
    """A policy for one system: call it with a state in natural units."""

    specification: Specification
    rule: Rule
    """(key, state as `Specification.from_origin` gives it, time step) → action."""

    def __call__(self, state: Any) -> Any:
        """The action: an int for one state, an array of ints for rows of them."""
        states = np.asarray(state, np.float64)
        size = self.specification.state_size
        if states.ndim not in (1, 2) or states.shape[-1] != size:
            raise ValueError(f"A state must have {size} numbers (or be a batch of such), got {states.shape}.")
        if not np.isfinite(states).all():
            raise ValueError("A state must be finite.")
        rows = self.specification.from_origin(np.atleast_2d(states))
        if isinstance(self.rule, HostRule):
            actions = np.asarray([int(self.rule._asked(row)) for row in rows])
        else:
            actions = np.asarray(_actions(self.rule, jnp.asarray(rows)))
        return int(actions[0]) if states.ndim == 1 else actions


@eqx.filter_jit
def _actions(rule: Rule, states: Float[Array, "rows state"]) -> Int[Array, " rows"]:
    # Greedy policies draw nothing, cautious and guarded ones the same in every state.
    key, time = root_key(0), jnp.zeros((), jnp.int32)
    return jax.vmap(lambda state: rule(key, state, time))(states)


def function_policy(function: Callable[..., Any], specification: Specification) -> Policy:
    """The policy that a function of the state (in natural units) stands for; it returns an action or its number."""
    return Policy(specification, HostRule(function, specification))
