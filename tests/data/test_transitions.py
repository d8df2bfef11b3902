"""Transitions: checks, splits, growth, files."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hipmdp
from hipmdp.data.digest import save_table
from hipmdp.data.logs.parquet import SCHEMA, load_transitions, save_transitions
from hipmdp.data.transitions import COLUMNS, Transitions

SPEC = hipmdp.make("grid").specification


def columns(instances=(0, 1), episodes=4, steps=3):
    """Every instance has `episodes` episodes of `steps` steps; the state counts the rows."""
    ids = [(i, e, t) for i in instances for e in range(episodes) for t in range(steps)]
    instance, episode, time = (np.array(c) for c in zip(*ids, strict=True))
    rows = np.arange(len(ids), dtype=np.float32)
    return {
        "state": np.stack([rows, -rows], axis=1), "action": rows.astype(int) % 4, "reward": rows,
        "next_state": np.stack([rows + 1, -rows], axis=1), "terminated": np.zeros(len(ids), bool),
        "truncated": time == steps - 1, "instance": instance, "episode": episode, "time": time,
        "duration": np.ones(len(ids)),
    }  # fmt: skip


def log(**kwargs):
    ids = kwargs.get("instances", (0, 1))
    return Transitions(SPEC, columns(**kwargs), {i: {"theta": float(i % 2)} for i in ids})


def broken(**changes):
    result = columns()
    for name, (row, value) in changes.items():
        column = np.asarray(result[name]).astype(float if isinstance(value, float) else result[name].dtype)
        column[row] = value
        result[name] = column
    return result


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (broken(reward=(5, float("nan"))), "Column 'reward' must be finite, but row 5 is not."),
        (broken(state=(7, float("inf"))), "Column 'state' must be finite, but row 7 is not."),
        (broken(action=(2, 4)), "Column 'action' must be from 0 to 3, but row 2 is 4."),
        (broken(action=(2, 1.5)), "Column 'action' must hold whole numbers, but row 2 is 1.5."),
        (broken(instance=(0, -1)), "Column 'instance' must not be negative, but row 0 is -1."),
        (broken(time=(1, 0)), "Row 1 repeats time 0 of episode 0 of instance 0; each must be unique."),
        (broken(terminated=(2, True)), "Row 2 is both terminated and truncated"),
        ({**columns(), "state": np.zeros((24, 3))}, "Column 'state' must have shape (24, 2), got (24, 3)."),
        ({**columns(), "reward": np.zeros(5)}, "Column 'reward' must have shape (24,), got (5,)."),
        ({**columns(), "reward": ["a"] * 24}, "Column 'reward' must hold numbers"),
        ({k: v for k, v in columns().items() if k != "time"}, "Transitions need the column 'time'"),
    ],
)
def test_bad_logs_are_refused_with_the_row(data, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Transitions(SPEC, data)


def test_split_by_instance():
    kept, held = log().split_by_instance([1])
    assert (kept.instances, held.instances) == ([0], [1])
    assert len(kept) == len(held) == 12
    assert held.thetas == {1: {"theta": 1.0}}
    with pytest.raises(ValueError, match="no instance 7 in this log; it has 0, 1"):
        log().split_by_instance([7])


def test_split_by_time_keeps_whole_episodes_in_order():
    first, later = log().split_by_time(0.75)
    assert sorted(set(first.episode.tolist())) == [0, 1, 2]
    assert set(later.episode.tolist()) == {3}
    assert first.instances == later.instances == [0, 1]
    with pytest.raises(ValueError, match="between 0 and 1, got 1"):
        log().split_by_time(1)


def test_growing_does_not_copy_what_is_there():
    grown = log(instances=(0,))
    first = grown._chunks[0]
    for i in range(1, 50):
        grown = grown.extended(log(instances=(i,)))
    assert grown._chunks[0] is first
    assert len(grown._chunks) == 50
    assert len(grown) == 50 * 12
    assert grown.instances == list(range(50))
    assert grown.state.shape == (600, 2)
    other = Transitions(
        hipmdp.make("hiv").specification, {**columns(), "state": np.zeros((24, 6)), "next_state": np.zeros((24, 6))}
    )
    with pytest.raises(ValueError, match="Cannot join transitions of 'grid' and 'hiv'"):
        grown.extended(other)


def test_logs_with_the_same_ids_are_not_mixed_up():
    with pytest.raises(ValueError, match="Both logs hold episode 0 of instance 0"):
        log().extended(log(instances=(0,)))
    joined = log().extended(log(instances=(0,)).renumbered(2))
    assert joined.instances == [0, 1, 2]
    assert joined.thetas[2] == {"theta": 0.0}
    later = columns(instances=(0,))
    later["episode"] = later["episode"] + 4
    with pytest.raises(ValueError, match="instance 0 different parameters"):
        log().extended(Transitions(SPEC, later, {0: {"theta": 1.0}}))


def test_returns_and_episodes():
    returns = log().episode_returns()
    assert returns[(0, 0)] == 0 + 1 + 2
    assert returns[(1, 3)] == 21 + 22 + 23
    tasks = list(log().episodes())
    assert len(tasks) == 8
    assert tasks[1].reward.tolist() == [3, 4, 5]


def test_columns_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        log().reward[0] = 5


def test_parquet_round_trip(tmp_path):
    path = tmp_path / "log.parquet"
    save_transitions(log(), path)
    again = load_transitions(path)
    assert again.specification == SPEC
    assert again.thetas == log().thetas
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(again, name), getattr(log(), name))
    assert pq.read_table(path).column_names[:3] == ["state.x", "state.y", "action"]
    assert [p.name for p in tmp_path.iterdir()] == ["log.parquet"]


def test_unreadable_files_give_one_sentence(tmp_path):
    whole = tmp_path / "log.parquet"
    save_transitions(log(), whole)
    cut, foreign, text = tmp_path / "cut.parquet", tmp_path / "foreign.parquet", tmp_path / "text.parquet"
    cut.write_bytes(whole.read_bytes()[:-100])
    text.write_text("no parquet")
    pq.write_table(pa.table({"a": [1]}), foreign)
    table = pq.read_table(whole)
    newer, lacking = tmp_path / "newer.parquet", tmp_path / "lacking.parquet"
    header = table.schema.metadata[b"hipmdp.transitions"]
    odd, endless = tmp_path / "odd.parquet", tmp_path / "endless.parquet"
    for path, old, new in (
        (newer, f'"schema": {SCHEMA}', '"schema": 9'),
        (endless, f'"schema": {SCHEMA}', '"schema": Infinity'),
        (odd, '"horizon": ', '"horizon": "x", "horizons": '),
    ):
        changed = {b"hipmdp.transitions": header.replace(old.encode(), new.encode())}
        save_table(path, table.replace_schema_metadata(changed))
    save_table(lacking, table.drop_columns(["state.y"]))
    for path, message in (
        (cut, "is damaged or no Parquet file"),
        (text, "is damaged or no Parquet file"),
        (foreign, "is damaged or was not written by this hipmdp"),
        (endless, "header .* is damaged"),
        (odd, "header .* is damaged"),
        (newer, "install a newer hipmdp"),
        (lacking, "lacks the column 'state.y'"),
        (tmp_path / "none.parquet", "There is no file"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            load_transitions(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="there is no directory"):
        save_transitions(log(), tmp_path / "nowhere" / "log.parquet")


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(COLUMNS), row=st.integers(0, 23), value=st.floats(allow_nan=True, allow_infinity=True))
def test_any_single_value_is_accepted_or_refused_in_words(name, row, value):
    data = columns()
    column = np.asarray(data[name], float).copy()
    column[row] = value
    try:
        Transitions(SPEC, {**data, name: column})
    except ValueError as error:
        assert name in str(error) or "repeats" in str(error) or "both terminated" in str(error)  # noqa: PT017
