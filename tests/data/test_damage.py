"""A bit that flips on disk is told, not believed: every file kind of the data layer, at every bit or a fixed sample."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipmdp._files import read_json, save_json
from hipmdp.data.digest import DIGEST_KEY, load_table, save_table, table_digest
from hipmdp.data.logs.parquet import load_transitions, save_transitions
from hipmdp.data.transitions import COLUMNS, Transitions
from hipmdp.families.specification import Specification

SPEC = Specification(
    "toy", ("x", "y"), (-1.0, -1.0), (1.0, 1.0), (0.0, 0.0), (0.231, 0.5), (False, False), ("a", "b"), 5, 0.99
)  # fmt: skip
ODD = (0.0, -0.0, 5e-324, 1.7e308, float("nan"), float("-inf"), 0.1)


def batch() -> Transitions:
    count = 10
    states = np.linspace(-1, 1, 2 * count).reshape(count, 2)
    columns = {
        "state": states, "next_state": states + 0.1, "action": np.arange(count) % 2, "reward": np.arange(count),
        "terminated": np.zeros(count, bool), "truncated": np.arange(count) % 5 == 4, "instance": np.arange(count) // 5,
        "episode": np.zeros(count, int), "time": np.arange(count) % 5,
    }  # fmt: skip
    return Transitions(SPEC, columns, {0: {"g": 0.1}, 1: {"g": 0.2}}, {0: "north", 1: "süd"})


def content(transitions: Transitions) -> str:
    columns = {name: getattr(transitions, name).tobytes().hex() for name in COLUMNS}
    return json.dumps([columns, transitions.specification.to_dict(), transitions.thetas, transitions.names])


def flips(raw: bytes, count: int | None = None) -> list[bytes]:
    """The file with one bit flipped: all bits, or `count` that are always the same."""
    places = range(8 * len(raw))
    if count is not None:
        places = np.random.default_rng(7).choice(8 * len(raw), count, replace=False)
    found = []
    for place in places:
        changed = bytearray(raw)
        changed[place // 8] ^= 1 << place % 8
        found.append(bytes(changed))
    return found


def accepted(path, read, variants) -> list:
    """What was read of the variants that were not refused in one sentence."""
    found, told = [], []
    for raw in variants:
        path.write_bytes(raw)
        try:
            found.append(read(path))
        except ValueError as error:
            told.append(str(error))
    assert all(str(path) in sentence and "\n" not in sentence for sentence in told)
    return found


def test_a_flipped_bit_in_a_batch(tmp_path):
    path = tmp_path / "batch.parquet"
    save_transitions(batch(), path)
    raw = path.read_bytes()
    whole = content(load_transitions(path))
    read = accepted(path, lambda p: content(load_transitions(p)), flips(raw, 600))
    # A bit of Parquet's statistics or of the writer's name may flip: they are not the content.
    assert set(read) <= {whole}
    assert accepted(path, load_transitions, [raw[:cut] for cut in range(0, len(raw), 97)]) == []


def test_a_flipped_bit_in_json(tmp_path):
    path = tmp_path / "run.json"
    save_json(path, {"seed": 3, "rates": [1e-05, 0.5, None, True], "names": {"ä": "b c"}, "family": "grid()"})
    raw = path.read_bytes()
    whole = json.dumps(read_json(path))
    read = accepted(path, lambda p: json.dumps(read_json(p)), flips(raw))
    # 1e-05 and 1E-05 are the same number.
    assert set(read) <= {whole}
    assert len(read) < 5
    assert accepted(path, read_json, [raw[:cut] for cut in range(len(raw) - 1)]) == []


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"sha256": "0"}', "[" * 100_000, '{"seed": 1}', "\x00", "\udcff"])
def test_json_without_its_digest_is_damaged(tmp_path, text):
    path = tmp_path / "run.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"run\.json' is damaged") as caught:
        read_json(path)
    assert "\n" not in str(caught.value)


def test_parquet_without_its_digest_is_damaged(tmp_path):
    path = tmp_path / "batch.parquet"
    save_transitions(batch(), path)
    table = pq.read_table(path)
    metadata = {key: value for key, value in table.schema.metadata.items() if key != DIGEST_KEY}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(ValueError, match="it has no digest"):
        load_transitions(path)
    pq.write_table(table.drop_columns(["reward"]), path)
    with pytest.raises(ValueError, match="does not fit its digest"):
        load_transitions(path)


def nested() -> pa.Table:
    lists = pa.array([[[1.5, None], None, []], None, [], [[float("nan")]]], pa.list_(pa.list_(pa.float32())))
    return pa.table(
        {
            "n": pa.array([1, None, 3, 4], pa.int64()), "s": ["a", None, "", "ü"], "b": [True, False, None, True],
            "f": [0.1, -0.0, None, float("nan")], "l": lists,
        }
    )  # fmt: skip


def test_a_digest_is_of_the_values_however_they_are_stored(tmp_path):
    table, digest = nested(), table_digest(nested())
    # Cut into chunks, behind an offset, and through files with other pages and compression.
    assert table_digest(pa.concat_tables([table.slice(0, 1), table.slice(1, 2), table.slice(3)])) == digest
    assert table_digest(pa.concat_tables([table, table]).slice(4)) == digest
    for options in ({"compression": "none"}, {"row_group_size": 1}, {"use_dictionary": False, "data_page_size": 1}):
        pq.write_table(table, tmp_path / "t.parquet", **options)
        assert table_digest(pq.read_table(tmp_path / "t.parquet")) == digest
    save_table(tmp_path / "t.parquet", table)
    again = load_table(tmp_path / "t.parquet")
    assert table_digest(again) == digest
    assert again.column("l").to_pylist()[0] == [[1.5, None], None, []]


def test_every_difference_changes_the_digest():
    table, names = nested(), nested().column_names
    other = [
        table.rename_columns(["m", *names[1:]]),
        table.select(names[::-1]),
        table.slice(0, 3),
        table.replace_schema_metadata({b"a": b"b"}),
        table.set_column(0, "n", table.column("n").cast(pa.int32())),
        table.set_column(0, "n", pa.array([1, 0, 3, 4])),
        table.set_column(1, "s", pa.array(["a", "", None, "ü"])),
        table.set_column(1, "s", pa.array(["", None, "a", "ü"])),
        table.set_column(3, "f", pa.array([0.1, 0.0, None, float("nan")])),
        table.set_column(3, "f", pa.array([0.1, -0.0, float("nan"), None])),
    ]
    digests = {table_digest(t) for t in [table, *other]}
    assert len(digests) == len(other) + 1


@given(
    values=st.lists(st.lists(st.one_of(st.none(), st.sampled_from(ODD)), max_size=3) | st.none(), max_size=6),
    cut=st.integers(0, 6),
)
def test_any_lists_have_one_digest(values, cut):
    table = pa.table({"v": pa.array(values, pa.list_(pa.float64()))})
    cut = min(cut, len(values))
    again = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    assert table_digest(again) == table_digest(table)
    assert table_digest(pa.table({"v": pa.array([*values, []], table.schema.field(0).type)})) != table_digest(table)
