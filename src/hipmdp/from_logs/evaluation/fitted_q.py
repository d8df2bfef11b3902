"""Fitted Q evaluation: Q(s, a, t) of a policy from the logged transitions alone, without a model.

    Q(s_t, a_t, t) ← r_t + γ Q̄(s_{t+1}, π(s_{t+1}), t + 1), and r_t alone where the episode ends or its time is up

Several networks, each on episodes drawn anew (a bootstrap), so that their spread is an interval.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp._optimise import apply_optimizer, cosine_adam
from hipmdp.control.policy import Policy
from hipmdp.control.q_network import QNetwork
from hipmdp.from_logs.evaluation.estimate import Estimate, LoggedEpisodes, estimate_of

NETWORKS = 8
"""Of the bootstrap."""
UNITS, STEPS, BATCH, RATE, AVERAGE = (64, 64), 3000, 128, 1e-3, 0.01
"""Of each network: layers, gradient steps, rows of one, learning rate, share of the online network in the target."""


class _Rows(NamedTuple):
    inputs: Float[Array, "rows inputs"]
    """State and time."""
    action: Int[Array, " rows"]
    reward: Float[Array, " rows"]
    next_inputs: Float[Array, "rows inputs"]
    next_action: Int[Array, " rows"]
    """What the policy does there."""
    goes_on: Float[Array, " rows"]


class FittedQ(NamedTuple):
    """Q of a policy, in the unit of `unit`."""

    value: Estimate
    """Of the policy from the logged first states."""
    values: np.ndarray
    """[episode, time, action]: mean over the networks, on logged states."""


def fitted_q(episodes: LoggedEpisodes, policy: Policy, discount: float, *, key: PRNGKeyArray) -> FittedQ:
    """Fit and ask at the logged first states."""
    horizon, specification = policy.specification.horizon, policy.specification
    numbers, times = np.nonzero(episodes.valid)
    unit = float(np.sqrt(np.mean(episodes.reward[episodes.valid] ** 2))) or 1.0
    state, after = (specification.from_origin(part[episodes.valid]) for part in (episodes.state, episodes.next_state))
    ended = episodes.terminated[episodes.valid] | (times + 1 >= horizon)
    rows = _Rows(
        inputs=_with_time(state, times, horizon),
        action=jnp.asarray(episodes.action[episodes.valid], jnp.int32),
        reward=jnp.asarray(episodes.reward[episodes.valid] / unit, jnp.float32),
        next_inputs=_with_time(after, times + 1, horizon),
        next_action=jnp.asarray(policy(episodes.next_state[episodes.valid]), jnp.int32),
        goes_on=jnp.asarray(~ended, jnp.float32),
    )
    centre, scale = (np.asarray(part(np.asarray(rows.inputs), axis=0)) for part in (np.mean, np.std))
    draw_key, network_key, fit_key = jax.random.split(key, 3)
    count = len(episodes.first_states)
    drawn = np.asarray(jax.random.randint(draw_key, (NETWORKS, count), 0, count, jnp.int32))
    weights = np.stack([np.bincount(row, minlength=count) for row in drawn])[:, numbers]
    networks = [
        QNetwork(
            jnp.asarray(centre), jnp.asarray(np.where(scale > 0, scale, 1)), specification.action_count, UNITS,
            normalised=True, key=k,
        )
        for k in jax.random.split(network_key, NETWORKS)
    ]  # fmt: skip
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)
    fitted = _fit(stacked, rows, jnp.asarray(weights, jnp.float32), jax.random.split(fit_key, NETWORKS), discount)
    everywhere = _with_time(state, times, horizon)
    found = unit * np.asarray(jax.vmap(lambda n: jax.vmap(n)(everywhere))(fitted), np.float64)
    values = np.zeros((NETWORKS, *episodes.valid.shape, specification.action_count))
    values[:, episodes.valid] = found
    first = np.take_along_axis(values[:, :, 0], np.asarray(policy(episodes.first_states))[None, :, None], axis=2)[
        ..., 0
    ]
    # Each network's first states are those that it was fitted to.
    draws = np.take_along_axis(first, drawn, axis=1).mean(axis=1)
    estimate = estimate_of(draws)
    return FittedQ(estimate._replace(value=float(first.mean())), values.mean(axis=0))


def _with_time(states: np.ndarray, times: np.ndarray, horizon: int) -> Float[Array, "rows inputs"]:
    return jnp.asarray(np.concatenate([states, (times / horizon)[:, None]], axis=1), jnp.float32)


@eqx.filter_jit
def _fit(networks: Any, rows: _Rows, weights: Array, keys: Array, discount: float) -> Any:
    optimizer = cosine_adam(RATE, STEPS)

    def one(network: Any, weight: Array, key: PRNGKeyArray) -> Any:
        def step(carry: tuple[Any, Any, optax.OptState], key: PRNGKeyArray) -> tuple[Any, None]:
            online, target, state = carry
            chosen = jax.random.categorical(key, jnp.log(weight), shape=(BATCH,))
            part = jax.tree.map(lambda leaf: leaf[chosen], rows)
            behind = jax.vmap(target)(part.next_inputs)
            behind = jnp.take_along_axis(behind, part.next_action[:, None], axis=1)[:, 0]
            goal = part.reward + discount * part.goes_on * behind

            def loss(network: Any) -> Array:
                values = jnp.take_along_axis(jax.vmap(network)(part.inputs), part.action[:, None], axis=1)[:, 0]
                return jnp.mean((values - goal) ** 2)

            online, state = apply_optimizer(optimizer, jax.grad(loss)(online), state, online)
            target = optax.incremental_update(online, target, AVERAGE)
            return (online, target, state), None

        return jax.lax.scan(step, (network, network, optimizer.init(network)), jax.random.split(key, STEPS))[0][1]

    return jax.vmap(one)(networks, weights, keys)
