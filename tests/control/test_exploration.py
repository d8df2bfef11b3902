"""Random actions, single ones and runs of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.control.exploration import begin_chance, draw_exploration, explore, nothing_held

GREEDY = jnp.full(2000, 9, jnp.int32)


def walk(epsilon, longest, steps=300):
    """(steps, lanes) of actions; 9 is the greedy one."""

    def step(carry, _):
        key, held = carry
        key, own = jax.random.split(key)
        drawn = draw_exploration(own, GREEDY.shape, 3, longest)
        action, held = explore(drawn, jnp.asarray(epsilon), GREEDY, held=held, longest=longest)
        return (key, held), action

    first = (jax.random.key(0), nothing_held(GREEDY.shape))
    return np.asarray(jax.jit(lambda: jax.lax.scan(step, first, None, steps)[1])())


@pytest.mark.parametrize("longest", [1, 3, 20])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.6, 1.0])
def test_epsilon_is_the_share_of_random_steps(epsilon, longest):
    actions = walk(epsilon, longest)[100:]
    assert np.mean(actions != 9) == pytest.approx(epsilon, abs=0.01)


def test_a_run_of_three_by_hand():
    """P(1), P(2), P(3) = 6/11, 3/11, 2/11, mean 18/11: at ε = ½ a run begins with ½ / (½ + 9/11) = 11/29."""
    assert float(begin_chance(jnp.asarray(0.5), 3)) == pytest.approx(11 / 29)
    lengths = np.asarray(draw_exploration(jax.random.key(1), (20_000,), 3, 3).length)
    np.testing.assert_allclose(np.bincount(lengths)[1:] / len(lengths), [6 / 11, 3 / 11, 2 / 11], atol=0.01)


def test_held_actions_do_not_change():
    """At ε = 1 and runs of up to 20, actions change in 1 of (1/mean)·2/3 steps; single ones in 2 of 3."""
    changes = {n: np.mean(np.diff(walk(1.0, n), axis=0) != 0) for n in (1, 20)}
    mean = 20 / np.sum(1 / np.arange(1, 21))
    assert changes[1] == pytest.approx(2 / 3, abs=0.01)
    assert changes[20] == pytest.approx(2 / 3 / mean, abs=0.01)
