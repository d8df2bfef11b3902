"""A reward and termination head: r̂(s, a, s', w_b) learned from logged rewards, where no formula is given.

u = h(r) is regressed, h(r) = sign(r) log(1 + |r| / unit) standardised, as rewards may span many powers of
ten; termination is a logistic regression on the same layers.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp._optimise import apply_optimizer, cosine_adam
from hipmdp._units import reward_unit
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.model import padded
from hipmdp.dynamics.network import forward, initial_mean
from hipmdp.dynamics.standardise import Scaling, padded_size, state_change
from hipmdp.families.specification import Specification

HIDDEN = (64, 64)
"""Units of the ReLU layers."""
STEPS, BATCH_SIZE, LEARNING_RATE = 6000, 256, 3e-3
"""A few seconds on one core; more steps did not lower the held-out error."""


class RewardHead(eqx.Module):
    """A ReLU network with two outputs: standardised h(r), and the logit of termination."""

    weights: Float[Array, " weights"]
    scaling: Scaling
    centre: Float[Array, ""]
    """Mean of h(r) in the batch."""
    scale: Float[Array, ""]
    """Standard deviation of h(r) in the batch."""
    unit: Float[Array, ""]
    """Size of a typical reward in the batch."""
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
        """(standardised h(r), logit of termination) of one transition."""
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
        return jnp.sign(u) * jnp.expm1(jnp.abs(u)) * self.unit, logit > 0


def new_reward_head(
    specification: Specification, scaling: Scaling, latent_size: int, *, key: PRNGKeyArray
) -> RewardHead:
    """A head with initial weights; h(r) is not standardised yet."""
    one, nothing = jnp.ones((), jnp.float32), jnp.zeros((), jnp.float32)
    head = RewardHead(jnp.zeros(0, jnp.float32), scaling, nothing, one, one, latent_size, specification)
    return eqx.tree_at(lambda h: h.weights, head, initial_mean(head.sizes, key=key))


def fit_reward_head(
    transitions: Transitions, scaling: Scaling, latents: Float[Array, "rows latent"], *, key: PRNGKeyArray
) -> RewardHead:
    """Fit a head to all of `transitions`; `latents` is w_b of each row."""
    head_key, fit_key = jax.random.split(key)
    specification = transitions.specification
    head = new_reward_head(specification, scaling, latents.shape[-1], key=head_key)
    unit = reward_unit(transitions.reward)
    squashed = np.sign(transitions.reward) * np.log1p(np.abs(transitions.reward) / unit)
    # h has no unit, and is of order one.
    spread = max(float(squashed.std()), 1e-6)
    values = tuple(jnp.asarray(v, jnp.float32) for v in (squashed.mean(), spread, unit))
    head = eqx.tree_at(lambda h: (h.centre, h.scale, h.unit), head, values)
    count = len(transitions)
    target = ((squashed - squashed.mean()) / spread).astype(np.float32)
    columns = (
        specification.from_origin(transitions.state), transitions.action,
        specification.from_origin(transitions.next_state), np.asarray(latents, np.float32),
        target, transitions.terminated.astype(np.float32),
    )  # fmt: skip
    return _fit(head, padded(columns, padded_size(count)), count=jnp.asarray(count, jnp.int32), key=fit_key)


@eqx.filter_jit
def _fit(head: RewardHead, columns: tuple[Array, ...], *, count: Int[Array, ""], key: PRNGKeyArray) -> RewardHead:
    optimizer = cosine_adam(LEARNING_RATE, STEPS)

    def loss(weights: Array, rows: tuple[Array, ...]) -> Array:
        moved = eqx.tree_at(lambda h: h.weights, head, weights)
        outputs = jax.vmap(moved.outputs)(*rows[:4])
        ends = optax.sigmoid_binary_cross_entropy(outputs[:, 1], rows[5])
        return jnp.mean((outputs[:, 0] - rows[4]) ** 2) + jnp.mean(ends)

    def step(_: Array, carry: tuple[Array, optax.OptState, PRNGKeyArray]) -> tuple[Array, optax.OptState, PRNGKeyArray]:
        weights, state, key = carry
        key, row_key = jax.random.split(key)
        chosen = jax.random.randint(row_key, (BATCH_SIZE,), 0, count, jnp.int32)
        gradient = jax.grad(loss)(weights, tuple(column[chosen] for column in columns))
        weights, state = apply_optimizer(optimizer, gradient, state, weights)
        return weights, state, key

    weights, _, _ = jax.lax.fori_loop(0, STEPS, step, (head.weights, optimizer.init(head.weights), key))
    return eqx.tree_at(lambda h: h.weights, head, weights)
