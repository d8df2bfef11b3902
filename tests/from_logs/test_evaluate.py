"""What a policy is worth on a system of which there is only a log."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp.control.policy import Constant, Policy, function_policy
from hipmdp.from_logs.evaluation.estimate import NO_ESTIMATE, Estimate, LoggedEpisodes, estimate_of, logged_episodes
from hipmdp.from_logs.evaluation.fitted_q import fitted_q
from hipmdp.from_logs.evaluation.importance import behaviour, importance_estimates
from hipmdp.from_logs.evaluation.verdict import verdict
from tests.dynamics.toys import random_batch
from tests.systems.corridor import CORRIDOR
from tests.systems.corridor_runs import model

LEFT, RIGHT = 0, 1


def log(direction=1.0, episodes=6):
    return random_batch(CORRIDOR, ({"direction": direction},), episodes=episodes, seed=3)


def right(specification):
    return Policy(specification, Constant(RIGHT))


# One estimator at a time.


def episodes(action, reward, *, ends=True):
    """Episodes in a specification of one state, which is always zero."""
    action, reward = np.asarray(action), np.asarray(reward, np.float64)
    state = np.zeros((*action.shape, 1))
    terminated = np.zeros(action.shape, bool)
    terminated[:, -1] = ends
    whole = np.ones(len(action), bool)
    return LoggedEpisodes(state, state, action, reward, terminated, np.ones(action.shape, bool), whole)


def test_a_log_as_episodes():
    specification = replace(CORRIDOR.specification, horizon=3)
    columns = {
        "state": np.arange(5.0)[:, None], "next_state": np.arange(1.0, 6)[:, None], "action": [0, 1, 0, 1, 1],
        "reward": [1, 2, 4, 8, 16], "terminated": [0, 0, 0, 0, 1], "truncated": [0, 0, 0, 0, 0],
        "instance": [7] * 5, "episode": [2, 2, 2, 5, 5], "time": [0, 1, 2, 0, 1],
    }  # fmt: skip
    rows = np.asarray([4, 0, 2, 3, 1])
    shuffled = {name: np.asarray(column)[rows] for name, column in columns.items()}
    found = logged_episodes(hipmdp.Transitions(specification, shuffled))
    assert found.valid.tolist() == [[True, True, True], [True, True, False]]
    assert found.first_states[:, 0].tolist() == [0, 3]
    assert found.returns(0.5).tolist() == [1 + 1 + 1, 8 + 8]
    # The first lasted as long as an episode may, the second ended.
    assert found.complete.tolist() == [True, True]
    short = {name: column[:2] for name, column in columns.items()}
    assert logged_episodes(hipmdp.Transitions(specification, short)).complete.tolist() == [False]


def test_importance_sampling_by_hand():
    """One step, actions at random: of four episodes the two that the policy would have lived count, 10 and 20."""
    logged = episodes([[0], [1], [1], [0]], [[1.0], [10.0], [20.0], [3.0]])
    found = importance_estimates(
        logged, right(CORRIDOR.specification), np.zeros((4, 1, 2)), discount=0.9, key=jax.random.key(0)
    )
    assert found.weighted.value == pytest.approx(15)
    assert found.effective_episodes == pytest.approx(2)
    assert 10 <= found.weighted.low < found.weighted.high <= 20
    # With the right Q̂ nothing is left to weigh: the mean of V̂ over all first states.
    values = np.zeros((4, 1, 2))
    values[:, 0, RIGHT] = [11.0, 10.0, 20.0, 13.0]
    robust = importance_estimates(
        logged, right(CORRIDOR.specification), values, discount=0.9, key=jax.random.key(0)
    ).doubly_robust
    assert robust.value == pytest.approx(13.5)


def test_a_policy_that_nobody_followed_has_no_importance_estimate():
    logged = episodes([[0, 0], [0, 1]], [[1.0, 1.0], [1.0, 1.0]])
    found = importance_estimates(
        logged, right(CORRIDOR.specification), np.zeros((2, 2, 2)), discount=1.0, key=jax.random.key(0)
    )
    assert found.weighted is NO_ESTIMATE
    assert found.effective_episodes == 0


def test_the_logging_policy_is_found():
    """Right with probability 0.9 where x > 0, with 0.1 elsewhere."""
    rng = np.random.default_rng(0)
    states = rng.choice([-1.0, 1.0], size=(4000, 1))
    actions = (rng.random(4000) < np.where(states[:, 0] > 0, 0.9, 0.1)).astype(int)
    chances = behaviour(states, actions, 2)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert chances[states[:, 0] > 0, RIGHT].mean() == pytest.approx(0.9, abs=0.02)
    assert chances[states[:, 0] < 0, RIGHT].mean() == pytest.approx(0.1, abs=0.02)


def test_fitted_q_of_a_chain_by_hand():
    """Two steps that pay 1 for right and nothing for left: 1 + γ; a step at the time limit has nothing behind it."""
    rng = np.random.default_rng(1)
    action = rng.integers(2, size=(40, 2))
    for ends in (True, False):
        specification = replace(CORRIDOR.specification, horizon=2)
        found = fitted_q(episodes(action, action, ends=ends), right(specification), discount=0.5, key=jax.random.key(0))
        assert found.value.value == pytest.approx(1.5, abs=0.05)
        assert found.value.low <= found.value.value <= found.value.high
        np.testing.assert_allclose(found.values[:, 1].mean(axis=0), [0, 1], atol=0.05)


def test_estimates_and_verdicts():
    assert estimate_of(np.arange(101.0)) == pytest.approx(Estimate(50, 5, 95))
    known = {"complete": 5, "unsupported": 0.0, "disagreement": "", "value": Estimate(1, 0, 2)}
    known |= {"weighted": NO_ESTIMATE, "effective": 0.0}
    assert verdict(np.linspace(1, 2), **known) == ("better", ())
    assert verdict(np.linspace(-2, -1), **known) == ("worse", ())
    assert "holds zero" in verdict(np.linspace(-1, 1), **known).reasons[0]
    for change, reason in (
        ({"complete": 1}, "too little data"),
        ({"unsupported": 0.5}, "50% of what it would do"),
        ({"disagreement": "the model is wrong"}, "the model is wrong"),
        ({"weighted": Estimate(5, 4, 6), "effective": 4.0}, "importance sampling disagree"),
    ):
        told = verdict(np.linspace(1, 2), **{**known, **change})
        assert told.word == "cannot tell"
        assert reason in told.reasons[0]


# All of it.


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_the_right_way_is_better_than_random_and_the_wrong_one_worse(direction):
    """−1 − γ + 10 γ² = 6.2 for the right way; the wrong one costs 1 in each of 20 steps: −8.78."""
    good, bad = ("right", "left") if direction > 0 else ("left", "right")
    logged = log(direction)
    found = hipmdp.evaluate(model("embedded"), logged, f"constant:{good}")
    assert found.value.value == pytest.approx(6.2, abs=0.3)
    assert found.undiscounted.value == pytest.approx(8, abs=0.3)
    assert found.value.low <= 6.2 <= found.value.high
    earned = logged_episodes(logged).returns(0.9).mean()
    assert found.logged.value == pytest.approx(earned)
    assert found.verdict == "better"
    worse = hipmdp.evaluate(model("embedded"), logged, f"constant:{bad}")
    assert worse.value.value == pytest.approx(-(1 - 0.9**20) / 0.1, abs=0.5)
    assert worse.value.high < found.value.low


def test_policies_by_name(tmp_path, monkeypatch):
    known, logged = model("amortised"), log(-1.0)
    specification = known.specification
    done = hipmdp.evaluate(known, logged, "logged")
    assert done.value == done.logged
    assert done.verdict == "what was done"
    asked = hipmdp.evaluate(known, logged, "amortised")
    assert asked.value.value == pytest.approx(6.2, abs=0.4)
    same = [
        hipmdp.evaluate(known, logged, policy).value
        for policy in (Policy(specification, Constant(LEFT)), lambda state: "left", "constant:left")
    ]
    assert same[0] == same[1] == same[2]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evaluated.py").write_text("def go(state):\n    return 0 if state[0] < 5 else 1\n")
    assert hipmdp.evaluate(known, logged, "evaluated:go").value == same[0]


def test_bad_policies_are_one_sentence(tmp_path):
    known, logged = model("embedded"), log()
    known.save(tmp_path / "model.hipmdp")
    for policy, message in (
        ("constant:up", "Unknown action of a constant policy 'up'"),
        ("best", "There is no policy 'best': say amortised"),
        (str(tmp_path), "holds no policy of one system"),
        ("amortised", "needs a policy Q"),
        (3, "A policy must be a Policy"),
        (Policy(replace(CORRIDOR.specification, family="other"), Constant(0)), "of another family"),
    ):
        with pytest.raises(ValueError, match=message):
            hipmdp.evaluate(known, logged, policy)
    with pytest.raises(ValueError, match="at least 10 transitions"):
        hipmdp.evaluate(known, logged.select(np.arange(3)), "logged")


def test_a_function_must_return_an_action():
    policy = function_policy(lambda state: 2, CORRIDOR.specification)
    with pytest.raises(ValueError, match="must return an action"):
        policy([0.0])
