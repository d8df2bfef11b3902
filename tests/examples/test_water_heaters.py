"""Logs of water heaters, and the simulator behind them."""

import numpy as np
import pytest

import hipmdp
from hipmdp.settings.dqn import DDQNConfig
from tests.examples.loading import example

EXAMPLE = example("water_heaters")
heater, score, proportional = EXAMPLE["heater"], EXAMPLE["score"], EXAMPLE["proportional"]
COLUMNS = hipmdp.LogColumns(
    state=("temperature", "ambient"), action="level", instance="unit", episode="day", time="minute", reward="reward"
)
HEATER = EXAMPLE["Heater"](volume=100.0, loss=2.0, power=2093.0)


def write(path, units, days):
    EXAMPLE["write_logs"](path, units, days)
    return hipmdp.read_logs(path, COLUMNS, actions=EXAMPLE["LEVELS"])


def test_a_step_by_hand():
    """100 l take 418,600 J per K; half an hour of 2093 W is 9 K, and 10 l of 10 °C for 10 l of 60 °C are 5 K less."""
    warmed = EXAMPLE["warmed"]
    assert warmed(HEATER, 60.0, 60.0, 4, 0.0) == pytest.approx((69.0, 2.093 / 2))
    assert warmed(HEATER, 60.0, 60.0, 2, 0.0) == pytest.approx((64.5, 2.093 / 4))
    assert warmed(HEATER, 60.0, 60.0, 0, 10.0) == pytest.approx((55.0, 0.0))
    # 2 W/K times 40 K in 1800 s.
    assert warmed(HEATER, 60.0, 20.0, 0, 0.0)[0] == pytest.approx(60 - 144_000 / 418_600)
    # Twice the tank, half the warming.
    assert warmed(HEATER._replace(volume=200.0), 60.0, 60.0, 4, 0.0)[0] == pytest.approx(64.5)
    # The safety switch.
    assert warmed(HEATER, 86.0, 86.0, 4, 0.0) == (86.0, 0.0)


def test_the_reward_by_hand():
    assert EXAMPLE["reward"](50.0, 0.5) == pytest.approx(-1 - 0.15)


def test_heaters_differ_and_do_not_depend_on_each_other():
    assert heater(3) == heater(3) != heater(4)
    units = np.array([heater(i) for i in range(61)])
    assert (units.min(axis=0) >= (80, 1, 1500)).all()
    assert (units.max(axis=0) <= (250, 4, 4500)).all()


def test_the_logs_are_what_hipmdp_reads(tmp_path):
    logs = write(tmp_path / "heaters.parquet", range(3), days=2)
    assert (len(logs), logs.episode_count, len(logs.instances)) == (3 * 2 * 48, 6, 3)
    assert [logs.name(instance) for instance in logs.instances] == ["unit00", "unit01", "unit02"]
    assert logs.specification.action_names == ("off", "low", "medium", "high", "full")
    assert logs.specification.horizon == 48
    assert set(logs.action) == set(range(5))
    assert not logs.terminated.any()
    again = write(tmp_path / "again.parquet", [2], days=2)
    np.testing.assert_array_equal(again.state, logs.state[logs.instance == logs.instances[2]])


def test_logged_rewards_and_temperatures_are_those_of_the_simulator(tmp_path):
    """Without a draw of water the next temperature is known; with one it is lower."""
    logs, unit = write(tmp_path / "heaters.parquet", [7], days=2), heater(7)
    dry = 0
    for row in range(len(logs)):
        (temperature, ambient), level = logs.state[row], int(logs.action[row])
        expected, energy = EXAMPLE["warmed"](unit, temperature, ambient, level, 0.0)
        after = logs.next_state[row, 0]
        assert after < expected + 1e-9
        dry += after == pytest.approx(expected, abs=1e-9)
        assert logs.reward[row] == pytest.approx(EXAMPLE["reward"](after, energy), rel=1e-5)
    assert 48 < dry < 90


def test_a_gain_tuned_on_another_heater_is_worse_than_the_best_of_its_own():
    gains, (small, large) = EXAMPLE["GAINS"], (EXAMPLE["Heater"](80, 1, 4500), EXAMPLE["Heater"](250, 4, 1500))
    assert len(gains) == 12
    tuned = {unit: EXAMPLE["tuned_gain"](unit) for unit in (small, large)}
    assert tuned[small] < tuned[large]
    for own, other in ((small, large), (large, small)):
        assert score(own, proportional(tuned[own])) > score(own, proportional(tuned[other]))


@pytest.mark.filterwarnings("ignore::hipmdp.LatentIgnoredWarning")
def test_the_policy_of_advise_can_be_scored(tmp_path):
    """From logs to a policy at a size that learns nothing, but takes every step."""
    logs = write(tmp_path / "heaters.parquet", range(3), days=1)
    config = hipmdp.DynamicsConfig(hidden=(8,), latent_size=2, rounds=20, batch_size=16, tune_rounds=2, infer_steps=5)
    model = hipmdp.pretrain(logs, config=config, quiet=True, policy=False)
    EXAMPLE["write_logs"](tmp_path / "new_heater.parquet", [60], 1)
    new = hipmdp.read_logs(tmp_path / "new_heater.parquet", COLUMNS, like=model.specification)
    dqn = DDQNConfig(hidden=(8,), lanes=2)
    tiny = hipmdp.AdaptationConfig(dqn=dqn, imagined_episodes=4, weight_draws=2, validation_episodes=2)
    advice = hipmdp.advise(model, new, config=tiny)
    value = score(heater(60), advice.policy, days=1)
    assert np.isfinite(value)
    assert value < 0
