"""A study, a batch or a model from a stranger: nothing in it is imported, and its names never become paths."""

import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp._files import save_json
from hipmdp.cli import main
from hipmdp.data.logs.parquet import save_transitions
from hipmdp.study.cells.files import write_records
from hipmdp.study.cells.record import METRICS
from tests.study import tiny
from tests.study.test_pack import FACTS, odd_record
from tests.systems.fleet import fleet

EVIL = "evil_module_of_a_stranger"
NAMES = ["../../evil", "/tmp/evil", "a/b", "..", "x" * 300, "a\x1b[31mb", "<script>"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with a module in it that tells when it is imported, on the path and current."""
    (tmp_path / f"{EVIL}.py").write_text(
        "from pathlib import Path\nPath('ran').touch()\nfamily = method = Method = 1\n"
    )
    (tmp_path / "study").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    assert not (tmp_path / "ran").exists()
    assert EVIL not in sys.modules


def run(capsys, *words):
    """The exit code; an error is one line."""
    code: object = 0
    try:
        main([str(word) for word in words])
    except SystemExit as stopped:
        code = stopped.code
    assert code == 0 or capsys.readouterr().err.count("\n") == 1
    return code


def write_cell(folder: Path, **changes) -> None:
    metadata = odd_record().metadata | {
        "settings": {"setup": {"family": f"{EVIL}:family", "options": []}, "source": f"{EVIL}:Method"},
        "family": FACTS | {"picture": f"{EVIL}:picture"},
    }
    plain = {metric: np.ones(6) for metric in METRICS}
    folder.mkdir(parents=True, exist_ok=True)
    key = odd_record().key | changes
    write_records(folder / "x.parquet", [odd_record(key=key, metrics=plain, metadata=metadata)])


def outside(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()} - {"study", "out", f"{EVIL}.py"}


def test_a_study_that_names_modules_runs_none(place, capsys):
    write_cell(place / "study" / "cells", family=f"{EVIL}.family", method=f"{EVIL}.Method")
    save_json(place / "study" / "study.json", {"preset": f"{EVIL}:preset", "family": f"{EVIL}:family"})
    assert run(capsys, "report", "study", "--html", "--tensorboard", "--out", "out") == 0
    assert run(capsys, "pack", "study") == 0
    assert run(capsys, "report", "study", "--html", "--out", "out") == 0
    assert run(capsys, "compare", *tiny.COMMAND, "--out", "study") == 2
    assert run(capsys, "compare", *tiny.COMMAND, "--out", "study", "--repair") == 2
    assert outside(place) == set()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", ["family", "method", "variant", "instance"])
def test_names_of_cells_are_never_paths(place, capsys, part, name):
    write_cell(place / "study" / "cells", **{part: name})
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert run(capsys, "report", "study", "--tensorboard", "--out", "out/a/b") in (0, 2)
    assert run(capsys, "pack", "study") in (0, 2)
    assert outside(place) == set()
    written = {path for path in place.rglob("*") if path.is_file()} - set(before)
    allowed = (place / "out" / "a" / "b", place / "study" / "packed")
    assert all(any(path.is_relative_to(folder) for folder in allowed) for path in written)
    assert not Path("/tmp/evil").exists()


def test_a_model_and_a_batch_that_name_modules_run_none(place, capsys):
    batch = fleet(place / "study", (-1.0, 1.0), runs=1)
    own = replace(batch.specification, family=f"{EVIL}:family")
    model = hipmdp.pretrain(batch, "model_free", quiet=True)
    model = replace(model, specification=own, metadata=model.metadata | {"family": f"{EVIL}:family"})
    model.save("study/m.hipmdp")
    assert run(capsys, "info", "study/m.hipmdp") == 0
    assert run(capsys, "adapt", "study/m.hipmdp", "--instance", "test:0") == 2
    columns = {name: getattr(batch, name) for name in hipmdp.data.transitions.COLUMNS}
    hostile = hipmdp.Transitions(own, columns, {}, {0: "../../evil", 1: "a/b"})
    save_transitions(hostile, "study/b.parquet")
    assert run(capsys, "info", "study/b.parquet") == 0
    for family in ("../../evil", "/tmp/evil"):
        changed = hipmdp.Transitions(replace(own, family=family), columns)
        save_transitions(changed, "study/b.parquet")
        assert run(capsys, "pretrain", "study/b.parquet", "--method", "model_free") == 2
    assert outside(place) == set()
    assert jax.tree.leaves(hipmdp.load("study/m.hipmdp").support)[0].shape[0] > 0
