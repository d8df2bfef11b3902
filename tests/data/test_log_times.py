"""Times of a log: exact differences, whatever they are written as."""

import numpy as np
import pyarrow as pa
import pytest

from hipmdp.data.logs.times import NO_TIME, on_one_clock, times
from tests.data.test_log_files import read, table, text

START = 1_700_000_000_000_000_000
"""Nanoseconds since 1970; float64 has steps of 256 ns there."""


def steps(*columns):
    """How long the steps take, over all files."""
    parts = [times(column, "t") for column in columns]
    clock = on_one_clock(parts, "t", tuple(f"{i}.csv" for i in range(len(parts))))
    assert not any(clock.wrong)
    return (np.diff(clock.ticks) / clock.rate).tolist()


def iso(values):
    return pa.array(values, pa.large_string())


def test_100_nanoseconds_survive_beside_a_date():
    expected = pytest.approx([1e-7, 2e-7], rel=1e-12)
    assert steps(pa.array([START, START + 100, START + 300], pa.timestamp("ns"))) == expected
    assert steps(pa.array([START, START + 100, START + 300], pa.timestamp("ns", "Europe/Berlin"))) == expected
    assert steps(iso([f"2023-11-14T22:13:20.{n:09d}" for n in (0, 100, 300)])) == expected
    assert steps(iso([f"2023-11-14 22:13:20.{n:09d}Z" for n in (0, 100, 300)])) == expected
    assert steps(iso([f"2999-11-14T22:13:20.{n:09d}" for n in (0, 100, 300)])) == expected


def test_large_whole_numbers_are_exact():
    values = [START, START + 1, START + 3]
    for column in (pa.array(values), pa.array(values, pa.uint64()), iso([str(v) for v in values])):
        assert steps(column) == [1, 2]
    # Beyond 64 bits a text is a float, unless cells are looked at one by one.
    part = times(iso([str(10**30), str(10**30 + 1), "x"]), "t")
    assert part.ticks.tolist() == [-1, 0, NO_TIME]
    assert list(part.wrong) == [2]


@pytest.mark.parametrize(
    ("column", "step"),
    [
        (pa.array([2**60, 2**60 + 500], pa.timestamp("ms")), 0.5),
        (pa.array([0, 1], pa.date32()), 86400),
        (pa.array([0, 86_400_000], pa.date64()), 86400),
        (pa.array([0, 250], pa.duration("ms")), 0.25),
        (pa.array([0, 250], pa.time32("ms")), 0.25),
        (pa.array([0.5, 0.75]), 0.25),
        (iso(["0.5", " .75"]), 0.25),
        (iso(["2024-02-28", "2024-03-01"]), 2 * 86400),
        (iso(["9999-12-31 23:59", "9999-12-31 23:59:30"]), 30),
        (iso(["0001-01-01", "0001-01-01T00:00:01,5"]), 1.5),
        (iso(["2024-01-01T00:00:00+02:00", "2023-12-31T22:00:01Z"]), 1),
        (iso(["2024-01-01T00:00:00-0130", "2024-01-01T01:30:01Z"]), 1),
    ],
)
def test_kinds_of_times(column, step):
    assert steps(column) == [step]


def test_files_of_different_units_share_a_clock():
    first = pa.array([START // 10**9], pa.timestamp("s"))
    assert steps(first, pa.array([START + 100], pa.timestamp("ns"))) == pytest.approx([1e-7])
    assert steps(pa.array([1]), pa.array([2.5])) == [1.5]
    with pytest.raises(ValueError, match=r"holds timestamps in 0.csv and timestamps with a UTC offset in 1.csv"):
        steps(first, pa.array([START], pa.timestamp("ns", "UTC")))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["2024-01-01", "soon", "2024-01-03"], "is 'soon', not a timestamp such as 2024-05-31 12:00:00"),
        (["2024-01-01", "2024-02-30", "2024-03-03"], "is '2024-02-30', not a timestamp such as"),
        (["2024-01-01", "5", "2024-01-03"], "is '5', not a timestamp such as"),
        (["2024-01-01", "2024-01-02T00:00Z", "2024-01-03"], "is '2024-01-02T00:00Z', with a UTC offset, unlike most"),
        (
            ["2024-01-01T00Z", "2024-01-02", "2024-01-03T00Z"],
            "is '2024-01-02', without a UTC offset, unlike most times",
        ),
        (["0", "2024-01-02", "2"], "is '2024-01-02', not a number"),
        (["0", "1,5", "2.5"], "is '1,5', not a number (is it a decimal comma"),
        (["2024-01-01", "0001-01-01", "2024-01-02"], "is too far from the other times (more than 146 years)"),
    ],
)
def test_a_cell_unlike_the_others_is_wrong(cells, message):
    part = times(iso(cells), "t")
    assert list(part.wrong) == [1]
    assert message in part.wrong[1]


def test_a_stray_date_is_told_by_its_row(tmp_path):
    values = pa.array([-(2**60), *range(5)], pa.timestamp("ms"))
    with pytest.raises(ValueError, match="row 1, column 't' is too far from the other times"):
        read(tmp_path / "log.parquet", table(t=values))


def test_iso_text_is_a_time_in_every_format(tmp_path):
    moments = [f"2024-03-01T00:{10 * i:02d}:00" for i in range(6)]
    for log in (
        read(tmp_path / "log.csv", text(t=moments)),
        read(tmp_path / "log.parquet", table(t=moments)),
        read(tmp_path / "log.parquet", table(t=pa.array(moments).cast(pa.timestamp("s")))),
    ):
        np.testing.assert_array_equal(log.duration, 600)


def test_other_columns_are_no_times(tmp_path):
    with pytest.raises(ValueError, match="'t' must hold numbers or timestamps, got bool"):
        read(tmp_path / "log.parquet", table(t=[True] * 6))
    with pytest.raises(ValueError, match="'x' must hold numbers, got timestamp"):
        read(tmp_path / "log.parquet", table(x=pa.array(range(6), pa.timestamp("ms"))))
    log = read(tmp_path / "log.parquet", table(run=pa.array([START] * 3 + [START + 100] * 3, pa.timestamp("ns"))))
    assert log.episode_count == 2
