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


class HostFunction:
    """A function of the user's, in Python: it gets a state in natural units and returns an action, or its number."""

    def __init__(self, function: Callable[[np.ndarray], Any], specification: Specification) -> None:
        self.function, self.specification = function, specification
        self.error: Exception | None = None
        """Why it failed, where it did inside of what is compiled."""

    def __call__(self, states: Any) -> np.ndarray:
        """The action for each state, which are as `Specification.from_origin` gives them."""
        rows = np.asarray(states)
        flat = rows.reshape(-1, rows.shape[-1])
        try:
            actions = [self._action(row) for row in self.specification.natural(flat)]
        except Exception as error:
            self.error = error
            raise
        return np.asarray(actions, np.int32).reshape(rows.shape[:-1])

    def _action(self, state: np.ndarray) -> int:
        answer = self.function(state)
        names = self.specification.action_names
        if isinstance(answer, str) and answer in names:
            answer = names.index(answer)
        if isinstance(answer, str) or np.shape(answer) != () or answer not in range(len(names)):
            raise ValueError(
                f"The policy must return an action ({', '.join(names)}) or its number from 0 to {len(names) - 1}, "
                f"got {answer!r}."
            )
        return int(answer)


class HostRule(eqx.Module):
    """Such a function inside of what is compiled."""

    host: HostFunction = eqx.field(static=True)

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The function's action."""
        return jax.pure_callback(self.host, jax.ShapeDtypeStruct((), jnp.int32), state, vmap_method="broadcast_all")


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
        actions = self.rule.host(rows) if isinstance(self.rule, HostRule) else self._filled(rows)
        return int(actions[0]) if states.ndim == 1 else actions

    def _filled(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of rows share a few compilations."""
        size = 1 << (len(rows) - 1).bit_length() if len(rows) else 1
        filled = np.zeros((size, rows.shape[1]), rows.dtype)
        filled[: len(rows)] = rows
        return np.asarray(_actions(self.rule, jnp.asarray(filled)))[: len(rows)]


@eqx.filter_jit
def _actions(rule: Rule, states: Float[Array, "rows state"]) -> Int[Array, " rows"]:
    # Greedy policies draw nothing, cautious and guarded ones the same in every state.
    key, time = root_key(0), jnp.zeros((), jnp.int32)
    return jax.vmap(lambda state: rule(key, state, time))(states)


def function_policy(function: Callable[..., Any], specification: Specification) -> Policy:
    """The policy that a function of the state (in natural units) stands for; it returns an action or its number."""
    return Policy(specification, HostRule(HostFunction(function, specification)))
