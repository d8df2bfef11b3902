"""Logs of any content: every format gives the same transitions, and a bad cell is blamed on its row and column."""

import csv
import itertools
import re
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hipmdp.data.logs.columns import LogColumns
from hipmdp.data.logs.read import LeftOutWarning, read_logs
from tests.fuzz.effort import examples

COLUMNS = LogColumns(state=("x", "n"), action="push", instance="machine", episode="run", time="t", reward="gain")
NASTY = (
    "007", "7", "07", "7.5", "1e3", "TRUE", "x,y", 'a"b', "line\nbreak", "cr\rlf\r\n", " lead", "trail ", "é",
    "e\u0301", "ﬀ", "[red]", "-0", "+1", "0x10", "1_000", "٣", "none", "None", "Na", "inf", "a;b", "'", "=1+1", "\t",
    "\u00a0x", "🚂",
)  # fmt: skip
# Tabs alone are blanks, which say nothing.
IDS = st.sampled_from([name for name in NASTY if name.strip()]) | st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=4
).filter(lambda name: name.upper() not in ("NA", "NAN", "NULL", "NAT", "N/A", "<NA>", "#NA") and "." not in name)
ACTIONS = ("left", "right", "wait")


def settled(count):
    # The directory is shared between examples, whose files are written anew each time.
    return settings(
        max_examples=examples(count),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        database=None,
    )


@st.composite
def logs(draw):
    """Rows of several systems and runs, mixed; within a run they are in order."""
    machines = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
    runs = [(m, r) for m in machines for r in draw(st.lists(IDS, min_size=1, max_size=3, unique=True))]
    lengths = [draw(st.integers(3, 5)) for _ in runs]
    order = draw(st.permutations([k for k, length in enumerate(lengths) for _ in range(length)]))
    seen, lines = [0] * len(runs), []
    for n, k in enumerate(order):
        lines.append(
            {
                "machine": runs[k][0], "run": runs[k][1], "t": seen[k] * draw(st.integers(1, 3)) + 10 * seen[k],
                "x": draw(st.floats(-1e6, 1e6, width=32)) if n > 1 else float(n), "n": n,
                "push": ACTIONS[n % 2] if n < 2 else draw(st.sampled_from(ACTIONS)), "gain": 0.5 * n,
            }
        )  # fmt: skip
        seen[k] += 1
    return lines


def write(path, lines):
    names = list(lines[0])
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows([repr(v) if isinstance(v, float) else "" if v is None else v for v in line.values()]
                             for line in lines)  # fmt: skip
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(lines), path)
    else:
        np.savez(path, **{name: np.asarray([line[name] for line in lines]) for name in names})
    return path


def expected(lines):
    """By system, in order: what each run's rows and their successors say."""
    runs: dict[tuple[str, str], list[dict]] = {}
    for line in lines:
        runs.setdefault((line["machine"], line["run"]), []).append(line)
    result: dict[str, list[tuple]] = {}
    for (machine, _), rows in runs.items():
        for a, b in itertools.pairwise(rows):
            result.setdefault(machine, []).append(
                (a["x"], a["n"], a["push"], a["gain"], b["x"], b["n"], b["t"] - a["t"])
            )
    return result


def found(log):
    names = log.specification.action_names
    result: dict[str, list[tuple]] = {}
    for i in range(len(log)):
        (x, n), (x2, n2) = log.state[i], log.next_state[i]
        row = (x, n, names[log.action[i]], log.reward[i], x2, n2, log.duration[i])
        result.setdefault(log.name(int(log.instance[i])), []).append(row)
    return result


@settled(30)
@given(lines=logs())
def test_every_format_keeps_systems_and_runs_apart(tmp_path, lines):
    for kind in ("csv", "parquet", "npz"):
        log = read_logs(write(tmp_path / f"log.{kind}", lines), COLUMNS, least=1, actions=ACTIONS)
        assert found(log) == expected(lines)
        # A file per system is the same as a column.
        assert [log.name(i) for i in log.instances] == list(expected(lines))


BAD = {
    "x": ("oops", "", "1,5", "12 kg", "1.2.3", "--1", "0x1A", "1e999", "True", "nan"),
    "t": ("soon", "", "2024-01-01", "NaT"),
    "gain": ("much", "1 000,0"),
    "push": ("jump", "0"),
    "machine": ("", "   ", "NA", "nan"),
    "run": ("", "null"),
}


@settled(60)
@given(lines=logs(), data=st.data())
def test_a_bad_cell_is_blamed_on_its_row_and_column(tmp_path, lines, data):
    column = data.draw(st.sampled_from(sorted(BAD)))
    ends = {(line["machine"], line["run"]): n for n, line in enumerate(lines)}
    inner = [n for n in range(len(lines)) if column != "push" or n not in ends.values()]
    place = data.draw(st.sampled_from(inner))
    text = data.draw(st.sampled_from(BAD[column]))
    as_text = [{**line, column: str(line[column])} for line in lines]
    as_text[place][column] = text
    for kind in ("csv", "parquet", "npz"):
        with pytest.raises(ValueError, match=r".") as caught:
            read_logs(write(tmp_path / f"log.{kind}", as_text), COLUMNS, least=1, actions=ACTIONS)
        told = str(caught.value)
        assert re.search(rf"log\.{kind}, row {place + 1}( \(instance .*\))?, column '{column}' ", told), told
        assert "more problem" not in told
        assert "\n" not in told
        if text.strip() and text != "1e999" and column not in ("x", "t"):
            assert repr(text) in told


@settled(40)
@given(
    length=st.integers(4, 9),
    faults=st.lists(st.tuples(st.integers(0, 17), st.sampled_from(["x", "run", "machine"])), max_size=4),
    mixed=st.booleans(),
)
def test_split_keeps_every_step_between_good_neighbours_and_no_other(tmp_path, length, faults, mixed):
    """Two runs, one after the other or mixed; a row without a name may have been of any run around it."""
    order = [k % 2 for k in range(2 * length)] if mixed else [k // length for k in range(2 * length)]
    lines = [
        {"machine": "m", "run": f"r{k}", "t": n, "x": float(n), "n": n, "push": ACTIONS[n % 2], "gain": 0.0}
        for n, k in enumerate(order)
    ]
    bad = {n % len(lines): column for n, column in faults}
    for n, column in bad.items():
        lines[n] = {**lines[n], column: None}
    steps = []
    for run in (0, 1):
        places = [n for n, k in enumerate(order) if k == run]
        for a, b in itertools.pairwise(places):
            nameless = [n for n, column in bad.items() if column != "x" and a < n < b]
            if a not in bad and b not in bad and not nameless:
                steps.append((a, b))
    path = write(tmp_path / "log.csv", lines)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            log = read_logs(path, COLUMNS, least=1, actions=ACTIONS, split=True)
        except ValueError:
            assert len(steps) < 2  # Nothing is left, or a state that does not change.
            return
    assert sorted(zip(log.state[:, 1].astype(int), log.next_state[:, 1].astype(int), strict=True)) == sorted(steps)
    assert [w.category for w in caught] == [LeftOutWarning] * bool(bad)
    if bad:
        rows = {n for step in steps for n in step}
        assert f"{len(bad)} bad row" in str(caught[0].message)
        assert f"{len(lines) - len(rows)} row" in str(caught[0].message)
