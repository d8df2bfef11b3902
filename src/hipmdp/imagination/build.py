"""The only place that builds an imagined world: start states, limits, reward, contexts.

A policy learns in an environment and its contexts. There are two such pairs: the new instance as far as it is known,
and members of the family drawn between the training latents (for Q(s, w)).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp._random import numpy_generator
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief, new_filter
from hipmdp.dynamics.infer import latent_covariance
from hipmdp.dynamics.model import Dynamics
from hipmdp.dynamics.smooth import smoothed
from hipmdp.families.protocol import BaseFamily, Theta
from hipmdp.families.rollout import AbstractEnvironment, Members
from hipmdp.imagination.contexts import LATENTS_APART, Deviations, instance_contexts, instance_members
from hipmdp.imagination.environment import (
    ConditionedImagination,
    Imagination,
    MeanImagination,
    NoisyImagination,
    Range,
)
from hipmdp.imagination.reward import AbstractReward
from hipmdp.settings.adaptation import AdaptationConfig

STARTS = 256
"""First states that imagination knows, always as many: fewer are repeated, so that arrays keep their shapes."""
DATA_MARGIN = 0.1
"""How far beyond the range of the data, as a share of it, an imagined state may go before its episode is cut."""


class Imagined(NamedTuple):
    """What a policy is learned in."""

    environment: AbstractEnvironment
    contexts: Any
    """A pool: one for each imagined episode in turn."""
    members: Members | None = None
    """Whom the lanes of a PQN run, where there is one."""


class Surroundings(NamedTuple):
    """Everything about an imagined world that is not T̂."""

    reward: AbstractReward
    starts: Float[Array, "starts state"]
    low: np.ndarray
    """Smallest value of each state dimension in the data, in natural units."""
    high: np.ndarray
    """Largest value, likewise."""
    visited: Float[Array, "visited state"] | None = None
    """States of the batch in which episodes may begin; None: states that imagination itself has visited."""

    def extended(self, data: Transitions) -> "Surroundings":
        """The same with the range of more data."""
        states = np.concatenate([data.state, data.next_state])
        low, high = (np.asarray(bound)[None] for bound in (self.low, self.high))
        return self._replace(
            low=np.concatenate([low, states]).min(axis=0), high=np.concatenate([high, states]).max(axis=0)
        )


def imagine_environment(family: BaseFamily, theta: Theta, config: AdaptationConfig) -> Imagined:
    """No imagination: the true environment of the instance (diagnosis)."""
    simulator = family.simulator('imagine_in="environment"')
    members = None
    if (pqn := config.pqn) is not None:
        groups = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (pqn.groups, *jnp.shape(leaf))), theta)
        members = Members(groups, jax.tree.map(lambda leaf: None, theta))
    return Imagined(simulator, jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], theta), members)


def imagine_instance(
    dynamics: Dynamics,
    latent: Float[Array, " latent"],
    data: Transitions,
    around: Surroundings,
    *,
    config: AdaptationConfig,
    deviations: Deviations | None,
    key: PRNGKeyArray,
) -> Imagined:
    """One instance: T̂ tuned to its data, and every w_b that the data still allow (no deviations: the fitted one)."""
    contexts_key, member_key = jax.random.split(key)
    contexts = instance_contexts(
        dynamics, latent, key=contexts_key, draws=config.weight_draws, mean=config.mean_weights, deviations=deviations
    )
    members = None
    if config.pqn is not None:
        groups, each = config.pqn.groups, config.pqn.members
        drawn = instance_members(contexts, latent, key=member_key, groups=groups, members=each, deviations=deviations)
        members = Members(drawn, LATENTS_APART)
    return Imagined(_environment(dynamics, around.extended(data)), contexts, members)


def doubt(
    family: Dynamics,
    tuned: Dynamics,
    latent: Float[Array, " latent"],
    data: Transitions,
    *,
    temperature: float | None,
    key: PRNGKeyArray,
    belief: Belief | None = None,
) -> Deviations | None:
    """How far w_b may be from `latent` after `data`: by the belief, or by the Laplace covariance at a temperature.

    The belief is that of the model before it was tuned: where that has not changed, members are drawn from the belief
    itself, otherwise their distance from its most probable one counts. At temperature 0 there is no doubt. A `belief`
    after `data` that is known already is not worked out again.
    """
    if temperature is None:
        known = belief or smoothed(new_filter(family, key), data)
        # A model that was read again is another object.
        unchanged = eqx.tree_equal(tuned.posterior, family.posterior)
        centre = latent if unchanged else known.best
        return lambda key, count: known.draw(key, count) - centre[None]
    if temperature == 0:
        return None
    factor = jnp.linalg.cholesky(latent_covariance(tuned, data, latent, temperature))
    return lambda key, count: jax.random.normal(key, (count, latent.shape[0]), jnp.float32) @ factor.T


def conditioned_environment(dynamics: Dynamics, around: Surroundings) -> ConditionedImagination:
    """The environment of Q(s, w); its contexts are drawn again and again."""
    return ConditionedImagination(_environment(dynamics, around))


def mean_environment(dynamics: Dynamics, around: Surroundings) -> MeanImagination:
    """What T̂ expects next, at its mean weights; contexts are latents."""
    return MeanImagination(_environment(dynamics, around))


def noisy_environment(dynamics: Dynamics, around: Surroundings) -> NoisyImagination:
    """What may come next; its contexts are what is not known."""
    return NoisyImagination(_environment(dynamics, around))


def _environment(dynamics: Dynamics, around: Surroundings) -> Imagination:
    slack = DATA_MARGIN * (around.high - around.low)
    from_origin = dynamics.specification.from_origin
    within = Range(*(jnp.asarray(from_origin(bound)) for bound in (around.low - slack, around.high + slack)))
    return Imagination(dynamics, around.reward, around.starts, within, around.visited)


def from_state(imagined: Imagined, state: np.ndarray) -> Imagined:
    """The same world, with every episode beginning in `state` (natural units)."""
    environment = imagined.environment
    assert isinstance(environment, Imagination)
    starts = jnp.asarray(environment.dynamics.specification.from_origin(state))[None]
    return imagined._replace(
        environment=Imagination(environment.dynamics, environment.reward, starts, environment.range)
    )


# Where episodes begin.


def starts_of_instance(family: BaseFamily, theta: Theta, *, key: PRNGKeyArray) -> Float[Array, "starts state"]:
    """First states of the instance itself."""
    return family.first_states(jax.random.split(key, STARTS), theta)


def starts_of_batch(batch: Transitions, *, key: PRNGKeyArray) -> Float[Array, "starts state"]:
    """First states of logged episodes, drawn at random."""
    first = batch.state[batch.time == 0]
    order = numpy_generator(key).permutation(len(first))
    return jnp.asarray(batch.specification.from_origin(first[order[np.arange(STARTS) % len(first)]]))


def starts_of_log(log: Transitions, now: np.ndarray, *, key: PRNGKeyArray) -> Float[Array, "starts state"]:
    """States in which the system has been; every other episode begins in the present one."""
    rows = numpy_generator(key).choice(len(log), STARTS // 2)
    states = np.concatenate([log.state[rows], np.broadcast_to(now, (STARTS // 2, len(now)))])
    return jnp.asarray(log.specification.from_origin(states))
