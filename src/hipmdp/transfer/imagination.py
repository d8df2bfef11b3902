"""Imagination: episodes inside T̂ for one instance, as an environment that the learner of control can learn in."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.dynamics.model import Dynamics
from hipmdp.families.family import Step
from hipmdp.families.specification import Specification
from hipmdp.transfer.rewards import AbstractReward

DATA_MARGIN = 0.1
"""How far beyond the range of the data, as a share of it, an imagined state may go before its episode is cut."""


class Context(NamedTuple):
    """What is drawn anew for every imagined episode; leaves gain a leading axis for a pool of contexts."""

    weights: Float[Array, "*pool draws weights"]
    """The prediction is the mean over these weight draws: one draw is one function that the data allow."""
    latent: Float[Array, "*pool latent"]
    """w_b."""


class Perceived(NamedTuple):
    """A member of the family, and the w by which a policy for all members knows it."""

    context: Context
    perceived: Float[Array, "*pool latent"]


class Limits(NamedTuple):
    """Where imagination may go."""

    low: Float[Array, " state"]
    high: Float[Array, " state"]


class Imagination(eqx.Module):
    """ŝ' = s + T̂(s, a, w_b), r̂ = R(s, a, ŝ'): no hidden parameter but what the reward is given.

    Angles are wrapped and states kept in S. A state that leaves the range of the data cuts its episode: the learner
    sees the nearest state within the range, as if time were up there, and nothing of what lies beyond.
    """

    dynamics: Dynamics
    reward: AbstractReward
    starts: Float[Array, "starts state"]
    """First states of episodes."""
    limits: Limits
    known: Float[Array, "known state"] | None = None
    """States in which members of the family were; with them, `DDQNConfig.restart_share` begins episodes there."""

    @property
    def horizon(self) -> int:
        """Steps of an imagined episode, as of a real one."""
        return self.dynamics.specification.horizon

    def reset(self, key: PRNGKeyArray, theta: Context) -> Float[Array, " state"]:
        """One of the known first states."""
        return self.starts[jax.random.randint(key, (), 0, self.starts.shape[0], jnp.int32)]

    def step(self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], theta: Context) -> Step:
        """One imagined step."""
        scaling = self.dynamics.scaling
        features = self.dynamics.features(state, action)
        if self.dynamics.config.stochastic_input:
            features = jnp.concatenate([features, jax.random.normal(key, (1,), jnp.float32)])
        changes = jax.vmap(self.dynamics.change, in_axes=(0, None, None))(theta.weights, features, theta.latent)
        change = jnp.mean(changes, axis=0) * scaling.change_scale + scaling.change_centre
        proposal = in_state_space(self.dynamics.specification, state + change)
        inside = (proposal >= self.limits.low) & (proposal <= self.limits.high)
        # min and max pass a NaN on; the state before is the last thing that is known.
        next_state = jnp.where(jnp.isfinite(proposal), jnp.clip(proposal, *self.limits), state)
        reward, terminated = self.reward(state, action, next_state, theta.latent)
        return Step(next_state, reward, terminated, cut=~jnp.all(inside))


class Conditioned(eqx.Module):
    """Imagination whose states are (s, w), w the perceived one: what a Q(s, w) is learned in."""

    imagination: Imagination

    @property
    def horizon(self) -> int:
        """Steps of an imagined episode."""
        return self.imagination.horizon

    def reset(self, key: PRNGKeyArray, theta: Perceived) -> Float[Array, " conditioned"]:
        """A first state, and w."""
        return jnp.concatenate([self.imagination.reset(key, theta.context), theta.perceived])

    def restarted(self, state: Float[Array, " conditioned"], theta: Perceived) -> Float[Array, " conditioned"]:
        """Where another member has been, with the w of this one."""
        size = self.imagination.dynamics.specification.state_size
        return jnp.concatenate([state[:size], theta.perceived])

    def step(
        self, key: PRNGKeyArray, state: Float[Array, " conditioned"], action: Int[Array, ""], theta: Perceived
    ) -> Step:
        """One imagined step; w stays."""
        size = self.imagination.dynamics.specification.state_size
        outcome = self.imagination.step(key, state[:size], action, theta.context)
        return outcome._replace(state=jnp.concatenate([outcome.state, state[size:]]))


def in_state_space(specification: Specification, state: Float[Array, " state"]) -> Float[Array, " state"]:
    """The nearest state of S, angles wrapped."""
    low, high = (jnp.asarray(v, jnp.float32) for v in (specification.state_low, specification.state_high))
    if any(specification.angles):
        turns = jnp.round(state / (2 * np.pi)) * jnp.asarray(specification.angles, jnp.float32)
        state = state - turns * (2 * np.pi)
    return jnp.clip(state, low, high)


def data_limits(low: np.ndarray, high: np.ndarray, margin: float = DATA_MARGIN) -> Limits:
    """The range of the data and a little more."""
    slack = margin * (high - low)
    return Limits(jnp.asarray(low - slack, jnp.float32), jnp.asarray(high + slack, jnp.float32))


def draw_contexts(
    dynamics: Dynamics,
    latent: Float[Array, " latent"],
    key: PRNGKeyArray,
    draws: int,
    mean: bool,
    covariance: Float[Array, "latent latent"] | None = None,
) -> Context:
    """A pool of `draws` functions, one per imagined episode in turn; or one that is their mean (the paper's).

    With a covariance each has a latent of its own, w_b ~ N(latent, covariance): the policy must then do well for every
    member of the family that the data still allow.
    """
    weights = dynamics.draw_weights(key, draws)
    weights = weights[None] if mean else weights[:, None]
    latents = jnp.broadcast_to(latent, (weights.shape[0], *latent.shape))
    if covariance is not None:
        factor = jnp.linalg.cholesky(covariance)
        normals = jax.random.normal(jax.random.fold_in(key, 1), latents.shape, jnp.float32)
        latents = latents + normals @ factor.T
    return Context(weights, latents)


def known_contexts(dynamics: Dynamics, key: PRNGKeyArray, each: int) -> Context:
    """The training instances themselves, each with `each` weight draws."""
    latents = jnp.repeat(dynamics.latents, each, axis=0)
    weights = dynamics.draw_weights(key, latents.shape[0])
    return Context(weights[:, None], latents)
