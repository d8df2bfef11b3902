"""Rows that cannot be used: whole episodes go, or only they, and how many is said."""

import warnings
from dataclasses import replace

import pytest

from hipmdp.data.logs.read import LeftOutWarning, read_logs
from tests.data.test_logs import COLUMNS, read, rows, write


def faulty(**cells):
    """Two runs of eight moments, mixed with a system of its own; row 4 of the first run is bad."""
    lines = [*rows("a", count=8), *rows("a", run=2, count=8), *rows("b", count=8, start=100.0)]
    lines[3].update(cells or {"x": None})
    return lines


def test_split_ends_an_episode_before_a_bad_row_and_begins_another_after_it(tmp_path):
    path = write(tmp_path / "fleet.csv", faulty())
    with pytest.warns(
        LeftOutWarning, match=r"1 bad row \(3 episodes became 4\), 1 row in all \(of 24\); first: .*row 4"
    ):
        log = read(path, split=True)
    assert [len(e) for e in log.episodes()] == [2, 3, 7, 7]
    first, second = list(log.episodes())[:2]
    assert first.state[:, 0].tolist() == [0, 1]
    assert first.next_state[:, 0].tolist() == [1, 2]
    assert second.state[:, 0].tolist() == [4, 5, 6]
    assert first.truncated.tolist() == [False, True]
    with pytest.warns(LeftOutWarning, match=r"1 episode with problems, 8 rows in all"):
        assert len(read(path, drop=True)) == 14
    with pytest.raises(ValueError, match=r"--drop leaves such episodes out, --split only such rows\.$"):
        read(path)
    with pytest.raises(ValueError, match=r"Choose drop .* or split .*, not both\."):
        read(path, drop=True, split=True)


@pytest.mark.parametrize(
    ("cells", "lengths"),
    [
        ({"x": "broken"}, [2, 3]),
        ({"push": None}, [2, 3]),
        ({"t": "never"}, [2, 3]),
        ({"t": 0.1}, [2, 3]),
        ({"gain": "inf"}, [2, 3]),
        ({"end": True}, [2, 3]),
        ({"end": "perhaps"}, [2, 3]),
        ({"run": None}, [2, 3]),
        ({"machine": "NA"}, [2, 3]),
    ],
)
def test_whatever_is_wrong_with_a_row(tmp_path, cells, lengths):
    path = write(tmp_path / "fleet.csv", faulty(**cells))
    with pytest.warns(LeftOutWarning, match="1 bad row "):
        log = read(path, split=True)
    assert [len(e) for e in log.episodes()] == [*lengths, 7, 7]


def test_good_rows_that_are_left_alone_are_counted(tmp_path):
    lines = faulty()
    lines[5]["x"] = None
    with pytest.warns(
        LeftOutWarning, match=r"2 bad rows and 1 good row left alone by them \(3 episodes became 4\), 3 rows"
    ):
        log = read(write(tmp_path / "fleet.csv", lines), split=True)
    assert [len(e) for e in log.episodes()] == [2, 1, 7, 7]


def test_whole_transitions_are_split_too(tmp_path):
    lines = [{**line, "x2": 0.5, "v2": -0.1} for line in faulty()]
    columns = replace(COLUMNS, next_state=("x2", "v2"))
    with pytest.warns(LeftOutWarning, match=r"1 bad row \(3 episodes became 4\), 1 row in all"):
        log = read(write(tmp_path / "fleet.csv", lines), columns, split=True)
    assert [len(e) for e in log.episodes()] == [3, 4, 8, 8]
    assert log.duration.tolist() == [0.5] * len(log)


def test_a_row_without_a_name_does_not_bridge_its_neighbours(tmp_path):
    """Its run would go on as if it had not been: a step over two moments."""
    path = write(tmp_path / "fleet.csv", faulty(run=None))
    with pytest.warns(LeftOutWarning, match=r"1 episode with problems, 8 rows in all"):
        log = read(path, drop=True)
    assert [len(e) for e in log.episodes()] == [7, 7]
    # Where systems are mixed, it may have been of any; where it says which, it was of that one.
    mixed = [line for pair in zip(rows("a", count=6), rows("b", count=6, start=9.0), strict=True) for line in pair]
    mixed[4]["machine"] = None
    with pytest.warns(LeftOutWarning, match="2 episodes became 4"):
        log = read(write(tmp_path / "fleet.csv", mixed), split=True)
    assert [len(e) for e in log.episodes()] == [1, 2, 1, 3]
    mixed[4] = {**mixed[4], "machine": "a", "run": None}
    with pytest.warns(LeftOutWarning, match="2 episodes became 3"):
        log = read(write(tmp_path / "fleet.csv", mixed), split=True)
    assert sorted(len(e) for e in log.episodes()) == [1, 2, 5]


def test_split_leaves_out_systems_that_are_too_short(tmp_path):
    lines = [*faulty(), *rows("c", count=3)]
    with pytest.warns(LeftOutWarning, match=r"1 bad row .* and 1 instance with fewer than 4 transitions \(c\), 4 rows"):
        log = read(write(tmp_path / "fleet.csv", lines), least=4, split=True)
    assert list(log.names.values()) == ["a", "b"]
    nothing = [{**line, "x": None} for line in rows()]
    warnings.simplefilter("ignore", LeftOutWarning)
    with pytest.raises(ValueError, match=r"Nothing in .* can be used: .*row 1, column 'x' is missing"):
        read_logs(write(tmp_path / "fleet.csv", nothing), COLUMNS, split=True)
