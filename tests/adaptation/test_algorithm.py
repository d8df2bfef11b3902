"""Algorithm 1 end to end on a corridor whose actions may be swapped."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp.adaptation.method import Setting
from hipmdp.adaptation.methods import METHODS, Embedded
from hipmdp.dynamics.belief import new_filter
from hipmdp.dynamics.smooth import smoothed
from tests.dynamics.toys import random_batch
from tests.systems.corridor import AMORTISE, CORRIDOR, DYNAMICS, TRANSFER
from tests.systems.corridor_runs import adapt, batch, model

LANES, MANY = TRANSFER.dqn.lanes, TRANSFER.imagined_episodes
RETUNED = replace(TRANSFER, inaccurate_factor=0.0, retunings=1)


@pytest.fixture(scope="module")
def runs():
    return {sign: adapt("embedded", sign) for sign in (1.0, -1.0)}


def test_one_episode_is_enough_to_know_which_way_is_right(runs):
    """From the middle three steps of 0.4 lead past 1: −1 −1 + 10 = 8, the best there is (9 for starts above 0.2)."""
    for sign, run in runs.items():
        assert run.returns.tolist() == [8.0, 8.0]
        assert run.success.tolist() == [1.0, 1.0]
        assert run.policy(np.zeros(1)) == (1 if sign > 0 else 0)
    assert np.linalg.norm(runs[1.0].latent - runs[-1.0].latent) > 0.3


def test_the_record(runs):
    run = runs[-1.0]
    assert run.transitions.episode_count == 2
    sums = run.transitions.episode_returns()
    np.testing.assert_allclose(run.learning_returns, [sums[(0, i)] for i in range(2)], rtol=1e-6)
    assert len(run.latents) == len(run.trace) == 2
    assert run.model_error[1] < run.model_error[0]
    assert (run.seconds > 0).all()
    np.testing.assert_allclose(np.asarray(run.evaluation.undiscounted_return).mean(), run.returns[-1])


def test_the_trace_of_two_episodes(runs):
    """The first is random and T̂ is tuned after it; the model is accurate in the second, and little is imagined more."""
    first, second = runs[1.0].trace
    assert (first["policy"], first["tuned"], first["imagined_episodes"]) == (0, True, MANY + LANES)
    assert (second["policy"], second["tuned"], second["imagined_episodes"]) == (1, False, LANES)
    assert first["replay_rows_before"] == 0
    assert second["replay_rows_before"] > 0
    assert 7 <= first["imagined_return"] <= second["imagined_return"] <= 9


def test_imagined_episodes_may_begin_where_the_batch_was():
    """Methods that learned from the batch know its states; scratch does not, whatever the settings say."""
    settings = {"episodes": 1, "config": replace(TRANSFER, restart_known=True, imagined_episodes=2)}
    visited = {m: adapt(m, 1.0, **settings).imagination.environment.restart_states for m in ("embedded", "scratch")}
    assert visited["scratch"] is None
    np.testing.assert_array_equal(visited["embedded"], model("embedded").support.state)


@pytest.mark.parametrize("method", ["linear", "scratch"])
def test_the_other_methods_go_through_the_same_procedure(method):
    run = adapt(method, -1.0)
    assert run.method == method
    assert run.returns[1] == 8.0
    assert (run.latents == []) is (method == "scratch")


def test_the_average_model_does_not_know_the_way():
    """Half of its data say that right is right: before it is tuned its error is that of not knowing."""
    assert adapt("average", -1.0, episodes=1).model_error[0] > 0.8


def test_given_model_and_seed_decide_everything(runs):
    before = jax.tree.map(np.array, model("embedded").dynamics)
    again = adapt("embedded", -1.0)
    jax.tree.map(np.testing.assert_array_equal, before, model("embedded").dynamics)
    jax.tree.map(np.testing.assert_array_equal, again.network, runs[-1.0].network)
    other = adapt("embedded", -1.0, seed=2, episodes=1)
    assert not np.array_equal(other.transitions.action[:10], again.transitions.action[:10])


def test_true_parts_can_be_swapped_in():
    true = hipmdp.pretrain(batch(), config=DYNAMICS, latents="true", quiet=True, policy=False)
    assert true.oracle.names == ("direction",)
    run = adapt("embedded", -1.0, model=true, episodes=1)
    assert run.returns[0] == 8.0
    np.testing.assert_allclose(run.latent, [-1.0])
    assert adapt("average", -1.0, episodes=1, imagine_in="environment").returns[0] == 8.0
    assert adapt("embedded", -1.0, episodes=1, reward="true").returns[0] == 8.0


def test_a_learned_reward_is_as_good_as_the_given_one():
    assert adapt("embedded", 1.0, episodes=1, reward="learned").returns[0] == 8.0


def test_with_the_batch_the_family_is_updated():
    run = adapt("embedded", 1.0, episodes=1, batch=batch())
    assert run.model.dynamics.latents.shape == (3, 2)
    assert run.model.dynamics.config == model("embedded").dynamics.config
    with pytest.raises(ValueError, match="The model was trained on 2 instances, the batch holds 1"):
        adapt("embedded", 1.0, episodes=1, batch=batch().of_instance(0))


def test_without_validation_the_last_policy_is_used():
    run = adapt("embedded", 1.0, episodes=1, config=replace(TRANSFER, validation_episodes=0))
    assert run.returns[0] == 8.0


def test_the_model_s_policy_controls_the_first_episode():
    """The one instance that T̂ knows has its goal three or four steps to the right: 10 − 2 or 10 − 3."""
    known = hipmdp.pretrain(batch().of_instance(0), "average", config=DYNAMICS, quiet=True, policy=AMORTISE)
    settings = {"model": known, "episodes": 1, "config": replace(TRANSFER, first_policy=True)}
    run = adapt("average", 1.0, **settings)
    assert run.learning_returns[0] in (7.0, 8.0)
    # The same policy with swapped actions walks the wrong way, for all of its 20 steps.
    assert adapt("average", -1.0, **settings).learning_returns[0] == -20.0


def test_under_the_belief_the_first_episode_finds_out_whom_it_controls():
    """One step in the wrong direction tells: 10 − 2 − 2 at worst."""
    known = model("amortised")
    for sign in (1.0, -1.0):
        config = replace(TRANSFER, first_policy=True, steps_ahead=1)
        run = adapt("embedded", sign, model=known, episodes=2, config=config)
        assert run.learning_returns[0] >= 5
        assert run.returns.tolist() == [8.0, 8.0]


def test_after_an_episode_the_belief_is_worked_out_anew_from_all_transitions():
    """The same as `smoothed` says of them; only the draws of W, which say how unsure it is, are others."""
    known = model("amortised")
    config = replace(TRANSFER, first_policy=True, latent_temperature=None)
    run = adapt("embedded", -1.0, model=known, episodes=2, config=config)
    anew = smoothed(new_filter(known.dynamics, jax.random.key(7)), run.transitions)
    assert run.belief.rows == anew.rows == len(run.transitions)
    np.testing.assert_allclose(run.belief.best, anew.best, atol=0.02)
    np.testing.assert_allclose(run.belief.spread, anew.spread, rtol=0.5)


def test_a_dqn_that_finds_nothing_better_in_a_tuned_model_gives_way_to_a_new_one():
    """A DQN whose learning rate is zero never finds anything: its policy is worth in the end what it was."""
    still = replace(RETUNED, imagined_episodes=8, dqn=replace(TRANSFER.dqn, learning_rate=0.0))
    first, second = adapt("embedded", 1.0, config=still).trace
    assert not first["restarted"]
    assert first["return_to_beat"] is None
    assert second["tuned"]
    assert second["restarted"]
    assert second["imagined_episodes"] == 2 * (8 + LANES)
    assert second["replay_rows_before"] == 0
    assert second["imagined_return"] >= second["return_to_beat"]


def test_a_long_run_tunes_an_accurate_model_too_at_the_eleventh_episode():
    """Between the tenth episode and the next tuning nothing is imagined, so that real returns can judge the policy."""
    run = adapt("embedded", 1.0, episodes=12, config=replace(TRANSFER, inaccurate_factor=1e9, imagined_episodes=40))
    assert [i for i, info in enumerate(run.trace) if info["tuned"]] == [0, 10]
    imagined = [info.get("imagined_episodes", 0) for info in run.trace]
    assert imagined[:10] == [40 + LANES, *[LANES] * 9]
    assert imagined[10] in (40 + LANES, 2 * (40 + LANES))
    assert imagined[11] == 0
    assert [info["policy"] for info in run.trace[:11]] == [0, *[1] * 10]


def test_retuning_happens_when_the_model_is_wrong_and_not_too_often():
    never, always = replace(TRANSFER, inaccurate_factor=1e9, imagined_episodes=8), replace(RETUNED, imagined_episodes=8)
    tuned = [[info["tuned"] for info in adapt("embedded", 1.0, episodes=4, config=c).trace] for c in (never, always)]
    assert tuned == [[True, False, False, False], [True, True, False, False]]


class GreedyEmbedded(Embedded):
    """The embedded method without exploration in real episodes."""

    name = "greedy_embedded"
    explores = False


def test_a_built_in_method_can_be_subclassed():
    quick, method = replace(TRANSFER, imagined_episodes=8), GreedyEmbedded(Setting())
    theta = {"direction": 1.0}
    run = hipmdp.learn_policy(model("embedded"), CORRIDOR, theta, 2, method=method, config=quick, quiet=True)
    assert run.method == "greedy_embedded"
    # An untrained greedy policy takes the same action in every step, or nearly: a random one does not.
    actions = run.transitions.action[run.transitions.episode == 0]
    assert np.mean(actions == np.bincount(actions).argmax()) > 0.8


def test_bad_calls_get_one_clear_sentence():
    known = model("embedded")
    grid = random_batch(hipmdp.make("grid"), [0], episodes=1)
    for call, message in (
        (lambda: adapt("embedded", 1.0, reward="gven"), "Did you mean 'given'"),
        (lambda: adapt("embedded", 1.0, imagine_in="reality"), "Unknown value of imagine_in 'reality'"),
        (lambda: adapt("model_free", 1.0, imagine_in="environment"), "is for methods that imagine"),
        (lambda: adapt("embedded", 1.0, batch=grid), "The batch is of 'grid', not of 'corridor'"),
        (lambda: adapt("embedded", 1.0, out=__file__), "Cannot write to"),
        (lambda: adapt("embedded", 1.0, model=replace(known, reward_head=None), reward="learned"), "reward head"),
        (lambda: adapt("amortised", 1.0, model=known), "needs a policy Q"),
        (lambda: adapt("linear", 1.0, model=known), "cannot be used as 'linear'"),
        (lambda: hipmdp.pretrain(batch(), "average", latents="true"), "needs a method with latents"),
        (lambda: hipmdp.pretrain(batch(), "blind"), "use train_blind"),
        (lambda: hipmdp.learn_policy(None, CORRIDOR), "needs a hipmdp.Model, or a method of your own"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_no_key_is_used_twice():
    """One small run per method with JAX's detector of reused keys (it does not see fold_in/split coincidences)."""
    quick = replace(TRANSFER, imagined_episodes=8, first_policy=True, inaccurate_factor=0.0)
    prepared = {method: model(method) for method in METHODS}
    with jax.debug_key_reuse(True):
        for method in METHODS:
            run = adapt(method, 1.0, model=prepared[method], config=quick)
            assert np.isfinite(run.returns).all()
