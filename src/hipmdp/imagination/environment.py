"""Imagination: episodes inside T̂, as an environment that the DQN can learn in."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.dynamics.model import Dynamics
from hipmdp.families.rollout import AbstractEnvironment, Step
from hipmdp.families.specification import Specification
from hipmdp.imagination.contexts import ConditionedContext, Context, NoisyContext
from hipmdp.imagination.reward import AbstractReward


class Range(NamedTuple):
    """Where imagination may go."""

    low: Float[Array, " state"]
    high: Float[Array, " state"]


class Imagination(AbstractEnvironment):
    """ŝ' = s + T̂(s, a, w_b), r̂ = R(s, a, ŝ'): no hidden parameter but what the reward is given.

    Angles are wrapped and states kept in S. A state that leaves the range of the data cuts its episode: the DQN sees
    the nearest state within the range, as if time were up there, and nothing of what lies beyond.
    """

    dynamics: Dynamics
    reward: AbstractReward
    starts: Float[Array, "starts state"]
    """First states of episodes."""
    range: Range
    visited: Float[Array, "visited state"] | None = None
    """States in which members of the family were; with them, `DDQNConfig.restart_share` begins episodes there."""

    @property
    def horizon(self) -> int:
        """Steps of an imagined episode, as of a real one."""
        return self.dynamics.specification.horizon

    @property
    def restart_states(self) -> Float[Array, "visited state"] | None:
        """The visited states, where they are known."""
        return self.visited

    def reset(self, key: PRNGKeyArray, context: Context) -> Float[Array, " state"]:
        """One of the known first states."""
        return self.starts[jax.random.randint(key, (), 0, self.starts.shape[0], jnp.int32)]

    def step(self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], context: Context) -> Step:
        """One imagined step."""
        z_key, reward_key = jax.random.split(key)
        z = self.dynamics.draw_z(z_key, ())
        proposal = imagined_state(self.dynamics, context, state, action, z)
        inside = (proposal >= self.range.low) & (proposal <= self.range.high)
        # min and max pass a NaN on; the state before is the last thing that is known.
        next_state = jnp.where(jnp.isfinite(proposal), jnp.clip(proposal, *self.range), state)
        reward, terminated = self.reward(reward_key, state, action, next_state, context.latent)
        return Step(next_state, reward, terminated, cut=~jnp.all(inside))


class ConditionedImagination(AbstractEnvironment):
    """Imagination whose states are (s, w): what a Q(s, w) is learned in."""

    imagination: Imagination

    @property
    def horizon(self) -> int:
        """Steps of an imagined episode."""
        return self.imagination.horizon

    def reset(self, key: PRNGKeyArray, context: ConditionedContext) -> Float[Array, " conditioned"]:
        """A first state, and w."""
        return jnp.concatenate([self.imagination.reset(key, context.context), context.latent])

    def restart(self, state: Float[Array, " conditioned"], context: ConditionedContext) -> Float[Array, " conditioned"]:
        """A state in which another member has been, with the w of this one."""
        size = self.imagination.dynamics.specification.state_size
        return jnp.concatenate([state[:size], context.latent])

    def step(
        self,
        key: PRNGKeyArray,
        state: Float[Array, " conditioned"],
        action: Int[Array, ""],
        context: ConditionedContext,
    ) -> Step:
        """One imagined step; w stays."""
        size = self.imagination.dynamics.specification.state_size
        outcome = self.imagination.step(key, state[:size], action, context.context)
        return outcome._replace(state=jnp.concatenate([outcome.state, state[size:]]))


class NoisyImagination(AbstractEnvironment):
    """Imagination with noise, which goes on where episodes of learning are cut; how much noise the context says."""

    imagination: Imagination

    @property
    def horizon(self) -> int:
        """Steps of an imagined episode."""
        return self.imagination.horizon

    def reset(self, key: PRNGKeyArray, context: NoisyContext) -> Float[Array, " state"]:
        """A first state."""
        return self.imagination.reset(key, context.context)

    def step(
        self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], context: NoisyContext
    ) -> Step:
        """One imagined step; beyond the range of the data states stay at its edge."""
        return _noisy_step(self.imagination, key, state, action, context)


class MeanImagination(AbstractEnvironment):
    """Imagination at the mean weights, whose context is w_b alone: what T̂ expects next under a hypothesis."""

    imagination: Imagination

    @property
    def horizon(self) -> int:
        """Steps of an imagined episode."""
        return self.imagination.horizon

    def reset(self, key: PRNGKeyArray, context: Float[Array, " latent"]) -> Float[Array, " state"]:
        """A first state."""
        return self.imagination.reset(key, self._context(context))

    def step(
        self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], context: Float[Array, " latent"]
    ) -> Step:
        """One imagined step."""
        return self.imagination.step(key, state, action, self._context(context))

    def _context(self, latent: Float[Array, " latent"]) -> Context:
        return Context(self.imagination.dynamics.posterior.mean[None], latent)


def _noisy_step(
    imagination: Imagination, key: PRNGKeyArray, state: Float[Array, " state"], action: Array, noisy: NoisyContext
) -> Step:
    noise_key, z_key, reward_key = jax.random.split(key, 3)
    noise = noisy.noise * jax.random.normal(noise_key, noisy.noise.shape, jnp.float32)
    z = imagination.dynamics.draw_z(z_key, ())
    proposal = imagined_state(imagination.dynamics, noisy.context, state, action, z, noise)
    next_state = jnp.where(jnp.isfinite(proposal), jnp.clip(proposal, *imagination.range), state)
    reward, terminated = imagination.reward(reward_key, state, action, next_state, noisy.context.latent)
    return Step(next_state, reward, terminated)


def imagined_state(
    dynamics: Dynamics,
    context: Context,
    state: Float[Array, " state"],
    action: Int[Array, ""],
    z: Float[Array, " z"],
    noise: Float[Array, " state"] | None = None,
) -> Float[Array, " state"]:
    """s + T̂(s, a, w_b) in S, with standardised `noise` on top where it is given."""
    features = dynamics.features(state, action)
    changes = jax.vmap(dynamics.change, in_axes=(0, None, None, None))(context.weights, features, context.latent, z)
    change = jnp.mean(changes, axis=0)
    if noise is not None:
        change = change + noise
    return in_state_space(
        dynamics.specification, state + change * dynamics.scaling.change_scale + dynamics.scaling.change_centre
    )


def in_state_space(specification: Specification, state: Float[Array, " state"]) -> Float[Array, " state"]:
    """The nearest state of S, angles wrapped."""
    return jnp.clip(specification.wrap_angles(state), *specification.bounds)
