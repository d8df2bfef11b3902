"""The learned reward and termination against a formula."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.data.transitions import COLUMNS, Transitions
from hipmdp.dynamics.reward_head import fit_reward_head, new_reward_head
from hipmdp.dynamics.standardise import scaling_of
from tests.dynamics.toys import toy_log


def logged(rows=2000, seed=0):
    """r = 100 w s' − 3 a; the end is where s' > 1. Two instances, w = ±1."""
    rng = np.random.default_rng(seed)
    state, change = rng.uniform(-1, 1, (rows, 1)), rng.uniform(-1, 1, (rows, 1))
    log = toy_log(state, change, instance=rng.integers(0, 2, rows))
    sign = 2.0 * log.instance - 1
    columns = {name: getattr(log, name) for name in ("state", "action", "next_state", "instance", "episode", "time")}
    columns |= {
        "reward": 100 * sign * log.next_state[:, 0],
        "terminated": log.next_state[:, 0] > 1,
        "truncated": np.zeros(rows, bool),
    }
    return Transitions(log.specification, columns), jnp.asarray(sign[:, None], jnp.float32)


def test_a_head_pays_in_its_unit():
    """By hand: all weights zero give u = centre, and r = unit (e^u − 1)."""
    log, _ = logged(rows=8)
    row = (jnp.asarray([0.5]), jnp.asarray(0), jnp.asarray([0.6]), jnp.zeros(1))
    for unit in (1.0, 1e-30, 1e30):
        head = new_reward_head(log.specification, scaling_of(log), 1, key=jax.random.key(0))
        values = (0 * head.weights, *(jnp.asarray(v, jnp.float32) for v in (-np.log(3.0), unit)))
        head = eqx.tree_at(lambda h: (h.weights, h.centre, h.unit), head, values)
        np.testing.assert_allclose(head(*row)[0], -2 * unit, rtol=1e-6)


def test_the_unit_of_rewards_does_not_matter():
    """The same rewards in other units: the same head in those units."""
    log, latents = logged(rows=400)
    columns = {name: getattr(log, name) for name in COLUMNS}
    predicted = []
    for unit in (1.0, 2.0**20, 2.0**-20):
        own = Transitions(log.specification, {**columns, "reward": unit * log.reward})
        head = fit_reward_head(own, scaling_of(own), latents, key=jax.random.key(0))
        rows = (jnp.asarray(getattr(own, c), jnp.float32) for c in ("state", "next_state"))
        state, after = rows
        rewards, _ = jax.vmap(head)(state, jnp.asarray(own.action), after, latents)
        predicted.append(np.asarray(rewards) / unit)
    np.testing.assert_allclose(predicted[1], predicted[0], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(predicted[2], predicted[0], rtol=1e-4, atol=1e-3)


def test_rewards_and_ends_are_learned_with_the_latent():
    log, latents = logged()
    head = fit_reward_head(log, scaling_of(log), latents, key=jax.random.key(0))
    new, signs = logged(seed=1)
    rewards, ends = jax.vmap(head)(*(jnp.asarray(getattr(new, c)) for c in ("state", "action", "next_state")), signs)
    assert np.corrcoef(np.asarray(rewards), new.reward)[0, 1] > 0.99
    assert np.mean(np.asarray(ends) == new.terminated) > 0.98
