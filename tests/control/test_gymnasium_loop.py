"""The learner where Python steps the environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.control import gymnasium_loop
from hipmdp.control.policies import greedy_episodes, repeat_theta
from hipmdp.control.train import finished, new_dqn, train, train_in_stages
from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from hipmdp.families.rollout import mean_return
from hipmdp.families.scripted import random_policy
from hipmdp.settings.dqn import DDQNConfig
from tests.families.walks import WALK, Walk, half_walk, walk

# One set of settings and one size of the replay: compiling is what costs time here.
CONFIG = DDQNConfig(hidden=(16, 16), steps_per_phase=5, minibatches=10, epsilon_decay=0.9, learning_rate=5e-3)
EPISODES = 40


def dqn(config=CONFIG, seed=0):
    return new_dqn(WALK.specification, config, EPISODES, jax.random.key(seed))


def rows_of(chunks):
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *[chunk.rows for chunk in chunks])


@pytest.fixture(scope="module")
def chunks_and_activity():
    """Nine episodes in chunks of two ticks, less than an episode; and whether lanes were active at the chunks' ends."""
    contexts = WALK.theta({"length": 0.5})._replace(length=jnp.asarray([0.5, 0.75], jnp.float32))
    chunks, active = [], []
    for chunk in train(CONFIG, WALK, contexts, dqn(), 9, ticks=2):
        chunks.append(chunk)
        active.append(np.asarray(chunk.state.lanes.active).any())
    return chunks, active


def test_rows_are_the_steps_of_the_environment(chunks_and_activity):
    rows = rows_of(chunks_and_activity[0])
    before, action, reward, after, terminated = rows.transition
    # Episode i runs on instance i mod 2; actions 0 and 1 are left and right.
    length = np.where(rows.episode % 2 == 0, 0.5, 0.75)
    np.testing.assert_allclose(after[:, 0] - before[:, 0], length * (2 * action - 1), atol=1e-6)
    np.testing.assert_array_equal(reward, after[:, 0])
    np.testing.assert_array_equal(terminated, after[:, 0] > 2)
    np.testing.assert_array_equal(rows.truncated, (rows.time == 5) & ~terminated)
    assert sorted(set(rows.episode.tolist())) == list(range(9))
    for episode in range(9):
        mine = rows.episode == episode
        assert rows.time[mine].tolist() == list(range(mine.sum()))
        np.testing.assert_array_equal(before[mine][1:], after[mine][:-1])
        assert (terminated | rows.truncated)[mine].tolist() == [False] * (mine.sum() - 1) + [True]


def test_chunks_end_between_episodes_and_the_replay_holds_everything(chunks_and_activity):
    chunks, active = chunks_and_activity
    assert len(chunks) > 2
    assert not any(active)
    assert finished(chunks[-1].state, 9)
    rows, replay = rows_of(chunks), chunks[-1].state.replay
    assert int(replay.size) == len(rows.episode)
    np.testing.assert_array_equal(replay.items.state[: int(replay.size)], rows.transition.state)


def test_goes_on_to_the_same_bits_from_a_checkpoint(tmp_path):
    contexts = repeat_theta(half_walk(), 1)
    whole = list(train(CONFIG, WALK, contexts, dqn(seed=3), 9, ticks=2))
    first = next(train(CONFIG, WALK, contexts, dqn(seed=3), 9, ticks=2))
    save_checkpoint(tmp_path / "c", "collection", first.state, {})
    state, _ = load_checkpoint(tmp_path / "c", "collection", lambda meta: dqn())
    rest = list(train(CONFIG, WALK, contexts, state, 9, ticks=2))
    for a, b in zip(rows_of(whole).transition, rows_of([first, *rest]).transition, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(whole[-1].state.online.layers[0].weight, rest[-1].state.online.layers[0].weight)
    other = rows_of(train(CONFIG, WALK, contexts, dqn(seed=4), 9, ticks=2))
    assert not np.array_equal(other.transition.action[:20], rows_of(whole).transition.action[:20])


def test_lanes_have_environments_of_their_own():
    config = DDQNConfig(hidden=(8, 8), steps_per_phase=5, lanes=3)
    (chunk,) = train_in_stages(config, WALK, repeat_theta(half_walk(), 1), dqn(config), [9])
    assert sorted(set(chunk.rows.episode.tolist())) == list(range(9))
    for episode in range(9):
        mine = chunk.rows.episode == episode
        after, before = chunk.rows.transition.next_state[mine], chunk.rows.transition.state[mine]
        np.testing.assert_array_equal(before[1:], after[:-1])


def test_it_learns():
    """Right pays: five steps of 0.5 give 0.5 + 1 + 1.5 + 2 + 2.5 = 7.5 from 0, and 6.25 in four from 0.25."""
    *_, last = train(CONFIG, WALK, repeat_theta(half_walk(), 1), dqn(), EPISODES, ticks=1000)
    many, keys = repeat_theta(half_walk(), 10), jax.random.split(jax.random.key(9), 10)
    assert mean_return(greedy_episodes(WALK, last.state.online, many, keys)) > 6
    assert mean_return(WALK.rollouts(random_policy(WALK), keys, many)) < 3


def test_environments_are_made_once_for_a_chunk_and_closed():
    made = []

    def make(theta):
        made.append(Walk(theta["length"]))
        return made[-1]

    family = walk(make)
    made.clear()
    gymnasium_loop.run_ticks(CONFIG, family, repeat_theta(half_walk(), 1), dqn(), 9, 20)
    assert len(made) == 1
    assert made[0].closed


def test_no_restarts_from_an_earlier_state():
    config = DDQNConfig(hidden=(8, 8), restart_share=0.5)
    with pytest.raises(ValueError, match="cannot restart from an earlier state"):
        next(train(config, WALK, repeat_theta(half_walk(), 1), dqn(config), 9, 2))
