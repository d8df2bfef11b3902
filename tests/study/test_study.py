"""Studies are killed, resumed, shared and broken; their numbers stay the same."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import hipmdp
from hipmdp.cli import main
from hipmdp.study import tasks
from hipmdp.study.cells.files import read_records
from hipmdp.study.compare import Executor, compare
from hipmdp.study.results import Results, read_results
from hipmdp.study.scheduler import one_thread
from hipmdp.study.store import run_task
from hipmdp.study.summary import summary_rows, summary_table
from tests.study import tiny


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole")
    assert compare(tiny.cells(), out, quiet=True) == []
    return out


def start(out: Path, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-c", "from hipmdp.cli import main; main()", "compare", *tiny.COMMAND]
    return subprocess.Popen(
        [*command, "--seeds", "2", "--out", str(out), *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def done(out: Path) -> int:
    return sum(not path.name.startswith(".") for path in out.glob("cells/**/*.parquet"))


def test_a_cell_is_what_learn_policy_says(whole):
    (record,) = read_records(whole / "cells" / "grid" / "model_free" / "plain" / "test1-seed1.parquet")
    family = hipmdp.make("grid")
    batch = hipmdp.collect(family, "train", 2, 1, quiet=True)
    run = hipmdp.learn_policy(hipmdp.pretrain(batch, "model_free", 1), family, "test:1", 2, 1, quiet=True)
    np.testing.assert_array_equal(record.metrics["returns"], run.returns)
    np.testing.assert_array_equal(record.metrics["learning_returns"], run.learning_returns)
    assert record.name == ("grid", "model_free", "plain", "test:1", 1)
    assert record.metadata["versions"]["hipmdp"] == hipmdp.__version__
    assert record.metadata["settings"]["setup"]["training_episodes"] == 2
    assert len(record.states) == len(record.actions) + 1


def test_killed_and_resumed_the_numbers_are_the_same(whole, tmp_path):
    for wanted in (0, 1):
        process = start(tmp_path)
        wait_for(lambda process=process, wanted=wanted: done(tmp_path) > wanted or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert 1 <= done(tmp_path) < 4
    assert compare(tiny.cells(), tmp_path, quiet=True) == []
    assert tiny.numbers(read_results(tmp_path)) == tiny.numbers(read_results(whole))
    assert not list(tmp_path.glob("work/*"))


def test_two_processes_share_one_directory(whole, tmp_path):
    both = [start(tmp_path) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert tiny.numbers(read_results(tmp_path)) == tiny.numbers(read_results(whole))


def test_several_processes_give_the_same_cells(whole, tmp_path):
    assert compare(tiny.cells(), tmp_path, Executor(jobs=2), quiet=True) == []
    assert tiny.numbers(read_results(tmp_path)) == tiny.numbers(read_results(whole))


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", "--xla_cpu_multi_thread_eigen=false"), ("--mine=1", "--mine=1 --xla_cpu_multi_thread_eigen=false")],
)
def test_single_threaded_processes_keep_the_flags(monkeypatch, given, expected):
    """Numbers depend on XLA's flags: a cell must not have others in a process or on a cluster than here."""
    monkeypatch.setenv("XLA_FLAGS", given)
    assert one_thread() == expected


def test_what_is_there_needs_nothing(whole, tmp_path, monkeypatch):
    shutil.copytree(whole / "cells", tmp_path / "cells")
    monkeypatch.setattr(tasks, "collect", None)
    assert compare(tiny.cells(), tmp_path, quiet=True) == []
    assert not (tmp_path / "batches").exists()


def test_ctrl_c_keeps_work_and_an_error_does_not(tmp_path):
    setup = tiny.cells(1)[0].setup
    for kind, kept in ((Interrupted, True), (Broken, False)):
        cell = kind(setup, 0, "model_free", "model_free", "test:0")
        work = tmp_path / "work" / "cells-grid-model_free-plain-test0-seed0"
        work.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(KeyboardInterrupt):
            run_task(tmp_path, cell, 1)
        assert work.exists() == kept


class Interrupted(tasks.CellTask):
    """Somebody presses Ctrl-C."""

    def make(self, inputs, out, work, cores):
        raise KeyboardInterrupt


def test_a_killed_study_leaves_no_processes(tmp_path):
    process = start(tmp_path, "--jobs", "2")
    assert wait_for(lambda: list(tmp_path.glob("work/*")) or process.poll() is not None)
    workers = children_of(process.pid)
    process.kill()
    process.communicate()
    assert workers
    assert wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def children_of(parent: int) -> list[int]:
    """From /proc, as `ps` is not everywhere: the fourth field of stat, counted from behind the name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def wait_for(condition, seconds: float = 120) -> bool:
    """Whether it came true in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


class Broken(tasks.CellTask):
    """A cell that cannot be made."""

    def make(self, inputs, out, work, cores):
        raise RuntimeError("the pendulum fell off")


def test_a_failed_cell_is_recorded_and_the_others_run(tmp_path):
    good = tiny.cells(1)
    bad = Broken(good[0].setup, 7, "model_free", "model_free", "test:0")
    failed = compare([bad, *good], tmp_path, quiet=True)
    assert [(cell, reason) for cell, reason in failed] == [(bad, "the pendulum fell off")]
    assert all((tmp_path / cell.path).exists() for cell in good)
    kept = json.loads((tmp_path / bad.path).with_suffix(".error.json").read_text())
    assert "RuntimeError" in kept["details"]
    # Once it works, nothing is left of the error.
    mended = tasks.CellTask(bad.setup, 7, "model_free", "model_free", "test:0")
    assert compare([mended], tmp_path, quiet=True) == []
    assert not list(tmp_path.rglob("*.error.json"))


def test_what_needs_a_failed_task_fails_too(tmp_path, monkeypatch):
    def collect(*_, **__):
        raise ValueError("no such patient")

    monkeypatch.setattr(tasks, "collect", collect)
    failed = compare(tiny.cells(1), tmp_path, quiet=True)
    assert len(failed) == 2
    assert all("models" in reason and "failed" in reason for _, reason in failed)
    assert "no such patient" in next(tmp_path.glob("batches/*.error.json")).read_text()


def test_a_process_that_dies_fails_only_its_task(tmp_path):
    setup = tiny.cells(1)[0].setup
    deadly = Deadly(setup, 9, "model_free", "model_free", "test:0")
    others = [Waiting(setup, seed, "model_free", "model_free", "test:0") for seed in range(3)]
    failed = compare([others[0], deadly, *others[1:]], tmp_path, Executor(jobs=2), quiet=True)
    assert [cell for cell, _ in failed] == [deadly]
    assert "died" in failed[0][1]


class Waiting(tasks.CellTask):
    """A cell that is under way until the process of another one dies."""

    @property
    def needs(self):
        return ()

    def make(self, inputs, out, work, cores):
        wait_for(lambda: list(out.parent.glob("*.died")), seconds=60)
        out.write_text("done")


class Deadly(tasks.CellTask):
    """A cell whose process dies, as when memory runs out."""

    @property
    def needs(self):
        return ()

    def make(self, inputs, out, work, cores):
        out.with_name("it.died").touch()
        os._exit(1)


def test_the_command_line_says_so(tmp_path, monkeypatch, capsys):
    def make(*_, **__):
        raise RuntimeError("it rained")

    monkeypatch.setattr(tasks.CellTask, "make", make)
    monkeypatch.setattr(sys, "argv", ["hipmdp", "compare", *tiny.COMMAND, "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    errors = capsys.readouterr().err
    assert "cells/grid/model_free/plain/test0-seed0 failed: it rained" in errors
    assert "2 of 2 cells failed" in errors


def test_a_directory_holds_one_study(whole):
    with pytest.raises(ValueError, match="holds another study"):
        compare([*tasks.plan([tiny.parse_setup("grid", None, 2, 3)], ["model_free"], {"grid": ["test:0"]}, [0])], whole)


def test_pairs_share_their_seeds(whole):
    records = read_results(whole).records
    other = [replace(r, key=r.key | {"method": "linear", "seed": r.key["seed"] + 1}) for r in records]
    results = Results(records + other)
    ours, theirs = results.pair("grid", "model_free", "linear")
    # Of model_free's seeds 0, 1 and linear's 1, 2 (which are model_free's 0, 1) only 1 is common.
    assert len(ours) == len(theirs) == 1
    np.testing.assert_array_equal(ours[0], results.table("grid", "model_free")[1])
    np.testing.assert_array_equal(theirs[0], results.table("grid", "model_free")[0])


def test_cells_of_an_incomplete_seed_are_named(whole):
    results = Results(read_results(whole).records[:-1])
    assert results.seeds("grid", "model_free") in ([0], [1])
    assert results.incomplete("grid") == {"model_free": 1}
    console = Console(record=True, width=80)
    console.print(summary_table(results, "grid"))
    assert "Left out" in console.export_text()


def test_results_as_tables(whole, tmp_path):
    results = read_results(whole)
    table = results.table("grid", "model_free")
    assert table.shape == (2, 2, 2)
    instance = hipmdp.make("grid").instances("test")[1]
    record = results.select(instance="test:1", seed=1)[0]
    assert table[1, 1, 0] == pytest.approx(instance.score(record.metrics["returns"][0]))
    for path in results.write(tmp_path):
        assert path.stat().st_size > 0
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 2 * 2
    rows = summary_rows(results)
    means = [row["mean"] for row in rows if row["what"] == "score" and row["episode"] == 0]
    assert means == [pytest.approx(table[..., 0].mean())]


def test_damaged_cells_are_named(tmp_path):
    folder = tmp_path / "cells" / "grid"
    folder.mkdir(parents=True)
    (folder / "test0-seed0.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(ValueError, match=r"test0-seed0\.parquet' is damaged"):
        read_results(tmp_path)
    with pytest.raises(ValueError, match="no finished cells"):
        read_results(tmp_path / "cells")
