"""Policies of a Q-network: greedy, ε-greedy, and acting under a belief about w."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from hipmdp.control.caution import weighted_cvar
from hipmdp.control.exploration import draw_exploration, epsilon_greedy
from hipmdp.control.guard import Decision, Guard, guarded, keys_of
from hipmdp.control.q_network import QNetwork
from hipmdp.control.target import squash, unsquash
from hipmdp.dynamics.belief import Belief, Filter
from hipmdp.dynamics.standardise import state_change
from hipmdp.families.protocol import BaseFamily, Theta
from hipmdp.families.rollout import AbstractActor, AbstractEnvironment, Episode

CLEAR = 2.0
"""By how many times the error of values a lookahead must be better to count."""
FLAT = 1e-6
"""Values closer to each other than this are alike."""
DRAWS = 64
"""Draws of w behind a cautious value."""


class Greedy(eqx.Module):
    """argmax_a Q(s, a)."""

    network: QNetwork

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The best action in one state."""
        return jnp.argmax(self.network(state)).astype(jnp.int32)


class EpsilonGreedy(eqx.Module):
    """π̂_b: the best action, or with probability ε any."""

    network: QNetwork
    epsilon: Float[Array, ""]

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """An action in one state."""
        values = self.network(state)
        greedy = jnp.argmax(values).astype(jnp.int32)
        return epsilon_greedy(draw_exploration(key, (), values.shape[0]), self.epsilon, greedy)


class Lookahead(eqx.Module):
    """Values of the actions from n steps of a model and Q(s, w) behind them (n Bellman backups).

    V_0(a) = Q(s, a, w);  V_n(a) = h(r + γ h⁻¹(max_a' V_{n−1}(a'))) in the state that the model expects after a.
    """

    environment: AbstractEnvironment
    """The model; its contexts are latents."""
    unit: Float[Array, ""]
    """What rewards were divided by when Q was learned."""
    discount: float = eqx.field(static=True)
    squash: float = eqx.field(static=True)
    """c of h, as the networks hold h(Q)."""
    steps: int = eqx.field(static=True)
    """n."""
    error: Float[Array, ""] | float = 0.0
    """Spread of V_n − Q where Q was learned: what the values of different states miss."""

    def __call__(
        self, network: QNetwork, key: PRNGKeyArray, state: Float[Array, " state"], latent: Float[Array, " latent"]
    ) -> Float[Array, " actions"]:
        """V_n of all actions under one latent."""
        return self._values(network, key, state, latent, self.steps)

    def _values(
        self, network: QNetwork, key: PRNGKeyArray, state: Array, latent: Array, steps: int
    ) -> Float[Array, " actions"]:
        values = network(jnp.concatenate([state, latent]))
        if steps == 0:
            return values

        def backup(action: Int[Array, ""]) -> Float[Array, ""]:
            outcome = self.environment.step(key, state, action, latent)
            behind = jnp.max(self._values(network, key, outcome.state, latent, steps - 1))
            value = jnp.where(outcome.terminated, 0, unsquash(behind, self.squash))
            return squash(outcome.reward / self.unit + self.discount * value, self.squash)

        return jax.vmap(backup)(jnp.arange(values.shape[0], dtype=jnp.int32))


class BeliefActor(AbstractActor):
    """a = argmax_a Σ_h p_h V(s, a, μ_h) / spread + information_weight · I(a).

    V is Q(s, a, w), or what a model clearly says some steps ahead (`belief_values`). Values are weighed in units of
    their spread over the actions; I(a) is the expected information about w_b (`Filter.information`), which falls to
    nothing by itself as the belief narrows. With caution, the mean over the worst share of w takes the place of the
    mean; with a guard, actions whose chance of breaking a limit is too high are left out.
    """

    filter: Filter
    network: QNetwork
    """Q(s, w)."""
    information_weight: Float[Array, ""]
    lookahead: Lookahead | None = None
    caution: float = eqx.field(static=True, default=0.0)
    guard: Guard | None = None

    def act(
        self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""], memory: Belief
    ) -> Int[Array, ""]:
        """The action for one state under the belief so far."""
        return self.decide(key, state, memory).action

    def decide(self, key: PRNGKeyArray, state: Float[Array, " state"], belief: Belief) -> Decision:
        """The same, with the chances of breaking a limit."""
        values_key, guard_key = keys_of(key, self.guard)
        values = self.values(values_key, state, belief)
        scaled = (values - jnp.max(values)) / jnp.maximum(jnp.std(values), FLAT)
        information = self.filter.information(belief, state)
        return guarded(self.guard, guard_key, state, belief, scaled + self.information_weight * information)

    def observe(
        self, memory: Belief, state: Float[Array, " state"], action: Int[Array, ""], next_state: Float[Array, " state"]
    ) -> Belief:
        """The belief after one transition."""
        change = state_change(self.filter.dynamics.specification, state, next_state)
        return self.filter.update(memory, state, action, change)

    def values(self, key: PRNGKeyArray, state: Float[Array, " state"], belief: Belief) -> Float[Array, " actions"]:
        """Σ_h p_h V(s, ·, μ_h), or with caution the mean over the worst share."""
        return belief_values(self.network, self.lookahead, key, state, belief, self.caution)


class BeliefPolicy(eqx.Module):
    """argmax_a Σ_h p_h V(s, a, μ_h) under a belief that stays as it is; caution and guard as in `BeliefActor`."""

    network: QNetwork
    """Q(s, w)."""
    belief: Belief
    lookahead: Lookahead | None = None
    caution: float = eqx.field(static=True, default=0.0)
    guard: Guard | None = None

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The best action in one state."""
        values_key, guard_key = keys_of(key, self.guard)
        values = belief_values(self.network, self.lookahead, values_key, state, self.belief, self.caution)
        return guarded(self.guard, guard_key, state, self.belief, values).action


def belief_values(
    network: QNetwork,
    lookahead: Lookahead | None,
    key: PRNGKeyArray,
    state: Float[Array, " state"],
    belief: Belief,
    caution: float = 0.0,
) -> Float[Array, " actions"]:
    """Σ_h p_h Q(s, ·, μ_h); Σ_h p_h V_n(s, ·, μ_h) where that clearly speaks for another action.

    The values of one state's actions share what Q misses in that state; V_n compares values of different states. So it
    counts only where the action that Q prefers is worse by more than `CLEAR` times what values miss.

    With caution, w is drawn from the belief, within its Gaussians too, and the mean over the worst share 1 − caution of
    the draws takes the place of the sum, for each action on its own.
    """
    if caution == 0:
        weight, latents = jnp.exp(belief.log_weight), belief.mean
    else:
        draw_key, key = jax.random.split(key)
        weight, latents = jnp.ones(DRAWS, jnp.float32), belief.draw(draw_key, DRAWS)

    def over(values: Float[Array, "draws actions"]) -> Float[Array, " actions"]:
        return weight @ values if caution == 0 else weighted_cvar(values, weight, caution)

    values = over(jax.vmap(lambda latent: network(jnp.concatenate([state, latent])))(latents))
    if lookahead is None:
        return values
    ahead = over(jax.vmap(lambda latent: lookahead(network, key, state, latent))(latents))
    clear = jnp.max(ahead) - ahead[jnp.argmax(values)] > CLEAR * lookahead.error
    return jnp.where(clear, ahead, values)


class ExploringActor(AbstractActor):
    """A belief actor some of whose actions are random."""

    actor: BeliefActor
    epsilon: Float[Array, ""]

    def act(
        self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""], memory: Belief
    ) -> Int[Array, ""]:
        """The actor's action, or any."""
        own_key, exploration_key = jax.random.split(key)
        count = self.actor.filter.dynamics.specification.action_count
        chosen = self.actor.act(own_key, state, time, memory)
        return epsilon_greedy(draw_exploration(exploration_key, (), count), self.epsilon, chosen)

    def observe(
        self, memory: Belief, state: Float[Array, " state"], action: Int[Array, ""], next_state: Float[Array, " state"]
    ) -> Belief:
        """The belief after one transition."""
        return self.actor.observe(memory, state, action, next_state)


def greedy_episodes(family: BaseFamily, network: QNetwork, thetas: Theta, keys: Key[Array, " episodes"]) -> Episode:
    """Greedy episodes in the real environment, one per key and row of `thetas`."""
    return family.rollouts(Greedy(network), keys, thetas)


def repeat_theta(theta: Theta, count: int) -> Theta:
    """`count` lanes of one instance."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *jnp.shape(leaf))), theta)
