"""The rules of Algorithm 1 by themselves: states are values, so that every situation can be written down."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp._random import root_key, stream
from hipmdp.adaptation import phases, retuning
from hipmdp.adaptation.evaluate import interact
from hipmdp.adaptation.state import Phase
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.presets import adaptation_preset
from tests.systems.corridor import CORRIDOR, TRANSFER
from tests.systems.corridor_runs import adapt, built_in, model

LANES, MANY = TRANSFER.dqn.lanes, TRANSFER.imagined_episodes


def test_a_long_run_tunes_again_whenever_there_are_twice_as_many_episodes():
    config = AdaptationConfig(retunings=2)
    assert [i for i in range(500) if retuning.is_milestone(config, i)] == [10, 20, 40, 80, 160, 320]
    assert not any(retuning.is_milestone(AdaptationConfig(retunings=0), i) for i in range(500))


@pytest.mark.parametrize(
    ("episode", "tunings", "error", "due"),
    [
        (0, 0, 0.0, True),
        (1, 1, 0.21, True),
        (1, 1, 0.19, False),
        (5, 3, 0.21, False),
        (9, 2, 0.21, True),
        (10, 1, 0.0, True),
        (11, 1, 9.0, False),
    ],
)
def test_when_a_tuning_is_due(episode, tunings, error, due):
    """The held-out error is 0.1: twice that is inaccurate; two retunings at most in the first ten episodes."""
    config = AdaptationConfig(inaccurate_factor=2.0, retunings=2)
    assert retuning.is_due(config, episode=episode, tunings=tunings, error=error, expected_error=0.1) is due


def test_a_return_far_below_what_was_imagined_is_a_reason_to_tune():
    config = AdaptationConfig(retunings=1)
    facts = {"episode": 1, "error": 0.1, "expected_error": 0.1}
    assert not retuning.is_due(config, tunings=1, **facts)
    assert retuning.is_due(config, tunings=1, surprised=True, **facts)
    assert not retuning.is_due(config, tunings=2, surprised=True, **facts)


def test_a_dqn_that_keeps_its_replay_needs_room_for_all_tunings():
    few = {"imagined_episodes": 100, "retunings": 2, "dqn": DDQNConfig(lanes=10)}
    # After each of the first ten episodes, and after the eleventh, twenty-first and forty-first, ten more.
    assert retuning.most_imagined(AdaptationConfig(**few), 41) == 100 + (10 + 3 + 1) * 10
    kept = AdaptationConfig(**few, clear_replay_on_retune=False)
    assert retuning.most_imagined(kept, 41) == (3 + 3) * 100 + (10 + 3 + 1) * 10
    always = AdaptationConfig(**few, revert_to_better_policy=False)
    assert retuning.most_imagined(always, 41) == 100 + (41 + 1) * 10


@pytest.mark.parametrize(
    ("episodes", "config", "expected"),
    [
        (11, TRANSFER, 1),
        (11, replace(TRANSFER, revert_to_better_policy=False), 2),
        (10, TRANSFER, 2),
    ],
)
def test_real_returns_decide_after_the_tenth_episode(episodes, config, expected):
    """The second policy has failed once, the first has always been good."""
    method = built_in("embedded", adaptation=TRANSFER)
    state = replace(
        method.initial(root_key(0), model("embedded")),
        tunings=2,
        policy_index=(0, *[1] * (episodes - 2), 2),
        learning_returns=(0.0, *[8.0] * (episodes - 2), -20.0),
    )
    assert phases.select_policy(state, config) == expected


def test_the_paper_never_reverts():
    config = adaptation_preset("paper", hipmdp.make("hiv").specification)
    assert not config.revert_to_better_policy


@pytest.fixture(scope="module")
def after_first_episode():
    """(method, state) after one episode and what is learned from it."""
    method = built_in("embedded", adaptation=replace(TRANSFER, inaccurate_factor=0.0, retunings=1))
    state = method.start(root_key(5), model("embedded"), CORRIDOR.specification)
    return method, _episode(method, state, 0)


def _episode(method, state, number):
    """The state after one more real episode, before anything is learned from it."""
    with CORRIDOR.interaction(method.setting.theta) as system:
        state, _ = interact(method, state, system, CORRIDOR.horizon, stream(root_key(6), "adaptation/episode", number))
    return state


def test_a_dqn_that_finds_a_better_policy_keeps_its_network(after_first_episode):
    """The best policy of the first tuning is replaced by one that walks the wrong way, worth −20 in the tuned T̂."""
    method, state = after_first_episode
    state, _ = method.after_episode(root_key(7), state)
    wrong = adapt("embedded", -1.0, episodes=1).network
    state = _episode(method, replace(state, learner=state.learner._replace(best=wrong)), 1)
    state, info = method.after_episode(root_key(8), state)
    assert info["return_to_beat"] == -20.0
    assert info["imagined_return"] > 6
    assert not info["restarted"]
    assert info["imagined_episodes"] == MANY + LANES
    assert info["replay_rows_before"] == 0
    assert len(state.previous_policies) == 1
    np.testing.assert_array_equal(state.previous_policies[0].layers[0].weight, wrong.layers[0].weight)


def test_a_new_dqn_knows_nothing_and_keeps_the_best_policy(after_first_episode):
    method, state = after_first_episode
    state, _ = method.after_episode(root_key(7), state)
    fresh = phases.restart_learner(root_key(9), state, method.config)
    assert int(fresh.learner.dqn.started) == int(fresh.learner.dqn.replay.size) == 0
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(fresh.learner.dqn.optimizer))
    assert fresh.learner.best is state.learner.best
    assert (fresh.imagined_before, fresh.imagined_target) == (state.imagined_before + state.imagined_target, 0)
    weights = [s.learner.dqn.online.layers[0].weight for s in (fresh, state)]
    assert not np.array_equal(*weights)


def test_a_phase_does_not_change_the_state_it_is_given(after_first_episode):
    """States are values: the same state gives the same result again."""
    method, state = after_first_episode
    (first, info), (second, again) = (method.after_episode(root_key(7), state) for _ in range(2))
    assert info["imagined_return"] == again["imagined_return"]
    jax.tree.map(np.testing.assert_array_equal, first.learner.best, second.learner.best)
    assert state.phase is Phase.INTERACT
    stored = phases.store_episode(state)
    assert len(state.instance_data) == 0 < len(stored.instance_data) == len(state.steps)
    assert len(stored.steps) == 0 < len(state.steps)


@pytest.mark.parametrize(("factor", "kept"), [(1e6, True), (1e-6, False)])
def test_weights_are_tuned_only_where_the_model_is_inaccurate(factor, kept):
    """With the w_b that fits it best T̂ is accurate by the first measure, and not by the second."""
    config = replace(TRANSFER, inaccurate_factor=factor, keep_accurate_weights=True)
    method = built_in("embedded", adaptation=config)
    state = _episode(method, method.start(root_key(5), model("embedded"), CORRIDOR.specification), 0)
    state, info = method.after_episode(root_key(7), state)
    same = np.array_equal(state.dynamics.posterior.mean, model("embedded").dynamics.posterior.mean)
    assert same is kept
    assert info["tuned"]
    assert np.isfinite(info["error_after_inference"])


def test_the_doubt_about_w_can_be_the_belief_s():
    """At temperature None contexts differ in w_b as the belief does; at 0 all have the fitted one."""
    latents = {}
    for temperature in (None, 0.0):
        method = built_in("embedded", adaptation=replace(TRANSFER, latent_temperature=temperature))
        state = _episode(method, method.start(root_key(5), model("embedded"), CORRIDOR.specification), 0)
        state, _ = method.after_episode(root_key(7), state)
        latents[temperature] = np.asarray(method.imagined(state).contexts.latent)
    assert np.ptp(latents[0.0], axis=0).max() == 0
    assert np.ptp(latents[None], axis=0).min() > 0
