"""Greedy policies beside a guard: how a draw goes on after the first action, and what is allowed of a Q-network."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.control.guard import Guard, guarded
from hipmdp.control.q_network import QNetwork


class LatentGreedy(eqx.Module):
    """argmax_a Q(s, a, w) with the w of a context, as a policy that knows it acts."""

    network: QNetwork
    """Q(s, w)."""

    def __call__(self, state: Float[Array, " state"], context: Any) -> Int[Array, ""]:
        """The best action in one state of a context."""
        return jnp.argmax(self.network(jnp.concatenate([state, context.latent]))).astype(jnp.int32)


class StateGreedy(eqx.Module):
    """argmax_a Q(s, a), whatever the context."""

    network: QNetwork

    def __call__(self, state: Float[Array, " state"], context: Any) -> Int[Array, ""]:
        """The best action in one state of a context."""
        return jnp.argmax(self.network(state)).astype(jnp.int32)


class GuardedGreedy(eqx.Module):
    """argmax_a Q(s, a) of the actions that a guard allows."""

    network: QNetwork
    guard: Guard

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The best action in one state."""
        return guarded(self.guard, key, state, None, self.network(state)).action
