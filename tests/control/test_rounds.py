"""Learning in rounds: as long as the return rises, from a policy or from nothing, and from any chunk on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.control.q_network import QNetwork
from hipmdp.control.rounds import imagined_return, learn_in_rounds, new_rounds_learner
from hipmdp.control.selection import has_risen
from hipmdp.families.rollout import Members
from tests.systems.corridor import CORRIDOR, PQN, CorridorTheta

THETAS = CorridorTheta(jnp.ones(4))
MEMBERS = Members(CorridorTheta(jnp.ones(PQN.groups)), CorridorTheta(None))
KEYS = jax.random.split(jax.random.key(3), 10)


def untrained(key=0):
    return QNetwork(jnp.zeros(1), jnp.ones(1), 2, PQN.hidden, normalised=True, key=jax.random.key(key))


def learned(learner, iterations=100, rounds=4, **options):
    return learn_in_rounds(
        PQN, CORRIDOR, THETAS, MEMBERS, learner, iterations=iterations, rounds=rounds, keys=KEYS, **options
    )


@pytest.fixture(scope="module")
def first():
    return learned(new_rounds_learner(untrained(), PQN, jax.random.key(1)))


def test_it_learns_until_nothing_rises(first):
    """The best return of the corridor is 8: it is found early in the first round."""
    assert float(first.best_return) == 8.0
    assert int(first.pqn.iteration) == 100
    assert bool(first.finished)
    assert float(imagined_return(CORRIDOR, THETAS, first.best, KEYS)) == 8.0


def test_where_the_return_still_rises_another_round_follows():
    """A round of one iteration has no quarter before it: there is nothing that the return could have been before."""
    learner = learned(new_rounds_learner(untrained(), PQN, jax.random.key(1)), iterations=1, rounds=3)
    assert 1 < int(learner.pqn.iteration) <= 3


def test_from_a_good_policy_one_round_is_enough(first):
    unit = float(first.pqn.unit.value)
    learner = new_rounds_learner(first.best, PQN, jax.random.key(2), unit=unit)
    value = imagined_return(CORRIDOR, THETAS, first.best, KEYS)
    again = learned(learner.valued(value, is_own=True))
    assert int(again.pqn.iteration) == 100
    assert float(again.pqn.unit.value) == pytest.approx(unit, rel=1e-5)
    # A tie keeps the policy there is.
    jax.tree.map(np.testing.assert_array_equal, again.best, first.best)


def test_a_candidate_is_kept_where_nothing_better_is_found(first):
    """Two iterations teach nothing."""
    learner = new_rounds_learner(untrained(5), PQN, jax.random.key(6), best=first.best)
    kept = learned(learner.valued(first.best_return, is_own=False), iterations=1, rounds=1)
    jax.tree.map(np.testing.assert_array_equal, kept.best, first.best)
    assert float(kept.best_return) == 8.0


def test_it_goes_on_from_any_chunk(first):
    """From the state after the fifth chunk to the same bits."""
    kept = []
    with pytest.raises(InterruptedError):
        learned(
            new_rounds_learner(untrained(), PQN, jax.random.key(1)),
            on_chunk=lambda learner: (kept.append(jax.tree.map(jnp.copy, learner)), stop_after(kept, 5)),
        )
    again = learned(kept[-1])
    jax.tree.map(np.testing.assert_array_equal, (again.pqn.online, again.best), (first.pqn.online, first.best))
    assert int(again.pqn.iteration) == int(first.pqn.iteration)


def stop_after(kept, count):
    if len(kept) == count:
        raise InterruptedError


def test_no_round_begins_when_it_is_late():
    late = learned(new_rounds_learner(untrained(), PQN, jax.random.key(1)), iterations=4, is_late=lambda: True)
    assert int(late.pqn.iteration) == 4


@pytest.mark.parametrize(
    ("value", "before", "rises"),
    [(1.0, -np.inf, True), (101.5, 100.0, True), (100.5, 100.0, False), (-98.0, -100.0, True), (-99.5, -100.0, False),
     (0.0, 0.0, False), (1e-9, 0.0, True), (1.0, 2.0, False)],
)  # fmt: skip
def test_a_rise_is_more_than_a_hundredth(value, before, rises):
    assert has_risen(value, before) is rises
