"""The learner on MDPs with known values, its bookkeeping, and its bits."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.control import dqn
from hipmdp.control.exploration import epsilon
from hipmdp.control.q_network import QNetwork
from hipmdp.control.train import finished, train
from hipmdp.data import replay as replays
from hipmdp.settings.dqn import DDQNConfig
from tests.control.probes import BY_ACTION, ONE_STEP, STAY_OR_STOP, TIME_OUT, TWO_STEPS, Probe

CONFIG = DDQNConfig(
    hidden=(32,), learning_rate=3e-3, target_rate=0.1, minibatches=2, batch_size=32, discount=0.5, lanes=4,
    epsilon_decay=1.0, steps_per_phase=5,
)  # fmt: skip


def start(seed, episodes=2000, config=CONFIG):
    network_key, key = jax.random.split(jax.random.key(seed))
    network = QNetwork(jnp.zeros(1), jnp.ones(1), 2, config.hidden, key=network_key)
    return dqn.init(network, config, episodes * 5, key)


def learned(kind, seed=0, ticks=300):
    state, _ = dqn.run_ticks(CONFIG, Probe(), jnp.asarray([kind]), start(seed), 2000, ticks)
    return state


@pytest.mark.parametrize(
    ("kind", "state", "values"),
    [
        (ONE_STEP, 0.0, (1.0, 1.0)),
        # γ = 0.5: one step before the reward it is worth half.
        (TWO_STEPS, 0.0, (0.5, 0.5)),
        (TWO_STEPS, 1.0, (1.0, 1.0)),
        (BY_ACTION, 0.0, (-1.0, 1.0)),
        # Cut off after five steps, but not ended: 1 + γ + γ² + … = 2.
        (TIME_OUT, 0.0, (2.0, 2.0)),
        # Stopping pays 1 and must not bootstrap (that would give 1.6); staying is worth 0.6 / (1 − γ) = 1.2.
        (STAY_OR_STOP, 0.0, (1.0, 1.2)),
    ],
)
def test_known_values(kind, state, values):
    np.testing.assert_allclose(learned(kind).online(jnp.asarray([state])), values, atol=0.05)


def test_bookkeeping_of_episodes():
    """Exactly the episodes asked for, each with consecutive times, ended by termination or by time, never both."""
    state = start(3, 40)
    rows = [chunk.rows for chunk in train(CONFIG, Probe(), jnp.asarray([TWO_STEPS, TIME_OUT]), state, 21, 7)]
    episode, time, terminated, truncated, reward = (
        np.concatenate(parts) for parts in zip(
            *[(r.episode, r.time, r.transition.terminated, r.truncated, r.transition.reward) for r in rows], strict=True
        )
    )  # fmt: skip
    assert sorted(set(episode.tolist())) == list(range(21))
    assert not (terminated & truncated).any()
    for number in range(21):
        mine = episode == number
        # Episode i runs on context i mod 2: two steps to termination, or five to the time limit.
        length = 2 if number % 2 == 0 else 5
        np.testing.assert_array_equal(np.sort(time[mine]), np.arange(length))
        assert terminated[mine].sum() == (number % 2 == 0)
        assert truncated[mine].sum() == (number % 2 == 1)
        assert reward[mine].sum() == (1 if number % 2 == 0 else 5)


def test_replay_holds_exactly_the_steps_taken():
    state = start(4, 40)
    steps = 0
    for chunk in train(CONFIG, Probe(), jnp.asarray([ONE_STEP]), state, 17, 2):
        steps += len(chunk.rows.episode)
        state = chunk.state
    assert finished(state, 17)
    assert steps == int(state.replay.size) == 17


def test_same_seed_same_bits_and_other_seeds_differ():
    first, again, other = learned(BY_ACTION, 5, 20), learned(BY_ACTION, 5, 20), learned(BY_ACTION, 6, 20)
    leaves = [jax.tree.leaves(s.online) for s in (first, again, other)]
    assert all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[1], strict=True))
    assert not np.array_equal(leaves[0][0], leaves[2][0])
    actions = [np.asarray(s.replay.items.action) for s in (first, again, other)]
    assert np.array_equal(actions[0], actions[1])
    assert not np.array_equal(actions[0], actions[2])


def test_two_chunks_equal_one_to_the_bit():
    contexts = jnp.asarray([STAY_OR_STOP])
    once, _ = dqn.run_ticks(CONFIG, Probe(), contexts, start(7), 2000, 20)
    half, _ = dqn.run_ticks(CONFIG, Probe(), contexts, start(7), 2000, 10)
    twice, _ = dqn.run_ticks(CONFIG, Probe(), contexts, half, 2000, 10)
    assert all(
        np.array_equal(a, b) for a, b in zip(jax.tree.leaves(once.online), jax.tree.leaves(twice.online), strict=True)
    )


def test_without_exploration_every_action_is_the_greedy_one():
    """ε = 0 from episode 1 on; lanes act with the network as it was before the tick's updates."""
    from dataclasses import replace

    config = replace(CONFIG, epsilon_decay=0.0)
    state = start(8, config=config)
    state, _ = dqn.run_ticks(config, Probe(), jnp.asarray([TIME_OUT]), state, 2000, 3)
    network = jax.tree.map(jnp.copy, state.online)
    _, rows = dqn.run_ticks(config, Probe(), jnp.asarray([TIME_OUT]), state, 2000, 1)
    best = jnp.argmax(jax.vmap(network)(rows.transition.state[0]), axis=-1)
    assert (np.asarray(rows.episode[0]) >= 1).all()
    np.testing.assert_array_equal(rows.transition.action[0], best)


def test_one_update_against_plain_arithmetic():
    """The weighted gradient, the target network's step and the new priorities, computed again without the learner."""
    state, _ = dqn.run_ticks(CONFIG, Probe(), jnp.asarray([STAY_OR_STOP]), start(9), 2000, 4)
    _, sample_key = jax.random.split(state.key)
    batch = replays.sample(state.replay, sample_key, CONFIG.batch_size, CONFIG.importance_exponent)
    items = batch.items
    assert float(batch.weights.min()) < 1
    following = np.asarray(jax.vmap(state.online)(items.next_state)).argmax(axis=1)
    values = np.asarray(jax.vmap(state.target)(items.next_state))[np.arange(CONFIG.batch_size), following]
    targets = np.asarray(items.reward) + np.where(np.asarray(items.terminated), 0, 0.5 * values)

    def loss(network):
        chosen = jax.vmap(network)(items.state)[jnp.arange(CONFIG.batch_size), items.action]
        return 0.5 * jnp.mean(batch.weights * (jnp.asarray(targets, jnp.float32) - chosen) ** 2)

    gradient = eqx.filter_grad(loss)(state.online)
    with jax.numpy_dtype_promotion("standard"):
        updates, _ = dqn.make_optimizer(CONFIG).update(gradient, state.optimizer)
    online = eqx.apply_updates(state.online, updates)
    after = jax.jit(dqn.update, static_argnums=0)(CONFIG, state)
    for found, expected in zip(jax.tree.leaves(after.online), jax.tree.leaves(online), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)
    for found, slow, fast in zip(*map(jax.tree.leaves, (after.target, state.target, online)), strict=True):
        np.testing.assert_allclose(found, 0.9 * slow + 0.1 * fast, atol=2e-6)
    chosen = np.asarray(jax.vmap(state.online)(items.state))[np.arange(CONFIG.batch_size), np.asarray(items.action)]
    leaves = np.asarray(after.replay.tree.nodes)[2**after.replay.tree.tree_depth - 1 + np.asarray(batch.indices)]
    np.testing.assert_allclose(leaves, (np.abs(targets - chosen) + 1e-6) ** 0.2, rtol=2e-3)


def test_epsilon_schedule():
    config = DDQNConfig(epsilon_decay=0.995, epsilon_floor=0.1)
    np.testing.assert_allclose(epsilon(config, jnp.asarray([0, 1, 100, 5000])), [1, 0.995, 0.605770, 0.1], rtol=1e-5)


def test_gradients_are_clipped_by_their_global_norm():
    """Adam divides by the gradient's own scale, so look at what reaches it: its first moment after one step."""
    config = DDQNConfig(max_gradient_norm=2.5)
    optimizer = dqn.make_optimizer(config)
    parameters = {"a": jnp.zeros(2), "b": jnp.zeros(1)}
    gradient = {"a": jnp.asarray([30.0, 0.0]), "b": jnp.asarray([40.0])}
    with jax.numpy_dtype_promotion("standard"):
        _, state = optimizer.update(gradient, optimizer.init(parameters))
    first_moment = state[1][0].mu
    np.testing.assert_allclose(first_moment["a"], [0.1 * 1.5, 0.0], rtol=1e-5)
    np.testing.assert_allclose(first_moment["b"], [0.1 * 2.0], rtol=1e-5)


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0.0, 0.0), (0.5, 0.15, 0.45), (1.0, 0.55, 0.8)])
def test_restarts_begin_where_an_episode_has_been(share, low, high):
    """Episodes of TWO_STEPS that begin at 0 visit 0 and 1 once each, those that begin at 1 visit 1 alone.

    A simulation of that urn, with all episodes restarted, begins 0.67 ± 0.04 (one standard deviation) of them at 1.
    """
    config = dataclasses.replace(CONFIG, restart_share=share, minibatches=1)
    chunks = train(config, Probe(), jnp.asarray([TWO_STEPS]), start(5, 400, config), 400, 20)
    rows = [chunk.rows for chunk in chunks]
    first = np.concatenate([r.transition.state[r.time == 0, 0] for r in rows])
    assert set(first.tolist()) <= {0.0, 1.0}
    assert len(first) == 400
    assert low <= (first == 1).mean() <= high


def test_restarts_begin_in_the_restart_states_of_the_environment_moved_to_its_context():
    """No episode that begins at 0 visits state 7: it is a restart state, moved by `restart` from 5."""

    class Elsewhere(Probe):
        restart_states: jax.Array | None = None

        def restart(self, state, context):
            return state + 2

    config = dataclasses.replace(CONFIG, restart_share=0.5, minibatches=1)
    chunks = train(
        config, Elsewhere(restart_states=jnp.asarray([[5.0]])), jnp.asarray([ONE_STEP]), start(5, 400, config), 400, 20
    )
    first = np.concatenate([chunk.rows.transition.state[:, 0] for chunk in chunks])
    assert set(first.tolist()) == {0.0, 7.0}
    # 400 fair coins: within four standard deviations.
    assert abs((first == 7).mean() - 0.5) < 0.1


def test_one_lane_and_many_step_alike():
    """One lane runs without vmap: the same trajectory as the first of two equal lanes would have."""
    arguments = (jax.random.split(jax.random.key(0), 1), jnp.zeros((1, 1)), jnp.zeros(1, jnp.int32), jnp.asarray([2]))
    plain = dqn._over_lanes(Probe().step, *arguments)
    vmapped = jax.vmap(Probe().step)(*arguments)
    jax.tree.map(np.testing.assert_array_equal, plain, vmapped)


def test_learning_only_is_the_same_as_running_and_ends_with_the_last_episode():
    contexts = jnp.asarray([STAY_OR_STOP])
    running, _ = dqn.run_ticks(CONFIG, Probe(), contexts, start(7), 2000, 20)
    quiet = dqn.learn_only(CONFIG, Probe(), contexts, start(7), 2000, 20)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(running.online), jax.tree.leaves(quiet.online), strict=True)
    )
    short = dqn.learn_only(CONFIG, Probe(), jnp.asarray([ONE_STEP]), start(7), 17, 2000)
    assert finished(short, 17)
    assert int(short.replay.size) == 17
