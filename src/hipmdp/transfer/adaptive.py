"""Acting while finding out: Q(s, w) under the belief about w, and a little curiosity."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.control.network import QNetwork
from hipmdp.dynamics.belief import Belief, Filter
from hipmdp.dynamics.scaling import state_change

FLAT = 1e-6
"""Values closer to each other than this are alike."""


class Adaptive(eqx.Module):
    """a = argmax_a Σ_h p_h Q(s, a, μ_h) / spread + curiosity · I(a).

    Values are weighed in units of their spread over the actions; I(a) is what the action is expected to tell about w_b
    (`Filter.information`). It falls to nothing by itself as the belief narrows.
    """

    filter: Filter
    network: QNetwork
    """Q(s, w)."""
    curiosity: Float[Array, ""]

    def act(
        self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""], memory: Belief
    ) -> Int[Array, ""]:
        """The action for one state under the belief so far."""
        values = self.values(state, memory)
        scaled = (values - jnp.max(values)) / jnp.maximum(jnp.std(values), FLAT)
        return jnp.argmax(scaled + self.curiosity * self.filter.information(memory, state)).astype(jnp.int32)

    def observe(
        self, memory: Belief, state: Float[Array, " state"], action: Int[Array, ""], next_state: Float[Array, " state"]
    ) -> Belief:
        """The belief after one transition."""
        change = state_change(self.filter.dynamics.specification, state, next_state)
        return self.filter.update(memory, state, action, change)

    def values(self, state: Float[Array, " state"], belief: Belief) -> Float[Array, " actions"]:
        """Σ_h p_h Q(s, ·, μ_h)."""
        told = jax.vmap(lambda latent: self.network(jnp.concatenate([state, latent])))(belief.mean)
        return jnp.exp(belief.log_weight) @ told
