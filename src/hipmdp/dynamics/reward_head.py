"""A reward and termination head: r̂(s, a, s', w_b) learned from logged rewards, for those who have no formula.

u = h(r) is regressed, h(r) = sign(r) log(1 + |r|) standardised, as rewards may span many powers of ten; termination is
a logistic regression on the same layers.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.model import padded, padded_size
from hipmdp.dynamics.network import forward, initial_mean
from hipmdp.dynamics.scaling import Scaling, state_change
from hipmdp.families.specification import Specification

HIDDEN = (64, 64)
STEPS, BATCH_SIZE, LEARNING_RATE = 6000, 256, 3e-3
"""A few seconds on one core; more steps did not lower the held-out error."""


class RewardHead(eqx.Module):
    """A ReLU network with two outputs: standardised h(r), and the logit of termination."""

    weights: Float[Array, " weights"]
    scaling: Scaling
    centre: Float[Array, ""]
    """Mean of h(r) in the batch."""
    scale: Float[Array, ""]
    """Its spread."""
    latent_size: int = eqx.field(static=True)
    specification: Specification = eqx.field(static=True)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of every layer."""
        states, actions = self.specification.state_size, self.specification.action_count
        return (3 * states + actions + self.latent_size, *HIDDEN, 2)

    def outputs(
        self,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        next_state: Float[Array, " state"],
        latent: Float[Array, " latent"],
    ) -> Float[Array, " 2"]:
        """(standardised h(r), logit)."""
        change = state_change(self.specification, state, next_state)
        scaling = self.scaling
        features = scaling.features(state, action, self.specification.action_count)
        after = (next_state - scaling.state_centre) / scaling.state_scale
        inputs = jnp.concatenate([features, after, scaling.standardised(change), latent])
        return forward(self.sizes, self.weights, inputs)

    def __call__(
        self,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        next_state: Float[Array, " state"],
        latent: Float[Array, " latent"],
    ) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        """(reward, terminated) of one transition."""
        value, logit = self.outputs(state, action, next_state, latent)
        u = value * self.scale + self.centre
        return jnp.sign(u) * jnp.expm1(jnp.abs(u)), logit > 0


def new_reward_head(
    specification: Specification, scaling: Scaling, latent_size: int, *, key: PRNGKeyArray
) -> RewardHead:
    """An untrained head."""
    one, nothing = jnp.ones((), jnp.float32), jnp.zeros((), jnp.float32)
    head = RewardHead(jnp.zeros(0, jnp.float32), scaling, nothing, one, latent_size, specification)
    return eqx.tree_at(lambda h: h.weights, head, initial_mean(head.sizes, key=key))


def fit_reward_head(
    transitions: Transitions, scaling: Scaling, latents: Float[Array, "rows latent"], seed: int = 0
) -> RewardHead:
    """Fit to all of `transitions`; `latents` is w_b of each row."""
    specification = transitions.specification
    head = new_reward_head(specification, scaling, latents.shape[-1], key=jax.random.key(seed))
    squashed = np.sign(transitions.reward) * np.log1p(np.abs(transitions.reward.astype(np.float64)))
    spread = max(float(squashed.std()), 1e-6)
    centre, scale = (jnp.asarray(v, jnp.float32) for v in (squashed.mean(), spread))
    head = eqx.tree_at(lambda h: (h.centre, h.scale), head, (centre, scale))
    count = len(transitions)
    target = ((squashed - squashed.mean()) / spread).astype(np.float32)
    columns = (
        transitions.state, transitions.action, transitions.next_state, np.asarray(latents, np.float32),
        target, transitions.terminated.astype(np.float32),
    )  # fmt: skip
    return _fit(head, padded(columns, padded_size(count)), jnp.asarray(count, jnp.int32), jax.random.key(seed))


@eqx.filter_jit
def _fit(head: RewardHead, columns: tuple[Array, ...], count: Int[Array, ""], key: PRNGKeyArray) -> RewardHead:
    optimizer = optax.scale_by_adam()

    def loss(weights: Array, rows: tuple[Array, ...]) -> Array:
        moved = eqx.tree_at(lambda h: h.weights, head, weights)
        outputs = jax.vmap(moved.outputs)(*rows[:4])
        ends = optax.sigmoid_binary_cross_entropy(outputs[:, 1], rows[5])
        return jnp.mean((outputs[:, 0] - rows[4]) ** 2) + jnp.mean(ends)

    def step(i: Array, carry: tuple[Array, optax.OptState]) -> tuple[Array, optax.OptState]:
        weights, state = carry
        chosen = jax.random.randint(jax.random.fold_in(key, i), (BATCH_SIZE,), 0, count, jnp.int32)
        gradient = jax.grad(loss)(weights, tuple(column[chosen] for column in columns))
        with jax.numpy_dtype_promotion("standard"):
            direction, state = optimizer.update(gradient, state)
        fall = 0.5 * (1 + jnp.cos(jnp.pi * i.astype(jnp.float32) / STEPS))
        return weights - LEARNING_RATE * fall * direction, state

    weights, _ = jax.lax.fori_loop(0, STEPS, step, (head.weights, optimizer.init(head.weights)))
    return eqx.tree_at(lambda h: h.weights, head, weights)
