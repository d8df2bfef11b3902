"""Values under a belief, some steps ahead, with numbers by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.control.policies import BeliefPolicy, Lookahead, belief_values
from hipmdp.control.q_network import Layer, QNetwork
from hipmdp.dynamics.belief import Belief
from hipmdp.families.rollout import AbstractEnvironment, Step

STATE = jnp.zeros(1, jnp.float32)


class Line(AbstractEnvironment):
    """Nothing moves; action 1 pays 2, and ends the episode where w is positive."""

    @property
    def horizon(self):
        return 5

    def reset(self, key, context):
        return STATE

    def step(self, key, state, action, context):
        return Step(state, 2.0 * action.astype(jnp.float32), (action == 1) & (context[0] > 0), cut=jnp.zeros((), bool))


def network():
    """Q(s, ·, w) = (1, 0), whatever s and w."""
    made = QNetwork(jnp.zeros(2), jnp.ones(2), 2, (), key=jax.random.key(0))
    layer = Layer(jnp.zeros((2, 2)), jnp.asarray([1.0, 0.0]))
    return eqx.tree_at(lambda n: n.layers, made, (layer,))


def belief(*latents):
    count = len(latents)
    means = jnp.asarray(latents, jnp.float32)[:, None]
    ones = jnp.ones((count, 1), jnp.float32)
    weight = jnp.full(count, -jnp.log(float(count)), jnp.float32)
    zero = jnp.zeros((), jnp.float32)
    return Belief(weight, means, ones[:, :, None], ones, jnp.ones(1), zero, zero + 1)


def lookahead(steps=1, error=0.0):
    return Lookahead(Line(), jnp.ones(()), discount=0.5, squash=0.0, steps=steps, error=error)


@pytest.mark.parametrize(
    ("steps", "latent", "expected"),
    # r + ½ max V: (0 + ½, 2 + ½); with the end, (½, 2). Two steps: (0 + ½ 2.5, 2 + ½ 2.5).
    [(0, -1.0, [1.0, 0.0]), (1, -1.0, [0.5, 2.5]), (1, 1.0, [0.5, 2.0]), (2, -1.0, [1.25, 3.25])],
)
def test_backups_by_hand(steps, latent, expected):
    values = lookahead(steps)(network(), jax.random.key(0), STATE, jnp.asarray([latent]))
    np.testing.assert_allclose(values, expected)


def test_a_lookahead_counts_where_it_is_clear():
    """Q prefers action 0; one step ahead it is worse by 2, which is clear while values miss less than 1."""
    arguments = (jax.random.key(0), STATE, belief(-1.0))
    np.testing.assert_allclose(belief_values(network(), lookahead(error=0.9), *arguments), [0.5, 2.5])
    np.testing.assert_allclose(belief_values(network(), lookahead(error=1.1), *arguments), [1.0, 0.0])
    np.testing.assert_allclose(belief_values(network(), None, *arguments), [1.0, 0.0])


def test_hypotheses_are_weighed():
    """Two alike: (½, ½ (2.5 + 2))."""
    values = belief_values(network(), lookahead(), jax.random.key(0), STATE, belief(-1.0, 1.0))
    np.testing.assert_allclose(values, [0.5, 2.25], rtol=1e-6)
    policy = BeliefPolicy(network(), belief(-1.0, 1.0), lookahead())
    assert int(policy(jax.random.key(0), STATE, jnp.zeros((), jnp.int32))) == 1


def fickle():
    """Q(s, ·, w) = (w, 0)."""
    made = QNetwork(jnp.zeros(2), jnp.ones(2), 2, (), key=jax.random.key(0))
    layer = Layer(jnp.asarray([[0.0, 1.0], [0.0, 0.0]]), jnp.zeros(2))
    return eqx.tree_at(lambda n: n.layers, made, (layer,))


def test_caution_counts_the_worst_members():
    """w is 1 ± 1: the mean of action 0 is 1, that of its worst half 1 − √(2/π), of its worst tenth about −0.75."""
    known = belief(1.0)
    key, time = jax.random.key(1), jnp.zeros((), jnp.int32)
    plain, half, most = (belief_values(fickle(), None, key, STATE, known, caution) for caution in (0.0, 0.5, 0.9))
    np.testing.assert_array_equal(plain, [1.0, 0.0])
    assert float(half[0]) == pytest.approx(1 - np.sqrt(2 / np.pi), abs=0.25)
    assert float(most[0]) == pytest.approx(-0.75, abs=0.4)
    assert float(half[1]) == float(most[1]) == 0.0
    actions = [int(BeliefPolicy(fickle(), known, caution=c)(key, STATE, time)) for c in (0.0, 0.9)]
    assert actions == [0, 1]


def test_caution_counts_hypotheses_by_their_weight():
    """A tenth of all members has w = −100: without caution and with, that is enough."""
    two = belief(5.0, -100.0)._replace(log_weight=jnp.log(jnp.asarray([0.9, 0.1])))
    narrow = two._replace(covariance=1e-6 * two.covariance, before=1e-6 * two.before)
    values = belief_values(fickle(), None, jax.random.key(0), STATE, narrow, 0.5)
    assert -35 < float(values[0]) < 0
