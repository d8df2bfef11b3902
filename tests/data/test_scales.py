"""A log in other units is the same log: what the network sees does not change."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hipmdp._units import reward_unit
from hipmdp.data.logs.columns import LogColumns
from hipmdp.data.logs.parquet import load_transitions, save_transitions
from hipmdp.data.logs.read import read_logs
from hipmdp.data.transitions import COLUMNS as COLUMN_NAMES
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.standardise import check_units, scaling_of, standardised_changes
from tests.dynamics.toys import toy_specification

COLUMNS = LogColumns(state=("x", "v"), action="push", episode="run", reward="gain")


def walk(slow=1.0):
    """20 runs of a cart under random pushes; `slow` shrinks every change."""
    generator = np.random.default_rng(0)
    rows = []
    for run in range(20):
        x, v = generator.uniform(-1, 1, 2)
        for _ in range(20):
            push = int(generator.integers(3))
            rows.append((run, x, v, push, -(x**2)))
            v, x = v + slow * 0.2 * (push - 1 - 0.3 * v), x + slow * 0.2 * v
    return dict(zip(("run", "x", "v", "push", "gain"), map(np.asarray, zip(*rows, strict=True)), strict=True))


def read(tmp_path, factor=1.0, level=0.0, reward=1.0, slow=1.0, like=None):
    table = walk(slow)
    table |= {name: (table[name] + level) * factor for name in ("x", "v")} | {"gain": table["gain"] * reward}
    pq.write_table(pa.table(table), tmp_path / "walk.parquet")
    return read_logs(tmp_path / "walk.parquet", COLUMNS, like=like)


def seen(log):
    """Standardised states and changes."""
    scaling = scaling_of(log)
    states = log.specification.from_origin(log.state)
    return (states - np.asarray(scaling.state_centre)) / np.asarray(scaling.state_scale), standardised_changes(
        log, scaling
    )


@pytest.mark.parametrize(
    ("factor", "level", "slow"),
    [(1, 1e9, 1), (1, -1e9, 1), (1e-12, 0, 1), (1e-30, 0, 1), (1e30, 0, 1), (1e30, 1e9, 1), (1e-30, 1e9, 1),
     (1, 1e6, 1e-3), (1e-12, 1e6, 1e-3), (1, 300, 1e-3)],
)  # fmt: skip
def test_the_network_sees_the_same_in_other_units(tmp_path, factor, level, slow):
    plain, other = read(tmp_path, slow=slow), read(tmp_path, factor, level, slow=slow)
    assert plain.specification.origin == ()
    for before, after in zip(seen(plain), seen(other), strict=True):
        np.testing.assert_allclose(before, after, atol=1e-5)
    check_units(other)
    # Imagination adds changes to states: they must not vanish there.
    start = other.specification.from_origin(other.state)
    change = np.asarray(scaling_of(other).change_scale)
    np.testing.assert_allclose((start + change) - start, np.broadcast_to(change, start.shape), rtol=0.01)


@pytest.mark.parametrize("factor", [1e-40, 1e38])
def test_units_that_no_number_fits_are_refused(tmp_path, factor):
    with pytest.raises(ValueError, match=r"Column 'x' has a spread of .*: give it in other units"):
        read(tmp_path, factor)
    with pytest.raises(ValueError, match=r"Column 'gain' has a spread of .*: give it in other units"):
        read(tmp_path, reward=factor)


def test_a_new_log_is_measured_from_the_origin_of_the_model(tmp_path):
    learned = read(tmp_path, level=1e9).specification
    again = read(tmp_path, level=1e9 + 5, like=learned)
    assert again.specification == learned
    states = again.specification.from_origin(again.state)
    np.testing.assert_allclose(states, again.state - np.asarray(learned.origin), rtol=1e-6)


def test_files_keep_every_digit(tmp_path):
    log = read(tmp_path, level=1e9)
    assert log.state.dtype == log.next_state.dtype == log.reward.dtype == log.duration.dtype == np.float64
    save_transitions(log, tmp_path / "log.parquet")
    again = load_transitions(tmp_path / "log.parquet")
    assert again.specification == log.specification
    for name in ("state", "next_state", "reward", "duration"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name))


def by_hand(values, reward=0.0):
    """A log without an origin."""
    state = np.asarray(values, np.float64)[:, None]
    count = len(state)
    return Transitions(
        toy_specification(),
        {
            "state": state, "action": np.zeros(count), "reward": np.full(count, reward), "next_state": state,
            "terminated": np.zeros(count, bool), "truncated": np.zeros(count, bool), "instance": np.zeros(count),
            "episode": np.arange(count), "time": np.zeros(count),
        },
    )  # fmt: skip


def test_without_an_origin_a_high_level_is_refused():
    with pytest.raises(ValueError, match=r"State 'x0' varies by .* around 1e\+09.*read_logs"):
        check_units(by_hand(1e9 + np.arange(4.0) / 7))
    check_units(by_hand(1e3 + np.arange(4.0) / 7))
    check_units(by_hand([5.0] * 4))


def test_spreads_that_are_only_rounding_are_not_blown_up():
    scaling = scaling_of(by_hand([0.3, 0.1 + 0.2, 0.3]))
    assert float(scaling.state_scale[0]) == 1.0
    assert float(scaling_of(by_hand([0.0, 1e-20])).state_scale[0]) == pytest.approx(5e-21)


def test_changes_with_a_large_mean_keep_their_differences():
    """A clock that is a little irregular: float32 would make all its steps equal."""
    ticks = np.cumsum(np.append(0.0, 60 + 1e-7 * np.tile([-1.0, 1.0], 50)))
    log = by_hand(ticks[:-1])
    columns = {name: getattr(log, name) for name in COLUMN_NAMES} | {"next_state": ticks[1:, None]}
    log = Transitions(log.specification, columns)
    np.testing.assert_allclose(np.std(standardised_changes(log, scaling_of(log))), 1, rtol=1e-4)


@pytest.mark.parametrize(
    ("rewards", "unit"),
    [([0.0, 1.0, -3.0], 2.0), ([0.0, 1e-30, 3e-30, 2e-30], 2e-30), ([1.0, 1.0, 1e9], 10.0), ([0.0], 1.0)],
)
def test_rewards_are_measured_in_a_unit_of_their_own_size(rewards, unit):
    assert reward_unit(np.asarray(rewards)) == pytest.approx(unit)


def test_a_log_says_in_which_unit_its_rewards_are(tmp_path):
    units = [read(tmp_path, reward=factor).specification.reward_unit / factor for factor in (1.0, 1e-30, 1e30)]
    np.testing.assert_allclose(units, units[0])
