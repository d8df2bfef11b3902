"""Damaged files of a study are told with their path; `compare --repair` makes them again; nothing else removes them."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from hipmdp._files import read_json, save_json
from hipmdp.cli import main
from hipmdp.study.cells.files import cell_paths, packed_paths, read_records, write_records
from hipmdp.study.cells.record import identical
from hipmdp.study.compare import compare
from hipmdp.study.pack import pack
from hipmdp.study.results import read_results
from hipmdp.study.setup import parse_setup
from hipmdp.study.store import study_lock
from hipmdp.study.tasks import plan
from tests.data.test_damage import accepted, flips
from tests.study import tiny
from tests.study.test_pack import odd_record


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    assert compare(tiny.cells(1), out, quiet=True) == []
    return out


@pytest.fixture
def study(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "study"))


def refused(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


def flip(path):
    """One bit of the values: a model ends with them, the pages of Parquet's columns too."""
    raw, end = bytearray(path.read_bytes()), -1
    if path.suffix == ".parquet":
        chunk = pq.read_metadata(path).row_group(0).column(0)
        end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1
    raw[end] ^= 4
    path.write_bytes(bytes(raw))


COMMAND = ["compare", *tiny.COMMAND, "--out"]


@pytest.mark.parametrize("damage", [flip, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("kind", ["cells", "batches", "models"])
def test_a_damaged_file_is_told_and_made_again(whole, study, capsys, kind, damage):
    cell = cell_paths(study)[0]
    path = cell if kind == "cells" else next((study / kind).glob("*-seed0.*"))
    if kind != "cells":
        # It is needed again.
        cell.unlink()
    if kind == "batches":
        next((study / "models").glob("*-seed0.*")).unlink()
    damage(path)
    before = path.read_bytes()
    told = refused(capsys, *COMMAND, study)
    assert str(path) in told
    assert "the same command with --repair makes what is damaged again" in told
    if kind == "cells":
        for command in (["report", study], ["pack", study]):
            told = refused(capsys, *command)
            assert str(path) in told
            assert "`hipmdp compare … --repair` makes it again" in told
    assert path.read_bytes() == before
    main([*COMMAND, str(study), "--repair"])
    assert tiny.numbers(read_results(study)) == tiny.numbers(read_results(whole))
    assert not list(study.rglob(".*"))


def test_what_a_damaged_cell_was_made_from_is_looked_at_too(whole, study):
    flip(cell_paths(study)[0])
    flip(next((study / "models").glob("*-seed0.*")))
    flip(next((study / "batches").glob("*-seed0.*")))
    assert compare(tiny.cells(1), study, quiet=True, repair=True) == []
    assert tiny.numbers(read_results(study)) == tiny.numbers(read_results(whole))


def test_a_study_of_another_version_is_not_repaired(study):
    """Its cells are not damaged: an earlier hipmdp wrote them."""
    save_json(study / "study.json", {"preset": "default", "streams": 1, "settings": 1})
    cell_paths(study)[0].write_bytes(b"of an earlier version")
    before = {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="version 1 of the random streams"):
        compare(tiny.cells(1), study, quiet=True, repair=True)
    assert {path: path.read_bytes() for path in study.rglob("*") if path.is_file()} == before


def test_what_is_damaged_is_set_aside(study):
    cell = cell_paths(study)[0]
    cell.write_bytes(b"perhaps somebody can save it")
    assert compare(tiny.cells(1), study, quiet=True, repair=True) == []
    assert cell.with_name(f"{cell.name}.damaged").read_bytes() == b"perhaps somebody can save it"


def test_a_damaged_packed_file_is_set_aside(whole, study, capsys):
    pack(study)
    (path,) = packed_paths(study)
    flip(path)
    before = path.read_bytes()
    for command in (["report", study], ["pack", study], [*COMMAND, study]):
        told = refused(capsys, *command)
        assert str(path) in told
        assert "put a copy back" in told
    assert compare(tiny.cells(1), study, quiet=True, repair=True) == []
    assert path.with_name("grid.parquet.damaged").read_bytes() == before
    assert tiny.numbers(read_results(study)) == tiny.numbers(read_results(whole))


@pytest.mark.parametrize(
    ("name", "other"), [("study.json", {"preset": "paper"}), ("cells/grid/plain.json", {"episodes": 3})]
)
def test_damaged_descriptions_are_written_again_from_the_cells(study, capsys, name, other):
    path = study / name
    content = read_json(path)
    path.write_bytes(b"")
    told = refused(capsys, *COMMAND, study)
    assert str(path) in told
    assert "`hipmdp compare … --repair` writes it again from the cells" in told
    # Settings that the cells do not have are still refused.
    setup = parse_setup("grid", None, 2, **({"episodes": 2} | other))
    with pytest.raises(ValueError, match="holds another study"):
        compare(plan([setup], ["model_free"], {"grid": ["test:0"]}, [0]), study, quiet=True, repair=True)
    path.write_bytes(b"")
    assert compare(tiny.cells(1), study, quiet=True, repair=True) == []
    assert read_json(path) == content


def test_a_cell_that_is_another_one_is_damaged(study):
    first, second = cell_paths(study)
    shutil.copy(first, second)
    with pytest.raises(ValueError, match="it is another cell"):
        compare(tiny.cells(1), study, quiet=True)


def test_a_repair_waits_for_others(study):
    flip(cell_paths(study)[0])
    with study_lock(study, exclusive=False), pytest.raises(ValueError, match="Another process works on"):
        compare(tiny.cells(1), study, quiet=True, repair=True)
    assert len(cell_paths(study)) == 2


def test_left_overs_and_locks_of_killed_processes_are_removed(study):
    left = [".x.0123456789abcdef.tmp.parquet", ".x.parquet.lock"]
    for folder in ("cells/grid/model_free/plain", "batches", "work/batches-x"):
        (study / folder).mkdir(parents=True, exist_ok=True)
        for name in left:
            (study / folder / name).touch()
    (study / "work/batches-x/state.checkpoint").touch()
    assert compare(tiny.cells(1), study, quiet=True) == []
    assert not list(study.rglob(".*"))
    # What was done is kept, to resume from.
    assert (study / "work/batches-x/state.checkpoint").exists()


@pytest.mark.parametrize("count", [1, 3])
def test_a_flipped_bit_in_cells(tmp_path, count):
    path = tmp_path / "packed" / "x.parquet"
    path.parent.mkdir()
    records = [odd_record(seed) for seed in range(count)]
    write_records(path, records)
    raw = path.read_bytes()
    for read in accepted(path, read_records, flips(raw, 300)):
        assert len(read) == count
        assert all(map(identical, read, records))
    places = np.linspace(0, len(raw) - 1, 50).astype(int)
    assert accepted(path, read_records, [raw[:cut] for cut in places]) == []
