"""Other people's logs: what becomes of good ones, and what is said about bad ones."""

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hipmdp.data.logs.columns import LogColumns
from hipmdp.data.logs.read import LeftOutWarning, read_logs

COLUMNS = LogColumns(
    state=("x", "v"), action="push", instance="machine", episode="run", time="t", reward="gain", terminated="end"
)


def rows(machine="a", run=1, count=6, start=0.0):
    """A run of `count` moments: x counts them, v falls, pushes alternate."""
    return [
        {
            "machine": machine, "run": run, "t": 0.5 * i, "x": start + i, "v": -0.1 * i,
            "push": ("left", "right")[i % 2], "gain": 10.0 * i, "end": False,
        }
        for i in range(count)
    ]  # fmt: skip


def write(path, lines):
    names = list(lines[0])
    text = [",".join(names)]
    text += [",".join("" if line[n] is None else str(line[n]) for n in names) for line in lines]
    path.write_text("\n".join(text) + "\n")
    return path


def read(path, columns=COLUMNS, **options):
    return read_logs(path, columns, **{"least": 1, **options})


def changed(number, **changes):
    lines = [*rows("a"), *rows("b", start=100.0)]
    lines[number].update(changes)
    return lines


def test_a_row_and_the_next_make_a_transition(tmp_path):
    lines = [*rows("a", count=3), *rows("b", run=7, count=2, start=100.0)]
    lines[2]["end"] = True
    lines[2]["push"] = lines[2]["gain"] = None  # The last row of an episode only ends it.
    log = read(write(tmp_path / "fleet.csv", lines))
    np.testing.assert_array_equal(log.state, np.asarray([[0, 0], [1, -0.1], [100, 0]]))
    np.testing.assert_array_equal(log.next_state, np.asarray([[1, -0.1], [2, -0.2], [101, -0.1]]))
    assert log.specification.action_names == ("left", "right")
    np.testing.assert_array_equal(log.action, [0, 1, 0])
    np.testing.assert_array_equal(log.reward, [0, 10, 0])
    np.testing.assert_array_equal(log.terminated, [False, True, False])
    np.testing.assert_array_equal(log.truncated, [False, False, True])
    np.testing.assert_array_equal(log.instance, [0, 0, 1])
    np.testing.assert_array_equal(log.time, [0, 1, 0])
    np.testing.assert_array_equal(log.duration, [0.5, 0.5, 0.5])
    assert log.names == {0: "a", 1: "b"}
    specification = log.specification
    assert (specification.family, specification.horizon, specification.step) == ("fleet-logs", 2, 0.5)
    assert not specification.timed
    assert specification.rewarded


def test_csv_parquet_and_npz_say_the_same(tmp_path):
    lines = [*rows("a"), *rows("a", run=2), *rows("b", start=100.0)]
    table = pa.Table.from_pylist(lines)
    pq.write_table(table.set_column(0, "machine", table["machine"].dictionary_encode()), tmp_path / "fleet.parquet")
    np.savez(tmp_path / "fleet.npz", **{name: table[name].to_numpy() for name in ("t", "x", "v", "gain", "run")},
             machine=np.asarray(table["machine"].to_pylist()), push=np.asarray(table["push"].to_pylist()),
             end=np.asarray(table["end"].to_pylist()))  # fmt: skip
    logs = [read(write(tmp_path / "fleet.csv", lines))]
    logs += [read(tmp_path / f"fleet.{kind}") for kind in ("parquet", "npz")]
    for other in logs[1:]:
        assert other.specification == logs[0].specification
        assert other.names == logs[0].names
        for name in ("state", "action", "reward", "next_state", "instance", "episode", "time", "duration"):
            np.testing.assert_array_equal(getattr(other, name), getattr(logs[0], name))


def test_rows_of_different_systems_may_be_interleaved(tmp_path):
    apart = [*rows("a"), *rows("b", start=100.0)]
    mixed = [line for pair in zip(rows("a"), rows("b", start=100.0), strict=True) for line in pair]
    first, second = (read(write(tmp_path / f"{i}.csv", lines)) for i, lines in enumerate((apart, mixed)))
    np.testing.assert_array_equal(first.state, second.state)
    np.testing.assert_array_equal(first.instance, second.instance)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (changed(3, x=None), "row 4 (instance 'a'), column 'x' is missing;"),
        (changed(8, v="inf"), "row 9 (instance 'b'), column 'v' is too large a number;"),
        (changed(3, t=0.25), "row 4 (instance 'a'), column 't' is earlier than row 3 of the same episode: sort"),
        (changed(3, t=1.0), "row 4 (instance 'a'), column 't' repeats the time of row 3 of the same episode;"),
        (changed(2, push=None), "row 3 (instance 'a'), column 'push' is missing;"),
        (changed(2, gain=None), "row 3 (instance 'a'), column 'gain' is missing;"),
        (changed(2, end=True), "row 3 (instance 'a'), column 'end' is true, but its episode goes on;"),
        (changed(2, machine=None), "row 3, column 'machine' does not say which one"),
        ([*rows("a"), *rows("a", run=9, count=1)], "row 7, column 'run' is the only row of its episode"),
        ([*rows("a"), *rows("b", count=3)], "Instance 'b' of"),
        ([{**r, "v": 3.0} for r in rows()], "Column 'v' is 3 in every row: leave it out of the state."),
        ([{**r, "push": "left"} for r in rows()], "Column 'push' holds one action only (left)"),
        ([{**r, "push": 0.37} for r in rows()], "Column 'push' holds fractions (0.37 in row 1): continuous actions"),
        ([{**r, "push": i} for i, r in enumerate(rows(count=60))], "has 60 different values, more than 50 actions"),
        ([{**r, "x": "high"} for r in rows()], "row 1, column 'x' is 'high', not a number (and 5 more"),
    ],
)
def test_bad_logs_get_the_row_and_the_column(tmp_path, lines, message):
    with pytest.raises(ValueError, match=r".") as caught:
        read(write(tmp_path / "fleet.csv", lines), least=4)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_is_dropped_silently(tmp_path):
    lines = [*rows("a"), *rows("a", run=2), *rows("b", start=100.0), *rows("c", count=3)]
    lines[1]["x"] = lines[3]["x"] = None
    path = write(tmp_path / "fleet.csv", lines)
    with pytest.raises(ValueError, match=r"row 2 .*\(and 1 more problem\); --drop leaves such episodes out"):
        read(path, least=4)
    with pytest.warns(
        LeftOutWarning, match=r"1 episode with .* 1 instance with .* \(c\), 9 rows in all \(of 21\); first: .*row 2"
    ):
        log = read(path, least=4, drop=True)
    assert log.names == {0: "a", 1: "b"}
    assert len(log) == 10
    warnings.simplefilter("ignore", LeftOutWarning)
    with pytest.raises(ValueError, match="Nothing in"):
        read(path, least=99, drop=True)


def test_irregular_steps_are_an_input(tmp_path):
    lines = rows(count=5)
    for line, t in zip(lines, (0.0, 1.0, 2.0, 3.0, 7.0), strict=True):
        line["t"] = t
    log = read(write(tmp_path / "fleet.csv", lines))
    assert log.specification.timed
    assert log.specification.step == 1.0
    np.testing.assert_array_equal(log.duration, [1, 1, 1, 4])
    # A model that learned steps of one length refuses others.
    regular = replace(log.specification, timed=False)
    with pytest.raises(ValueError, match="step after row 4 takes 4, but the model learned steps of 1"):
        read(tmp_path / "fleet.csv", like=regular)


def test_timestamps_are_times(tmp_path):
    lines = rows(count=4)
    for i, line in enumerate(lines):
        line["t"] = f"2024-03-01 00:{10 * i:02d}:00"
    log = read(write(tmp_path / "fleet.csv", lines))
    np.testing.assert_allclose(log.duration, 600)


def test_a_row_may_be_a_whole_transition(tmp_path):
    lines = [{**r, "x2": r["x"] + 0.5, "v2": 7.0} for r in rows(count=3)]
    lines[2]["end"] = True
    log = read(write(tmp_path / "fleet.csv", lines), replace(COLUMNS, next_state=("x2", "v2")))
    np.testing.assert_array_equal(log.next_state, np.asarray([[0.5, 7], [1.5, 7], [2.5, 7]], np.float32))
    np.testing.assert_array_equal(log.terminated, [False, False, True])
    np.testing.assert_array_equal(log.duration, [0.5, 0.5, 0.5])


def test_angles_are_wrapped(tmp_path):
    lines = [{**r, "x": x} for r, x in zip(rows(count=3), (3.0, 3.5, 7.0), strict=True)]
    log = read(write(tmp_path / "fleet.csv", lines), replace(COLUMNS, angles=("x",)))
    np.testing.assert_allclose(log.next_state[:, 0], [3.5 - 2 * np.pi, 7 - 2 * np.pi], rtol=1e-6)
    assert log.specification.angles == (True, False)


def test_several_files_are_an_instance_each(tmp_path):
    paths = [write(tmp_path / f"{name}.csv", rows(name, start=s)) for name, s in (("pump", 0.0), ("fan", 100.0))]
    log = read(paths, replace(COLUMNS, instance=None))
    assert log.names == {0: "pump", 1: "fan"}
    assert log.state[5, 0] == 100


def test_a_later_log_must_fit_the_first(tmp_path):
    first = read(write(tmp_path / "a.csv", rows())).specification
    lines = rows()
    lines[1]["push"] = "up"
    with pytest.raises(ValueError, match=r"row 2, column 'push' is 'up', not one of the known actions \(left, right\)"):
        read(write(tmp_path / "b.csv", lines), like=first)
    with pytest.raises(ValueError, match="state columns must be x, v, as the model learned them, got v"):
        read(tmp_path / "a.csv", replace(COLUMNS, state=("v",)), like=first)
    short = [{k: v for k, v in r.items() if k not in ("machine", "end")} for r in rows()]
    again = read(
        write(tmp_path / "c.csv", short), like=first, optional=("terminated",), columns=replace(COLUMNS, instance=None)
    )
    assert again.specification == first


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"state": ()}, "at least one state column"),
        ({"state": ("x", "x")}, "'x' is named twice"),
        ({"next_state": ("x",)}, "as many next-state as state columns"),
        ({"angles": ("z",)}, "Angle 'z' is not one of the state columns x, v"),
    ],
)
def test_columns_must_make_sense(columns, message):
    with pytest.raises(ValueError, match=message):
        replace(COLUMNS, **columns)


def test_a_wrong_name_gets_the_nearest(tmp_path):
    path = write(tmp_path / "fleet.csv", rows())
    with pytest.raises(ValueError, match=r"Unknown column of the logs 'machin'\. Did you mean 'machine'"):
        read(path, replace(COLUMNS, instance="machin"))
    with pytest.raises(ValueError, match="There is no file"):
        read(tmp_path / "none.csv")
    with pytest.raises(ValueError, match=r"Logs are .parquet, .csv, .npz files"):
        read(write(tmp_path / "fleet.txt", rows()))
