"""Odd files: what is read from them, or the one sentence that says what is wrong and where."""

import gzip
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hipmdp.data.logs.columns import LogColumns, MissingColumnError
from hipmdp.data.logs.read import read_logs

COLUMNS = LogColumns(state=("x",), action="push", instance="machine", episode="run", time="t")
NAMES = ("machine", "run", "t", "x", "push")


def lines(**changed):
    """Six moments of one run; `changed` gives a column's cells."""
    columns = {
        "machine": ["a"] * 6, "run": ["1"] * 6, "t": range(6), "x": [10 * i for i in range(6)],
        "push": ["left", "right"] * 3,
    }  # fmt: skip
    columns |= changed
    names = list(columns)
    return [names, *zip(*columns.values(), strict=True)]


def text(**changed):
    return "".join(",".join(str(cell) for cell in line) + "\n" for line in lines(**changed))


def read(path, content, columns=COLUMNS, **options):
    if isinstance(content, dict):
        pq.write_table(pa.table(content), path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_logs(path, columns, least=1, **options)


def table(**changed):
    names, *rows = lines()
    return {name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)} | changed


GOOD = text()


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        b"\xef\xbb\xbf" + GOOD.replace("machine", '"machine"').encode(),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace("\n", "\n\n"),
        GOOD.rstrip("\n"),
        text(note=['"two\nlines, ""quoted"""'] * 6),
        text(note=['"5', '6"', "7", '8" pipe', "9", "10"]).replace('"5\n', '5" x\n').replace('6"\n', "6\n"),
        text(**{"": ["q"] * 6}).replace(",push,\n", ",push,,\n").replace(",q\n", ",q,q\n"),
        text(note=["caf\xe9"] * 6).encode("latin-1"),
        text(note=["z" * 1_500_000] + ["z"] * 5),
        text(x=[f" {10 * i} " for i in range(6)]),
        text(x=[f"{i}e1" for i in range(6)]),
    ],
    ids=["mark", "mark and quote", "CRLF", "CR", "blank lines", "no last line end", "line ends in quotes",
         "stray quotes", "unused names twice", "unused Latin-1", "long line", "blanks", "exponents"],
)  # fmt: skip
def test_odd_but_readable_csv(tmp_path, content):
    log = read(tmp_path / "log.csv", content)
    assert log.names == {0: "a"}
    np.testing.assert_array_equal(log.state[:, 0], [0, 10, 20, 30, 40])
    np.testing.assert_array_equal(log.duration, 1)
    assert log.specification.action_names == ("left", "right")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty."),
        (b"\n\n", "is empty."),
        (",".join(NAMES), "has no rows."),
        (",".join(NAMES) + "\n", "has no rows."),
        (gzip.compress(GOOD.encode(), mtime=0), "by its first bytes it is compressed with gzip: unpack it first."),
        (GOOD.encode("utf-16"), "by its first bytes it is UTF-16 text: save it as UTF-8."),
        (GOOD.replace(",", ";"), "are separated by semicolons: save it with commas."),
        (GOOD.replace(",", "\t"), "are separated by tabs: save it with commas."),
        (GOOD.replace("2,20", "2,20,1"), "row 3, has 6 cells, but the header has 5"),
        (GOOD.replace("2,20,", "2,"), "row 3, has 4 cells, but the header has 5"),
        (GOOD.replace("2,20", "2\0,20"), "row 3, holds a NUL byte"),
        (text(machine=["a", "caf\xe9"] * 3).encode("latin-1"), "row 2, column 'machine' is not UTF-8 text: save"),
        (GOOD.replace("machine", "m\xe9").encode("latin-1"), "The header of"),
        (GOOD.replace("20,left", '20,"left'), "row 3, has a quote that is never closed."),
        (GOOD.replace("20,left", '20,"left"x"'), "row 3, has a quote within a quoted cell: double it."),
        (text(note=range(6)).replace("note", "x"), "has two columns 'x': each needs a name of its own."),
        (GOOD.replace("2,20", '2,"20,5"'), "row 3, column 'x' is '20,5', not a number (is it a decimal comma or a"),
        (GOOD.replace("2,20", "2,1'000"), "row 3, column 'x' is \"1'000\", not a number (is it a decimal comma or a"),
        (GOOD.replace("1,10", "1,oops"), "row 2, column 'x' is 'oops', not a number;"),
        (GOOD.replace("2,20", f"2,{'9' * 500}"), "row 3, column 'x' is too large a number"),
        (GOOD.replace("2,20", f"2,{2**53 + 1}"), "row 3, column 'x' is 9007199254740993, too long a whole number"),
    ],
)  # fmt: skip
def test_unreadable_csv_is_told_in_one_sentence(tmp_path, content, message):
    with pytest.raises(ValueError, match=r".") as caught:
        read(tmp_path / "log.csv", content)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_is_what_its_first_bytes_say(tmp_path):
    read(tmp_path / "log.parquet", table())
    parquet = (tmp_path / "log.parquet").read_bytes()
    for suffix, content, message in (
        ("csv", parquet, "is not a readable CSV file: by its first bytes it is a Parquet file."),
        ("parquet", GOOD, "is not a readable Parquet file: by its first bytes it is something else."),
        ("parquet", parquet[:-20], "is not a readable Parquet file: it is damaged, cut off or encrypted."),
        ("npz", parquet, "is not a readable NPZ file: by its first bytes it is a Parquet file."),
        ("npz", b"PK\x03\x04nothing", "is not a readable NPZ file: it is damaged or cut off."),
    ):
        with pytest.raises(ValueError, match=r".") as caught:
            read(tmp_path / f"log.{suffix}", content)
        assert message in str(caught.value)


def test_arrays_that_are_no_columns(tmp_path):
    good = {name: np.asarray(cells) for name, cells in table().items()}
    path = tmp_path / "log.npz"
    for change, message in (
        ({"x": np.arange(6, dtype=object)}, "an array holds Python objects, which are never loaded."),
        ({"x": np.zeros((6, 1, 1))}, "array 'x' has 3 dimensions, a column one or two."),
        ({"x": np.arange(5.0)}, r"must have one length, got \[5, 6\]."),
        ({"x": np.arange(6) * 1j}, "'x' of .* must hold names or numbers, got complex128."),
        ({"machine": np.asarray([b"caf\xe9"] * 6)}, "row 1, column 'machine' is not UTF-8 text"),
    ):
        np.savez(path, **{**good, **change})
        with pytest.raises(ValueError, match=message):
            read_logs(path, COLUMNS, least=1)
    # Arrays that are not read may be anything, and bytes of another machine are read rightly.
    np.savez(path, **{**good, "x": np.arange(6).astype(">f8"), "more": np.arange(3)})
    np.testing.assert_array_equal(read_logs(path, COLUMNS, least=1).state[:, 0], range(5))


def test_an_id_is_the_text_that_is_written(tmp_path):
    names = ["007", "007", "7", "7", "+7", "+7"]
    log = read(tmp_path / "log.csv", text(machine=names))
    assert log.names == {0: "007", 1: "7", 2: "+7"}
    assert len(log) == 3
    runs = read(tmp_path / "log.csv", text(run=["01", "01", "1", "1", "1e0", "1e0"]))
    assert runs.episode_count == 3


def test_whole_numbers_with_gaps_are_called_as_without(tmp_path):
    """Programs write 3.0 where a column of whole numbers has a gap; beside 3 nobody knows whether it is the same."""
    machines = ["3.0"] * 3 + ["12.0"] * 3
    pushes = ["0.0", "1.0", "", "1.0", "0.0", ""]
    log = read(tmp_path / "log.csv", text(machine=machines, push=pushes))
    assert list(log.names.values()) == ["3", "12"]
    assert log.specification.action_names == ("0", "1")
    log = read(tmp_path / "log.parquet", table(machine=[3.0] * 3 + [12.0] * 3, push=[0.0, 1.0, None, 1.0, 0.0, None]))
    assert list(log.names.values()) == ["3", "12"]
    assert log.specification.action_names == ("0", "1")
    log = read(tmp_path / "log.csv", text(machine=["1.0"] * 3 + ["1.5"] * 3))
    assert list(log.names.values()) == ["1.0", "1.5"]
    with pytest.raises(
        ValueError, match=r"different values that read the same \('3' and '3.0'\): write each in one way"
    ):
        read(tmp_path / "log.csv", text(machine=["3"] * 3 + ["3.0"] * 3))


@pytest.mark.parametrize("missing", ["", "  ", "nan", "NaN", "NA", "NULL", "N/A", None, float("nan")])
def test_a_missing_id_is_not_a_system(tmp_path, missing):
    message = "row 3, column 'machine' .*does not say which one"
    if isinstance(missing, str):
        with pytest.raises(ValueError, match=message):
            read(tmp_path / "log.csv", text(machine=["a", "a", missing, "a", "a", "a"]))
    known = 1.0 if isinstance(missing, float) else "a"
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "log.parquet", table(machine=[known, known, missing, known, known, known]))


def test_ids_that_fractions_cannot_tell_apart_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"row 1, column 'machine' is 3.*, too long for fractions: store such numbers"):
        read(tmp_path / "log.parquet", table(machine=[3e17] * 6))
    whole = [2**53] * 3 + [2**53 + 1] * 3
    assert list(read(tmp_path / "log.parquet", table(machine=whole)).names.values()) == [str(2**53), str(2**53 + 1)]
    assert list(read(tmp_path / "log.csv", text(machine=whole)).names.values()) == [str(2**53), str(2**53 + 1)]


def test_flags_are_true_or_false(tmp_path):
    columns = replace(COLUMNS, terminated="end")
    for ends in (["", "", "", "", "", "True"], [0, 0, 0, 0, 0, 1], ["false"] * 5 + ["TRUE"]):
        assert read(tmp_path / "log.csv", text(end=ends), columns).terminated.tolist() == [False] * 4 + [True]
    with pytest.raises(ValueError, match="row 2, column 'end' is 'maybe', not true or false"):
        read(tmp_path / "log.csv", text(end=["", "maybe", "", "", "", ""]), columns)
    with pytest.raises(ValueError, match="row 6, column 'end' is 2, not true or false"):
        read(tmp_path / "log.parquet", table(end=[0, 0, 0, 0, 0, 2]), columns)


def test_whole_numbers_are_not_rounded_silently(tmp_path):
    with pytest.raises(ValueError, match="row 2, column 'x' is 9007199254740993, too long a whole number"):
        read(tmp_path / "log.parquet", table(x=[2**53, 2**53 + 1, 2**53 + 2, 2**53 + 4, 0, 1]))
    log = read(tmp_path / "log.parquet", table(x=[2**60, 0, 1, 2, 3, 4]))
    assert log.state[0, 0] == 2.0**60


def test_names_are_read_over_all_files_together(tmp_path):
    """1.0 is called 1 only where all names are such: what a name means must not depend on its file."""
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text(text(machine=["7.0"] * 6))
    second.write_text(text(machine=["7"] * 6))
    with pytest.raises(ValueError, match=r"different values that read the same \('7.0' and '7'\)"):
        read_logs([first, second], COLUMNS, least=1)
    second.write_text(text(machine=["7.0"] * 3 + ["pump"] * 3))
    assert read_logs([first, second], COLUMNS, least=1).names == {0: "7.0", 1: "pump"}


def test_a_column_may_be_of_another_kind_in_the_next_file(tmp_path):
    """Each file is read by the roles of its columns; an episode ends with its file."""
    first = tmp_path / "a.csv"
    first.write_text(text(machine=["7"] * 3 + ["007"] * 3))
    pq.write_table(pa.table(table(machine=[7] * 6, run=[1] * 6)), tmp_path / "b.parquet")
    log = read_logs([first, tmp_path / "b.parquet"], COLUMNS, least=1)
    assert log.names == {0: "7", 1: "007"}
    assert [len(e) for e in log.of_instance(0).episodes()] == [2, 5]
    pq.write_table(pa.table(table(x=[0, 10, None, 30, 40, 50])), tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"c.parquet, row 3 .*, column 'x' is missing"):
        read_logs([first, tmp_path / "c.parquet"], COLUMNS, least=1)
    pq.write_table(pa.table(table(t=[f"2024-01-0{i + 1}" for i in range(6)])), tmp_path / "d.parquet")
    with pytest.raises(
        ValueError, match=r"'t' holds numbers in .*a.csv and timestamps in .*d.parquet: write times in one"
    ):
        read_logs([first, tmp_path / "d.parquet"], COLUMNS, least=1)
    (tmp_path / "e.csv").write_text(GOOD.replace("run", "part"))
    with pytest.raises(MissingColumnError, match=r"Unknown column of the logs 'run' in .*e.csv\."):
        read_logs([first, tmp_path / "e.csv"], COLUMNS, least=1)
    with pytest.raises(ValueError, match=r"a.csv' is named twice"):
        read_logs([first, tmp_path / ".." / tmp_path.name / "a.csv"], COLUMNS, least=1)


def test_names_of_a_file_do_not_break_the_sentence(tmp_path):
    content = text(machine=['"a\nb"'] * 6, push=['"le\nft"', "right"] * 3).replace("t,", '"t\nu",', 1)
    for columns, options in ((COLUMNS, {}), (replace(COLUMNS, time=None), {"actions": ["right", "no\nne"]})):
        with pytest.raises(ValueError, match=r"Known: .*'t\\nu'|is 'le\\nft', not one of .*'no\\nne'") as caught:
            read(tmp_path / "log.csv", content, columns, **options)
        assert "\n" not in str(caught.value)


def test_a_column_called_file_is_not_ours(tmp_path):
    columns = replace(COLUMNS, instance=None, state=("file",))
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(GOOD.replace("x", "file"))
    log = read_logs([tmp_path / "a.csv", tmp_path / "b.csv"], columns, least=1)
    assert log.names == {0: "a", 1: "b"}


def test_what_may_be_missing(tmp_path):
    columns = replace(COLUMNS, terminated="end", reward="gain")
    log = read(tmp_path / "log.csv", GOOD, columns, optional=("terminated", "reward"))
    assert not log.specification.rewarded
    (tmp_path / "more.csv").write_text(text(end=[0] * 6))
    with pytest.raises(MissingColumnError, match=r"'end' in .*log.csv"):
        read_logs(
            [tmp_path / "log.csv", tmp_path / "more.csv"], replace(columns, reward=None), optional=("terminated",)
        )
    for role in ("episode", "instance", "time"):
        with pytest.raises(ValueError, match=f"Only reward and terminated can be optional, not '{role}'"):
            read(tmp_path / "log.csv", GOOD, optional=(role,))


def test_actions_are_named_once(tmp_path):
    with pytest.raises(ValueError, match="Action 'right' is named twice"):
        read(tmp_path / "log.csv", GOOD, actions=["left", "right", "right"])
    for names in (["left", ""], "left"):
        with pytest.raises(ValueError, match="Actions must be a list of names"):
            read(tmp_path / "log.csv", GOOD, actions=names)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"next_state": ("x",)}, "'x' is named as state and as next state"),
        ({"action": "x"}, "'x' is named as state and as action"),
        ({"instance": "x"}, "'x' is named as state and as instance"),
        ({"episode": "machine"}, "'machine' is named as instance and as episode"),
        ({"time": "run"}, "'run' is named as episode and as time"),
        ({"reward": "t"}, "'t' is named as time and as reward"),
        ({"terminated": "push"}, "'push' is named as action and as terminated"),
    ],
)
def test_a_column_has_one_role(columns, message):
    with pytest.raises(ValueError, match=message):
        replace(COLUMNS, **columns)


def test_a_time_and_a_reward_may_be_measured_too(tmp_path):
    columns = replace(COLUMNS, state=("x", "t"), reward="x")
    log = read(tmp_path / "log.csv", GOOD, columns)
    np.testing.assert_array_equal(log.state[:, 1], range(5))
    np.testing.assert_array_equal(log.reward, [0, 10, 20, 30, 40])


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ([], "must be named by their roles"),
        ({"state": ["x"]}, "must be named by their roles"),
        ({"state": ["x"], "action": "u", "more": 1}, "must be named by their roles"),
        ({"state": "x", "action": "u"}, "state must be a tuple of column names, got 'x'"),
        ({"state": [1], "action": "u"}, "state must be a tuple of column names"),
        ({"state": ["x"], "action": 3}, "action must be the name of a column, got 3"),
        ({"state": ["x"], "action": "u", "time": ["t"]}, "time must be the name of a column"),
    ],
)
def test_stored_columns_that_lie(stored, message):
    with pytest.raises(ValueError, match=message):
        LogColumns.from_dict(stored)
