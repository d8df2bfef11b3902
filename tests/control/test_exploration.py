"""Random actions, single ones and runs of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.control.exploration import begin_chance, draw_exploration, explore, no_events, nothing_held

GREEDY = jnp.full(2000, 9, jnp.int32)


def walk(epsilon, longest, steps=300, holds=True):
    """(steps, lanes) of actions; 9 is the greedy one."""

    def step(carry, _):
        key, held = carry
        key, own = jax.random.split(key)
        drawn = draw_exploration(own, GREEDY.shape, 3, longest)
        action, held = explore(
            drawn, jnp.asarray(epsilon), GREEDY, held=held, longest=longest, holds=jnp.asarray(holds)
        )
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
    assert float(begin_chance(jnp.asarray(0.5), 3, jnp.asarray(True))) == pytest.approx(11 / 29)
    assert float(begin_chance(jnp.asarray(0.5), 3, jnp.asarray(False))) == pytest.approx(0.5)
    lengths = np.asarray(draw_exploration(jax.random.key(1), (20_000,), 3, 3).length)
    np.testing.assert_allclose(np.bincount(lengths)[1:] / len(lengths), [6 / 11, 3 / 11, 2 / 11], atol=0.01)


def test_held_actions_do_not_change():
    """At ε = 1 actions change in 2 of 3 draws; runs of up to 20 are drawn once in their mean length."""
    changes = {holds: np.mean(np.diff(walk(1.0, 20, holds=holds), axis=0) != 0) for holds in (False, True)}
    n = np.arange(1, 21)
    assert changes[False] == pytest.approx(2 / 3, abs=0.01)
    assert changes[True] == pytest.approx(2 / 3 * np.sum(1 / n) / len(n), abs=0.01)


def seen(rewards, *, terminated=False, episodes=1, events=None):
    """One lane: so many episodes with these rewards."""
    events = no_events(1) if events is None else events
    for _ in range(episodes):
        for index, reward in enumerate(rewards):
            last = jnp.asarray([index == len(rewards) - 1])
            events = events.observe(
                jnp.asarray([reward], jnp.float32),
                last & terminated,
                last & ~jnp.asarray(terminated),
                jnp.asarray([True]),
            )
    return events


@pytest.mark.parametrize(
    ("rewards", "terminated", "holds"),
    [([-1, -1, -1], False, True), ([-1, -1, -1], True, False), ([0, 0, 1], False, False), ([0, 0, 0], False, True)],
)
def test_actions_are_held_where_nothing_happens(rewards, terminated, holds):
    """A reward that is the same at every step until time is up says nothing; its end or a change does."""
    assert bool(seen(rewards, terminated=terminated, episodes=8).holds) is holds


def test_that_nothing_happens_has_to_be_seen():
    """Each uneventful episode takes a tenth of the share: 0.9⁶ > ½ > 0.9⁷; later, eventful ones bring it back."""
    assert [bool(seen([0, 0], episodes=n).holds) for n in (0, 6, 7)] == [False, False, True]
    found = seen([0, 1], episodes=7, events=seen([0, 0], episodes=30))
    assert not bool(found.holds)


def test_a_lane_that_rests_sees_nothing():
    events = no_events(2).observe(
        jnp.asarray([1.0, 2.0]), jnp.zeros(2, bool), jnp.zeros(2, bool), jnp.asarray([True, False])
    )
    np.testing.assert_array_equal(events.first, [1.0, np.nan])
