"""Whole episodes, their returns alone, and the same episodes stepped from Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.families.instance import stack_thetas, unstack_thetas
from hipmdp.families.protocol import theta_values
from hipmdp.families.rollout import rollout, rollouts, total_reward
from hipmdp.families.scripted import random_policy
from tests.control.probes import BY_ACTION, ONE_STEP, STAY_OR_STOP, TIME_OUT, TWO_STEPS, Probe
from tests.families.walks import WALK, Walk, half_walk, walk

GRID, ACROBOT, HIV = (hipmdp.make(name) for name in ("grid", "acrobot", "hiv"))


def coin(key, state, time):
    return jax.random.randint(key, (), 0, 2, jnp.int32)


def test_total_reward_is_the_return_of_the_same_episode():
    kinds = jnp.asarray([ONE_STEP, TWO_STEPS, TIME_OUT, BY_ACTION] + 8 * [STAY_OR_STOP])
    keys = jax.random.split(jax.random.key(0), len(kinds))
    episodes = rollouts(Probe(), coin, keys, kinds)
    totals = jax.jit(jax.vmap(lambda key, kind: total_reward(Probe(), coin, key, kind)))(keys, kinds)
    # Ended after one step and after two; five steps of one each, then cut off.
    assert totals[:3].tolist() == [1, 1, 5]
    assert len(set(np.asarray(episodes.length).tolist())) > 2
    np.testing.assert_allclose(totals, episodes.undiscounted_return, rtol=1e-6)


def test_keys_of_an_episode_do_not_repeat():
    """The reset, every action and every step see keys of their own."""
    seen = []

    class Seeing(Probe):
        def reset(self, key, context):
            seen.append(key)
            return super().reset(key, context)

        def step(self, key, state, action, context):
            seen.append(key)
            return super().step(key, state, action, context)

    def policy(key, state, time):
        seen.append(key)
        return jnp.zeros((), jnp.int32)

    with jax.disable_jit():
        rollout(Seeing(), policy, jax.random.key(1), jnp.asarray(TIME_OUT))
    assert len({tuple(np.asarray(jax.random.key_data(key)).tolist()) for key in seen}) == 1 + 2 * 5


def test_an_environment_restarts_in_the_replay_unless_it_says_where():
    assert Probe().restart_states is None
    assert GRID.restart_states is None
    state = jnp.asarray([0.5])
    assert Probe().restart(state, TIME_OUT) is state


def stepped(family, theta, key, actions):
    """The steps of one episode through `interaction`, with the keys that `rollout` uses."""
    key, reset_key = jax.random.split(key)
    rows = []
    with family.interaction(theta) as real:
        state = real.reset(reset_key)
        for action in actions:
            key, _, step_key = jax.random.split(key, 3)
            after, reward, terminated, truncated = real.step(step_key, int(action))
            assert isinstance(after, np.ndarray)
            assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
            rows.append((state, action, reward, after, terminated))
            state = after
            if terminated or truncated:
                break
    return [np.stack(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    ("family", "values"),
    [(GRID, {"theta": 1}), (ACROBOT, {"m2": 1.2}), (HIV, {"k1": 9e-7}), (WALK, {"length": 0.7})],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_interaction_is_the_episode_of_a_rollout(family, values):
    theta, keys = family.theta(values), jax.random.split(jax.random.key(7), 1)
    episode = jax.tree.map(
        lambda leaf: np.asarray(leaf)[0], family.rollouts(random_policy(family), keys, stack_thetas([theta]))
    )
    first = episode.steps.action[episode.valid][:20]
    for column, expected in zip(stepped(family, theta, keys[0], first), episode.steps, strict=True):
        np.testing.assert_allclose(column, expected[: len(first)], rtol=2e-4, atol=2e-5)


def test_an_interaction_ends_where_the_mdp_does_and_begins_again():
    with GRID.interaction(GRID.theta({"theta": 0})) as real:
        with pytest.raises(ValueError, match="call reset first"):
            real.step(jax.random.key(0), 0)
        state = real.reset(jax.random.key(0))
        with pytest.raises(ValueError, match="must be a whole number"):
            real.step(jax.random.key(0), 4)
        for _ in range(GRID.horizon):
            action = 1 if state[1] < 0.4 and state[0] > -1.2 else 2
            state, reward, terminated, truncated = real.step(jax.random.key(0), action)
            if terminated:
                break
        assert (reward, truncated) == (1000.0, False)
        with pytest.raises(ValueError, match="call reset first"):
            real.step(jax.random.key(0), 0)
        assert real.reset(jax.random.key(0)).shape == (2,)


def test_an_interaction_with_gymnasium_says_truncated_and_closes_its_environment():
    made = []

    def make(theta):
        made.append(Walk(theta["length"], limit=2))
        return made[-1]

    family = walk(make)
    made.clear()
    with family.interaction(half_walk()) as real:
        real.reset(jax.random.key(0))
        assert [real.step(jax.random.key(0), 0)[3] for _ in range(2)] == [False, True]
        assert not made[0].closed
    assert len(made) == 1
    assert made[0].closed


def test_thetas_are_stacked_and_taken_apart():
    thetas = [half_walk(), half_walk(0.75)]
    assert [theta_values(theta) for theta in unstack_thetas(stack_thetas(thetas))] == [
        {"length": 0.5},
        {"length": 0.75},
    ]
