"""Packed studies: the same bits, nothing lost by a kill, nothing made twice."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hipmdp._files import file_name, save_json
from hipmdp.cli import main
from hipmdp.study import pack as packing
from hipmdp.study import tasks
from hipmdp.study.cells.files import cell_paths, packed_paths, read_records, write_records
from hipmdp.study.cells.record import METRICS, CellRecord, identical
from hipmdp.study.compare import compare
from hipmdp.study.pack import pack
from hipmdp.study.results import read_results, read_study
from hipmdp.study.setup import parse_setup
from hipmdp.study.store import study_lock
from tests.study import tiny

FACTS = {
    "states": ["x"], "actions": ["left", "right"], "parameters": [{"name": "g", "baseline": 0.1}],
    "horizon": 5, "success": "survived", "picture": "chart", "options": {},
}  # fmt: skip


def odd_record(seed=0, family="own", **changes):
    """Numbers that a careless format would change: −0, NaN with a payload, the smallest and the largest floats."""
    payload = np.frombuffer(np.uint64(0x7FF8_0000_DEAD_BEEF).tobytes(), np.float64)
    values = np.concatenate([[-0.0, 5e-324, 1.7976931348623157e308, -np.inf, 0.1 + 0.2], payload])
    metrics = {name: np.roll(values, i) for i, name in enumerate(METRICS)}
    latents = [np.asarray([1e-45, -0.0], np.float32), None, *[np.asarray([i, np.nan], np.float32) for i in range(4)]]
    metadata = {
        "family": FACTS, "reference": {"random": 0.1, "best_known": 1 / 3}, "theta": {"g": 1e-300},
        "settings": {"setup": {"family": "own:family"}, "nested": [[], {"ä": None}, 1e22, True]},
        "report": {"error": float("nan")}, "versions": {"python": "3"}, "peak_gb": 0.1,
    }  # fmt: skip
    key = {"family": family, "method": "m", "variant": "v=1", "instance": "test:10", "seed": seed}
    record = CellRecord(key, metrics, latents, np.zeros((3, 1), np.float32), np.asarray([1, 0], np.int32), metadata)
    return replace(record, **changes)


def write_cell(directory: Path, record: CellRecord) -> Path:
    folder = directory / "cells" / record.key["family"]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"test10-seed{record.key['seed']}.parquet"
    write_records(path, [record])
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    assert compare(tiny.cells(), out, quiet=True) == []
    return out


@pytest.fixture
def study(whole, tmp_path):
    """A finished study of two seeds and two instances."""
    return Path(shutil.copytree(whole, tmp_path / "study"))


def test_every_bit_survives(tmp_path):
    records = [odd_record(seed) for seed in range(3)]
    for record in records:
        write_cell(tmp_path, record)
    (packed,) = pack(tmp_path)
    assert (packed.cells, packed.added) == (3, 3)
    assert not (tmp_path / "cells").exists()
    again = read_records(packed.path)
    assert [r.name for r in again] == [r.name for r in records]
    for before, after in zip(records, again, strict=True):
        assert identical(before, after)
        assert json.dumps(before.metadata) == json.dumps(after.metadata)
        for name in METRICS:
            assert before.metrics[name].tobytes() == after.metrics[name].tobytes()


def test_a_packed_study_says_the_same(study):
    before = tiny.numbers(read_results(study))
    main(["pack", str(study)])
    assert not cell_paths(study)
    assert [path.name for path in packed_paths(study)] == ["grid.parquet"]
    assert tiny.numbers(read_results(study)) == before


def test_packed_cells_are_done(study, monkeypatch):
    pack(study)
    monkeypatch.setattr(tasks, "collect", None)
    monkeypatch.setattr(tasks, "learn_policy", None)
    assert compare(tiny.cells(), study, quiet=True) == []
    assert not cell_paths(study)
    other = parse_setup("grid", None, 2, 3)
    with pytest.raises(ValueError, match="holds another study"):
        compare(tasks.plan([other], ["model_free"], {"grid": ["test:0"]}, [0]), study)


def test_new_cells_are_merged(study):
    pack(study)
    assert compare(tiny.cells(3), study, quiet=True) == []
    assert len(cell_paths(study)) == 2
    assert len(read_results(study).records) == 6
    (packed,) = pack(study)
    assert (packed.cells, packed.added) == (6, 2)
    assert (pack(study)[0].cells, pack(study)[0].added) == (6, 0)


class KilledError(BaseException):
    """What a kill looks like from inside."""


@pytest.mark.parametrize("moment", ["write_records", "_remove_empty"])
def test_a_kill_loses_nothing(study, monkeypatch, moment):
    before = tiny.numbers(read_results(study))

    def kill(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(packing, moment, kill)
        with pytest.raises(KilledError):
            pack(study)
    assert tiny.numbers(read_results(study)) == before
    assert pack(study)[0].cells == 4
    assert tiny.numbers(read_results(study)) == before


def test_a_kill_between_write_and_remove_leaves_identical_cells(study, monkeypatch):
    before = tiny.numbers(read_results(study))

    def kill(*_, **__):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", kill)
        with pytest.raises(KilledError):
            pack(study)
    assert len(cell_paths(study)) == 4
    assert len(read_records(packed_paths(study)[0])) == 4
    assert tiny.numbers(read_results(study)) == before
    assert compare(tiny.cells(), study, quiet=True) == []
    assert pack(study)[0].added == 4
    assert not cell_paths(study)


def test_cells_that_differ_are_named(tmp_path):
    write_cell(tmp_path, odd_record())
    pack(tmp_path)
    changed = odd_record(metadata=odd_record().metadata | {"theta": {"g": 2e-300}})
    path = write_cell(tmp_path, changed)
    for read in (read_study, read_results, pack):
        with pytest.raises(ValueError, match="hold own m v=1 test:10 0 with different content"):
            read(tmp_path)
    assert path.exists()


def test_what_was_not_written_well_removes_nothing(tmp_path, monkeypatch):
    path = write_cell(tmp_path, odd_record())
    monkeypatch.setattr(packing, "write_records", lambda path, records: write_records(path, [odd_record(seed=1)]))
    with pytest.raises(ValueError, match="no cell was removed"):
        pack(tmp_path)
    assert path.exists()
    assert not packed_paths(tmp_path)


def test_pack_and_compare_wait_for_each_other(study):
    with study_lock(study, exclusive=False) as mine:
        assert mine
        with pytest.raises(ValueError, match="Another process works on"):
            pack(study)
    with study_lock(study, exclusive=True), pytest.raises(ValueError, match="is being packed"):
        compare(tiny.cells(), study, quiet=True)


@pytest.mark.parametrize("name", ["../evil", "a/b", "..", "", "a\\b", "c:d", "line\nbreak", "x" * 201, "\x1b[31m"])
def test_stored_names_are_never_paths(tmp_path, name):
    with pytest.raises(ValueError, match="cannot be the name of a file"):
        file_name(name)
    plain = {metric: np.ones(6) for metric in METRICS}
    record = odd_record(key=odd_record().key | {"family": name}, metrics=plain)
    folder = tmp_path / "study" / "cells"
    folder.mkdir(parents=True)
    write_records(folder / "x.parquet", [record])
    for command in (["pack"], ["report", "--tensorboard"]):
        with pytest.raises(SystemExit) as stopped:
            main([command[0], str(tmp_path / "study"), *command[1:]])
        assert stopped.value.code == 2
    assert {path.name for path in tmp_path.iterdir()} == {"study"}


@pytest.mark.parametrize(
    "damage",
    [
        {"metadata": odd_record().metadata | {"family": {}}},
        {"metadata": odd_record().metadata | {"family": FACTS | {"states": [1]}}},
        {"metadata": odd_record().metadata | {"reference": {"random": 1}}},
        {"metadata": {k: v for k, v in odd_record().metadata.items() if k != "settings"}},
        {"metadata": odd_record().metadata | {"settings": {"setup": "grid"}}},
        {"metadata": odd_record().metadata | {"theta": {"g": "heavy"}}},
        {"metadata": odd_record().metadata | {"versions": None}},
        {"latents": []},
        {"actions": np.zeros(7, np.int32)},
    ],
)
def test_records_that_do_not_fit_together_are_refused(tmp_path, damage):
    path = write_cell(tmp_path, odd_record(**damage))
    with pytest.raises(ValueError, match="is not a cell of a study"):
        read_records(path)


def test_a_study_of_another_version_is_left_alone(study, capsys):
    save_json(study / "study.json", {"preset": "default"})
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *tiny.COMMAND, "--out", str(study)])
    assert stopped.value.code == 2
    errors = capsys.readouterr().err
    assert "holds a study of version 1 of the random streams and version 1 of the settings" in errors
    assert errors.count("\n") == 1
    assert len(read_results(study).records) == 4
