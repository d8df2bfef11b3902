"""Whole episodes, and what is left of them where only the return is asked for."""

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.families.rollout import rollout, total_reward
from tests.control.probes import BY_ACTION, ONE_STEP, STAY_OR_STOP, TIME_OUT, TWO_STEPS, Probe


def coin(key, state, time):
    return jax.random.randint(key, (), 0, 2, jnp.int32)


def test_total_reward_is_the_return_of_the_same_episode():
    kinds = jnp.asarray([ONE_STEP, TWO_STEPS, TIME_OUT, BY_ACTION] + 8 * [STAY_OR_STOP])
    keys = jax.random.split(jax.random.key(0), len(kinds))
    episodes = jax.jit(jax.vmap(lambda key, kind: rollout(Probe(), coin, key, kind)))(keys, kinds)
    totals = jax.jit(jax.vmap(lambda key, kind: total_reward(Probe(), coin, key, kind)))(keys, kinds)
    # Ended after one step and after two; five steps of one each, then cut off.
    assert totals[:3].tolist() == [1, 1, 5]
    assert len(set(np.asarray(episodes.length).tolist())) > 2
    np.testing.assert_allclose(totals, episodes.undiscounted_return, rtol=1e-6)
