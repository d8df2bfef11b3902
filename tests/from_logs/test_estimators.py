"""The parts of `evaluate`, by hand: values, fitted Q, importance sampling, what a log puts right, verdicts."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hipmdp
from hipmdp.control.policy import Constant, Policy
from hipmdp.from_logs.evaluation.estimate import (
    NO_ESTIMATE,
    NOT_KNOWN,
    Estimate,
    LoggedEpisodes,
    estimate_of,
    in_order,
    logged_episodes,
    logged_value,
)
from hipmdp.from_logs.evaluation.fitted_q import FittedQ, fitted_q
from hipmdp.from_logs.evaluation.importance import behaviour, importance_estimates
from hipmdp.from_logs.evaluation.misfit import _shape as misfit_shape
from hipmdp.from_logs.evaluation.parts import left_out, likeness, parts_of
from hipmdp.from_logs.evaluation.process import fit_ends, fit_process
from hipmdp.from_logs.evaluation.recommended import longer
from hipmdp.from_logs.evaluation.system_reward import OTHER_KIND, _joined, shift_draws
from hipmdp.from_logs.evaluation.verdict import Evidence, verdict
from tests.fuzz.effort import examples
from tests.systems.corridor import CORRIDOR

LEFT, RIGHT = 0, 1
KEY = jax.random.key(0)


def right(horizon=20):
    return Policy(replace(CORRIDOR.specification, horizon=horizon), Constant(RIGHT))


def episodes(action, reward, *, ends=True, states=None):
    """Episodes in a specification of one state, which is zero unless it is given."""
    action, reward = np.asarray(action), np.asarray(reward, np.float64)
    state = np.zeros((*action.shape, 1)) if states is None else np.asarray(states, np.float64)[..., None]
    terminated = np.zeros(action.shape, bool)
    terminated[:, -1] = ends
    whole = np.ones(len(action), bool)
    after = np.concatenate([state[:, 1:], state[:, -1:]], axis=1)
    return LoggedEpisodes(state, after, action, reward, terminated, np.ones(action.shape, bool), whole)


def test_a_log_as_episodes():
    specification = replace(CORRIDOR.specification, horizon=3)
    columns = {
        "state": np.arange(7.0)[:, None], "next_state": np.arange(1.0, 8)[:, None], "action": [0, 1, 0, 1, 1, 1, 1],
        "reward": [1, 2, 4, 8, 16, 32, 64], "terminated": [0, 0, 0, 0, 0, 1, 0], "truncated": [0] * 7,
        "instance": [7] * 7, "episode": [2, 2, 2, 2, 5, 5, 9], "time": [0, 1, 2, 3, 0, 1, 0],
    }  # fmt: skip
    rows = np.asarray([4, 0, 6, 2, 3, 5, 1])
    log = hipmdp.Transitions(specification, {name: np.asarray(column)[rows] for name, column in columns.items()})
    found = logged_episodes(in_order(log))
    # The first went on beyond the time limit, the second ended, the recording of the third stopped.
    assert found.valid.tolist() == [[True, True, True], [True, True, False], [True, False, False]]
    assert found.complete.tolist() == [True, True, False]
    assert found.first_states[:, 0].tolist() == [0, 4, 6]
    assert found.returns(0.5).tolist() == [1 + 1 + 1, 16 + 16, 64]
    assert parts_of(found).tolist() == [0, 0, 1, 2, 3, 4]


def test_what_was_done_is_a_mean_by_students_t():
    logged = episodes(np.zeros((3, 1), int), [[1.0], [2.0], [3.0]])
    both, draws = logged_value(logged, 0.5, (9.0, 9.0), key=KEY)
    # 2 ± 2.92 · 1 / √3.
    assert both.discounted == pytest.approx(Estimate(2, 2 - 1.686, 2 + 1.686), abs=0.3)
    assert draws.mean() == pytest.approx(2, abs=0.2)
    one, _ = logged_value(logged.select(np.asarray([2])), 0.5, (1.0, 2.0), key=KEY)
    assert one.discounted == pytest.approx(Estimate(3, 3 - 1.645, 3 + 1.645), abs=0.3)
    assert one.undiscounted.high - one.undiscounted.low == pytest.approx(2 * 3.29, abs=0.6)
    none = logged._replace(complete=np.zeros(3, bool))
    assert logged_value(none, 0.5, (1.0, 1.0), key=KEY)[0] is NOT_KNOWN


# Fitted Q.


def test_fitted_q_of_a_chain_by_hand():
    """Two steps that pay 1 for right and nothing for left: 1 + γ; a step at the time limit has nothing behind it."""
    action = np.random.default_rng(1).integers(2, size=(40, 2))
    for ends in (True, False):
        # The time is in the state, as an average over both steps would mix them.
        logged = episodes(action, action, ends=ends, states=np.tile([0.0, 1.0], (40, 1)))
        found = fitted_q(logged, right(horizon=2), discount=0.5, key=KEY)
        assert found.value.discounted == pytest.approx(Estimate(1.5, 1.5, 1.5))
        assert found.value.undiscounted.value == pytest.approx(2)
        np.testing.assert_allclose(found.at_policy, np.tile([1.5, 1], (40, 1)))
        np.testing.assert_allclose(found.at_logged, action + np.asarray([0.5, 0.0]))


def test_fitted_q_averages_over_what_may_come():
    """From one state, right leads to 0 or to 1 with the same probability: its value is ½ and not what came last."""
    rng = np.random.default_rng(0)
    paid = np.stack([np.zeros(400), rng.integers(2, size=400)], axis=1)
    found = fitted_q(episodes(np.ones((400, 2), int), paid), right(horizon=2), discount=1.0, key=KEY)
    assert 0.1 < found.value.discounted.value < 0.9
    assert 0 < found.value.discounted.low < found.value.discounted.high < 1


@settings(max_examples=examples(25), deadline=None, database=None)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-20, 1.0, 1e20]), discount=st.sampled_from([0.5, 1.0]))
def test_fitted_q_stays_within_what_can_be_earned(seed, scale, discount):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 5)), int(rng.integers(1, 8)))
    reward = scale * rng.normal(size=shape)
    logged = episodes(rng.integers(2, size=shape), reward, ends=bool(rng.integers(2)), states=rng.normal(size=shape))
    found = fitted_q(logged, right(horizon=shape[1]), discount, key=KEY).value.discounted
    most = np.sum(discount ** np.arange(shape[1]))
    rounding = 1e-6 * scale
    assert min(reward.min(), 0) * most - rounding <= found.low
    assert found.high <= max(reward.max(), 0) * most + rounding


# Importance sampling.


def nothing_fitted(logged, at_policy=0.0, at_logged=0.0):
    exact = NOT_KNOWN._replace(discounted=Estimate(7.0, 7.0, 7.0))
    return FittedQ(exact, np.full(logged.action.shape, at_policy), np.full(logged.action.shape, at_logged))


def test_importance_sampling_by_hand():
    """One step, actions at random: of four episodes the two that the policy would have made count, 10 and 20."""
    logged = episodes([[0], [1], [1], [0]], [[1.0], [10.0], [20.0], [3.0]])
    found = importance_estimates(logged, right(), nothing_fitted(logged), discount=0.9, key=KEY)
    assert found.weighted.discounted.value == pytest.approx(15)
    assert found.effective_episodes == pytest.approx(2)
    assert 10 <= found.weighted.discounted.low < found.weighted.discounted.high <= 20
    # With the right Q̂ nothing is left to weigh: the mean of V̂ over all first states.
    fitted = nothing_fitted(logged)._replace(
        at_policy=np.asarray([[11.0], [10.0], [20.0], [13.0]]), at_logged=np.asarray([[0.0], [10.0], [20.0], [0.0]])
    )
    robust = importance_estimates(logged, right(), fitted, discount=0.9, key=KEY).doubly_robust
    assert robust.discounted.value == pytest.approx(13.5)


def test_where_weights_end_the_fitted_values_go_on():
    """Nobody went right twice: r₀ + γ V̂(s₁) of the one that went right once, 5 + 0.5 · 8."""
    logged = episodes([[1, 0], [1, 0], [0, 1]], [[5.0, 1.0], [5.0, 1.0], [2.0, 1.0]])
    found = importance_estimates(logged, right(), nothing_fitted(logged, at_policy=8.0, at_logged=8.0), 0.5, key=KEY)
    assert found.weighted is NOT_KNOWN
    assert found.effective_episodes == 0
    # V̂ + (r − Q̂) at the first step, then V̂ where it led.
    assert found.doubly_robust.discounted.value == pytest.approx(8 + (5 - 8) + 0.5 * 8)
    # Nobody went right at all: V̂ alone.
    other = episodes([[0, 0], [0, 1]], [[1.0, 1.0], [1.0, 1.0]])
    alone = importance_estimates(other, right(), nothing_fitted(other, at_policy=8.0), 0.5, key=KEY)
    assert alone.doubly_robust.discounted == pytest.approx(Estimate(8, 8, 8))


def test_the_logging_policy_is_found():
    """Right with probability 0.9 where x > 0, with 0.1 elsewhere."""
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], size=(4000, 1))
    actions = (rng.random(4000) < np.where(x[:, 0] > 0, 0.9, 0.1)).astype(int)
    chances = behaviour(np.concatenate([np.ones((4000, 1)), x], axis=1), actions, 2)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert chances[x[:, 0] > 0, RIGHT].mean() == pytest.approx(0.9, abs=0.02)
    assert chances[x[:, 0] < 0, RIGHT].mean() == pytest.approx(0.1, abs=0.02)


# What the log of a system puts right.


def test_a_part_is_told_from_the_others():
    """As the conditional of the normal distribution says, part by part."""
    rng = np.random.default_rng(0)
    covariance = likeness(rng.normal(size=(9, 2))) + 0.1 * np.eye(9)
    values, part = rng.normal(size=(9, 2)), np.repeat([4, 0, 7], 3)
    errors, variances = left_out(covariance, values, part)
    for p in (4, 0, 7):
        mine, rest = part == p, part != p
        gain = covariance[np.ix_(mine, rest)] @ np.linalg.inv(covariance[np.ix_(rest, rest)])
        np.testing.assert_allclose(errors[mine], values[mine] - gain @ values[rest], rtol=1e-6)
        expected = np.diag(covariance[np.ix_(mine, mine)] - gain @ covariance[np.ix_(rest, mine)])
        np.testing.assert_allclose(variances[mine], expected, rtol=1e-6)


def test_what_is_missed_is_a_function_where_it_comes_again_and_chance_where_not():
    rng = np.random.default_rng(0)
    places, part = np.repeat(rng.uniform(-2, 2, (60, 4)), 2, axis=0), np.arange(120) % 5
    wave, chance = np.sin(places[:, :1]), rng.normal(size=(120, 1))
    _, noise, variance = misfit_shape(places, wave, part, np.ones(1))
    assert noise == 0.03
    assert variance[0] == pytest.approx(0.5, rel=0.5)
    # The same place twice, and another error: chance.
    _, noise, variance = misfit_shape(places, chance, part, np.ones(1))
    assert noise >= 3
    assert variance[0] * (1 + noise) == pytest.approx(1, rel=0.3)


@pytest.fixture(scope="module")
def processes():
    """Rewards x² of steps from 0 to 1, of which the family says twice as much; ends pay 10, the family says 8."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (100, 1))
    going = fit_process(x, x[:, 0] ** 2, 2 * x[:, 0] ** 2, 1.0, part=np.arange(100) // 20)
    ending = fit_ends(np.asarray([[1.0], [1.1]]), np.full(2, 10.0), np.asarray([8.0, 9.0]), 1.0, like=going)
    return going, ending


def joined(process, x, family, error=0.0, **options):
    inputs, family, error = (jnp.asarray(v, jnp.float32) for v in ([x], family, error))
    return float(_joined(process, inputs, family, error, **options))


def test_rewards_are_the_logs_where_it_has_been_and_the_familys_elsewhere(processes):
    going, _ = processes
    assert joined(going, 0.5, family=0.5) == pytest.approx(0.25, abs=0.02)
    assert joined(going, 0.5, family=0.5, error=1.0) == pytest.approx(0.25, abs=0.1)
    far = joined(going, 30.0, family=50.0)
    assert far == pytest.approx(50, rel=0.35)
    assert joined(going, 30.0, family=50.0, error=2.0) > far + 10
    assert joined(None, 0.5, family=0.5) == 0.5


def test_an_end_pays_what_ends_paid_unless_it_is_of_another_kind(processes):
    _, ending = processes
    assert joined(ending, 1.3, family=7.0, other_kind=OTHER_KIND) == pytest.approx(10, rel=0.1)
    # The family was off by a fifth, and not by the sign.
    assert joined(ending, 1.3, family=-100.0, other_kind=OTHER_KIND) < -60


def test_nothing_to_fit_is_no_process():
    none = np.zeros((0, 1))
    assert fit_process(none, none[:, 0], none[:, 0], 1.0, part=none[:, 0]) is None
    assert fit_ends(none, none[:, 0], none[:, 0], 1.0, like=None) is None


@pytest.mark.parametrize("value", [0.0, 5.0, -3e12])
def test_the_same_reward_everywhere_stays_that(value):
    x = np.random.default_rng(0).normal(size=(30, 2))
    same = np.full(30, value)
    process = fit_process(x, same, same, 1.0, part=np.arange(30) // 6)
    found, spread = process(jnp.asarray([9.0, 9.0], jnp.float32))
    assert float(found) == pytest.approx(value, rel=1e-5)
    assert np.isfinite(float(spread))


def test_the_log_says_where_ends_are():
    generator = np.random.default_rng(0)
    known = shift_draws(np.asarray([-2.0] * 20), np.ones(20, bool), 500, generator)
    assert known.mean() > 2.5
    assert known.std() < 1.2
    unknown = shift_draws(np.asarray([-40.0] * 20), np.zeros(20, bool), 500, generator)
    assert unknown.std() == pytest.approx(1.5, abs=0.15)


# What is recommended.


def test_an_estimate_is_as_unsure_as_the_model_was_about_what_was_done():
    own = Estimate(10, 8, 12)
    assert longer(own, Estimate(2, 1, 3), earned=2.5) == own
    # Twice as much was earned as the model thinks possible.
    assert longer(own, Estimate(2, 1, 3), earned=6.0) == Estimate(10, 4, 24)
    assert longer(Estimate(-10, -12, -8), Estimate(-2, -3, -1), earned=-0.5) == Estimate(-10, -24, -4)
    # By a share where signs differ: 2 of 6, of 12.
    assert longer(Estimate(1, -8, 12), Estimate(2, 1, 4), earned=6.0) == Estimate(1, -12, 16)
    assert longer(own, Estimate(0, 0, 0), earned=0.0) == own


KNOWN = Evidence(
    draws=np.linspace(1, 2), logged_draws=np.zeros(5), logged=Estimate(0, 0, 0), episodes=5, unsupported=0.0,
    disagreement="", estimate=Estimate(1.5, 1, 2), weighted=NO_ESTIMATE, effective=0.0,
)  # fmt: skip


def test_estimates_and_verdicts():
    assert estimate_of(np.arange(101.0)) == pytest.approx(Estimate(50, 5, 95))
    assert estimate_of(np.arange(101.0), 3.0).value == 3
    assert verdict(KNOWN) == ("better", ())
    assert verdict(KNOWN._replace(draws=np.linspace(-2, -1))) == ("worse", ())
    for change, reason in (
        ({"draws": np.linspace(-1, 1)}, "the policy may be worth 1 to 2, what was done 0 to 0"),
        (
            {"draws": np.linspace(-1, 1), "logged": Estimate(0, -9, 9)},
            "after 5 episodes, what was done may be worth -9",
        ),
        ({"episodes": 0}, "too little data: no logged episode"),
        ({"unsupported": 0.5}, "no support: 50% of what"),
        ({"disagreement": "the model is wrong"}, "the model is wrong"),
        ({"weighted": Estimate(5, 4, 6), "effective": 4.0}, "importance sampling disagree"),
    ):
        told = verdict(KNOWN._replace(**change))
        assert told.word == "cannot tell"
        assert reason in told.reasons[0]
    # Of one episode importance sampling says nothing.
    assert verdict(KNOWN._replace(weighted=Estimate(5, 4, 6), effective=1.6)).word == "better"
