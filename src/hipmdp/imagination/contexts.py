"""What is drawn anew for every imagined episode: weights of T̂, and a latent."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from hipmdp.dynamics.belief import Belief
from hipmdp.dynamics.model import Dynamics
from hipmdp.settings.amortise import AmortiseConfig

SAME = 1e-12
"""Squared distance, in spreads, up to which latents are one: `online` repeats them to fill arrays."""


class Context(NamedTuple):
    """The function and the latent of one imagined episode; leaves gain a leading axis for a pool of contexts."""

    weights: Float[Array, "*pool draws weights"]
    """The prediction is the mean over these weight draws: one draw is one function that the data allow."""
    latent: Float[Array, "*pool latent"]
    """w_b."""


class NoisyContext(NamedTuple):
    """A context, and how much of every step T̂ does not foretell in it."""

    context: Context
    noise: Float[Array, "*pool state"]
    """Spread of the noise of a step, standardised."""

    @property
    def latent(self) -> Float[Array, "*pool latent"]:
        """w_b."""
        return self.context.latent


Deviations = Callable[[PRNGKeyArray, int], Float[Array, "count latent"]]
"""Draws of how far w_b may be from the fitted one."""


class ConditionedContext(NamedTuple):
    """A context, and the w that a policy Q(s, w) gets as input in it."""

    context: Context
    latent: Float[Array, "*pool latent"]
    """Equal to the context's, or off by some noise: at a new instance w is inferred, never known."""


class BeliefContexts(eqx.Module):
    """What a belief leaves open: a w_b for each of some functions that the batch allows, and noise as large as here."""

    weights: Float[Array, "draws one weights"]
    noise_variance: Float[Array, " state"]
    """σ_n², which the belief multiplies by its misfit."""

    def __call__(self, key: PRNGKeyArray, belief: Belief) -> NoisyContext:
        """A pool of contexts, one per function."""
        draws = self.weights.shape[0]
        noise = jnp.sqrt(belief.misfit * self.noise_variance)
        return NoisyContext(
            Context(self.weights, belief.draw(key, draws)), jnp.broadcast_to(noise, (draws, *noise.shape))
        )


class KnownContexts(eqx.Module):
    """The same contexts at every step."""

    contexts: NoisyContext

    def __call__(self, key: PRNGKeyArray, memory: object) -> NoisyContext:
        """They."""
        return self.contexts


def instance_contexts(
    dynamics: Dynamics,
    latent: Float[Array, " latent"],
    *,
    key: PRNGKeyArray,
    draws: int,
    mean: bool,
    deviations: Deviations | None = None,
) -> Context:
    """One instance: a pool of `draws` functions, one per imagined episode in turn; or one that is their mean (paper).

    With deviations each has a latent of its own: the policy must then do well for every member of the family that the
    data still allow.
    """
    weight_key, latent_key = jax.random.split(key)
    weights = dynamics.draw_weights(weight_key, draws)
    weights = weights[None] if mean else weights[:, None]
    latents = jnp.broadcast_to(latent, (weights.shape[0], *latent.shape))
    if deviations is not None:
        latents = latents + deviations(latent_key, weights.shape[0])
    return Context(weights, latents)


LATENTS_APART: Context = Context(None, 0)  # type: ignore[arg-type]
"""Axes within a group whose members differ by w_b alone."""


def instance_members(
    contexts: Context,
    latent: Float[Array, " latent"],
    *,
    key: PRNGKeyArray,
    groups: int,
    members: int,
    deviations: Deviations | None = None,
) -> Context:
    """One instance with the functions of its `contexts`, a group each in turn, and a latent of its own per member."""
    rows = jnp.arange(groups, dtype=jnp.int32) % contexts.weights.shape[0]
    latents = jnp.broadcast_to(latent, (groups * members, *latent.shape))
    if deviations is not None:
        latents = latents + deviations(key, groups * members)
    return Context(contexts.weights[rows], latents.reshape(groups, members, -1))


def training_contexts(dynamics: Dynamics, *, key: PRNGKeyArray, each: int) -> Context:
    """The training instances themselves, each with `each` weight draws."""
    latents = jnp.repeat(dynamics.latents, each, axis=0)
    weights = dynamics.draw_weights(key, latents.shape[0])
    return Context(weights[:, None], latents)


SHARED_WEIGHTS: ConditionedContext = ConditionedContext(Context(None, 0), 0)  # type: ignore[arg-type]
"""Axes of `sampled_contexts` within a group: all members of a group have its weight draw."""


def sampled_contexts(dynamics: Dynamics, config: AmortiseConfig, *, key: PRNGKeyArray) -> ConditionedContext:
    """Imagined members of the family; a leading axis of groups, each with a weight draw.

    w is on the way from a training latent to one of its nearest, at most half of it, and a little off: new members are
    between known ones, and not anywhere in the space of w, which has more dimensions than members differ in. For half
    of them the w that the policy gets is off by a little noise.
    """
    order_key, near_key, share_key, spread_key, noise_key, weight_key = jax.random.split(key, 6)
    groups, members = config.pqn.groups, config.pqn.members
    count = groups * members
    scale = jnp.sqrt(dynamics.latent_prior.variance)[None]
    # All training instances in turn, in an order of their own.
    order = jax.random.permutation(order_key, jnp.arange(count, dtype=jnp.int32)) % dynamics.latents.shape[0]

    def normals(key: PRNGKeyArray) -> Float[Array, "samples latent"]:
        return scale * jax.random.normal(key, (count, scale.shape[1]), jnp.float32)

    near = _near(dynamics.latents / scale, config.neighbours)[order]
    other = dynamics.latents[jax.random.categorical(near_key, jnp.where(near, 0.0, -jnp.inf))]
    latents = dynamics.latents[order]
    way = (other - latents) / scale
    length = jnp.sqrt(jnp.mean(way**2, axis=1, keepdims=True))
    share = jax.random.uniform(share_key, (count, 1), jnp.float32, 0, 0.5)
    share = jnp.minimum(share, config.latent_reach / jnp.maximum(length, SAME))
    latents = latents + scale * share * way + config.latent_spread * normals(spread_key)
    noisy = (jnp.arange(count) % 2 == 1)[:, None]
    inputs = latents + jnp.where(noisy, config.latent_noise * normals(noise_key), 0.0)
    weights = dynamics.draw_weights(weight_key, groups)
    latents, inputs = (values.reshape(groups, members, -1) for values in (latents, inputs))
    return ConditionedContext(Context(weights[:, None], latents), inputs)


def _near(points: Float[Array, "points dimensions"], count: int) -> Bool[Array, "points points"]:
    """Which other points are the `count` nearest of each, copies of it left out; itself where there is no other."""
    squares = jnp.sum((points[:, None] - points[None]) ** 2, axis=-1)
    squares = jnp.where(squares > SAME, squares, jnp.inf)
    farthest = jnp.sort(squares, axis=1)[:, min(count, len(points)) - 1, None]
    near = (squares <= farthest) & jnp.isfinite(squares)
    return near | (~jnp.any(near, axis=1, keepdims=True) & jnp.eye(len(points), dtype=bool))
