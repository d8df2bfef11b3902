"""Q(λ) in lanes: returns by hand, and a corridor that it learns."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.control import pqn
from hipmdp.control.policies import Greedy
from hipmdp.control.pqn import lambda_returns
from hipmdp.control.q_network import QNetwork
from hipmdp.families.rollout import Members, mean_return
from tests.systems.corridor import CORRIDOR, PQN, CorridorTheta


def column(*values):
    return jnp.asarray(values, jnp.float32)[:, None]


def returns(terminated, truncated, trace_decay):
    """Rewards 1, 2, 4 and next values 10, 20, 30, γ = ½."""
    flags = (jnp.asarray(flags, bool)[:, None] for flags in (terminated, truncated))
    rows = (column(1, 2, 4), column(10, 20, 30), *flags)
    return lambda_returns(*rows, discount=0.5, trace_decay=trace_decay)[:, 0].tolist()


def test_without_a_trace_it_is_one_step():
    """1 + 10/2, 2 + 20/2, 4 + 30/2."""
    assert returns([0, 0, 0], [0, 0, 0], 0.0) == [6.0, 12.0, 19.0]


def test_with_a_full_trace_it_is_the_whole_way():
    """19; 2 + 19/2; 1 + 11.5/2."""
    assert returns([0, 0, 0], [0, 0, 0], 1.0) == [6.75, 11.5, 19.0]


def test_half_a_trace_mixes():
    """2 + ½(½·20 + ½·19) = 11.75; 1 + ½(½·10 + ½·11.75) = 6.4375."""
    assert returns([0, 0, 0], [0, 0, 0], 0.5) == [6.4375, 11.75, 19.0]


def test_nothing_follows_a_terminal_state_and_time_that_is_up_is_valued():
    """Terminated: 2 alone. Truncated: 2 + 20/2, whatever comes in the next episode."""
    assert returns([0, 1, 0], [0, 0, 0], 1.0) == [2.0, 2.0, 19.0]
    assert returns([0, 0, 0], [0, 1, 0], 1.0) == [7.0, 12.0, 19.0]


@pytest.fixture(scope="module")
def both():
    """Two groups of corridors, one of each direction, and what the members of a group share: all."""
    return Members(CorridorTheta(jnp.asarray([1.0, 1.0, 1.0, 1.0], jnp.float32)), CorridorTheta(None))


def new_learner(members, key=0):
    network = QNetwork(jnp.zeros(1), jnp.ones(1), 2, PQN.hidden, normalised=True, key=jax.random.key(key))
    state = pqn.new_state(PQN, network, 1, key=jax.random.key(key + 1))
    return pqn.begin(PQN, CORRIDOR, members, state)


def test_a_unit_of_rewards_that_is_given_stays(both):
    given = replace(PQN, reward_unit=4.0)
    network = new_learner(both).online
    state = pqn.begin(given, CORRIDOR, both, pqn.new_state(given, network, 1, key=jax.random.key(1)))
    state = pqn.run_iterations(given, CORRIDOR, both, state, iterations=2, total=2)
    assert float(state.unit.value) == pytest.approx(4.0)
    read = pqn.run_iterations(PQN, CORRIDOR, both, new_learner(both), iterations=2, total=2)
    assert float(read.unit.value) < 2.0


def test_it_learns_the_corridor(both):
    state = pqn.run_iterations(PQN, CORRIDOR, both, new_learner(both), iterations=300, total=300)
    keys = jax.random.split(jax.random.key(5), 10)
    thetas = CorridorTheta(jnp.ones(10))
    episodes = CORRIDOR.rollouts(Greedy(state.online), keys, thetas)
    assert mean_return(episodes) == 8.0
    # The value of a state one step before the goal is 10 units, of the start 10γ² − γ − 1.
    values = pqn.values_network(PQN, state.online)
    unit = float(state.unit.value)
    near = float(jnp.expm1(jnp.max(values(jnp.asarray([0.9]))) * PQN.squash) / PQN.squash) * unit
    assert near == pytest.approx(10, rel=0.1)


def test_chunks_do_not_matter(both):
    """Ten iterations in one call or in three: the same bits."""
    whole = pqn.run_iterations(PQN, CORRIDOR, both, new_learner(both), iterations=10, total=20)
    state = new_learner(both)
    for count in (3, 3, 4):
        state = pqn.run_iterations(PQN, CORRIDOR, both, state, iterations=count, total=20)
    jax.tree.map(np.testing.assert_array_equal, state.online, whole.online)
    np.testing.assert_array_equal(state.state, whole.state)


def test_values_are_those_of_a_dqn():
    """The outputs are c h(Q); a DQN holds h(Q)."""
    network = QNetwork(jnp.zeros(1), jnp.ones(1), 2, (4,), normalised=True, key=jax.random.key(0))
    state = jnp.asarray([0.3])
    np.testing.assert_allclose(
        pqn.values_network(replace(PQN, squash=0.25), network)(state), 4 * network(state), rtol=1e-6
    )
