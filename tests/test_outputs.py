"""Outputs are tried before the work, and a full disk leaves nothing half-written."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import hipmdp
from hipmdp import cli
from hipmdp._errors import LARGEST_SEED, check_episodes, check_seed, whole
from hipmdp._files import DiskError, atomic_write
from hipmdp._outputs import try_outputs
from hipmdp._tables import plain, plain_table
from hipmdp.study.store import Outcome, Task, failure, run_task
from tests.dynamics.toys import random_batch
from tests.systems.full_disk import full_disk


def test_what_can_be_written_is_tried_without_a_trace(tmp_path):
    (tmp_path / "old.json").write_text("mine")
    new = tmp_path / "a" / "b"
    try_outputs([new, None], [new / "facts.json", tmp_path / "old.json", None])
    assert [path.name for path in tmp_path.rglob("*")] == ["old.json"]
    assert (tmp_path / "old.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("directories", "files", "words"),
    [
        ([], ["."], "it is a directory"),
        ([], ["missing/x.json"], "missing"),
        ([], ["file/x.json"], "file"),
        (["file"], [], "Cannot write to"),
        (["file/deep"], [], "Not a directory"),
        (["n" * 256], [], "File name too long"),
        ([], ["n" * 256], "File name too long"),
        (["new"], ["new"], "named twice"),
        ([], ["one", "one"], "named twice"),
        (["new", "file"], [], "Not a directory"),
        ([], ["null\0"], "null"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path, monkeypatch, directories, files, words):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    with pytest.raises(ValueError, match=r"Cannot write|needs a path") as caught:
        try_outputs([Path(name) for name in directories], [Path(name) for name in files])
    assert words in str(caught.value)
    assert [path.name for path in tmp_path.rglob("*")] == ["file"]


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path):
    batch, path = random_batch(hipmdp.make("grid"), [0, 1], episodes=2), tmp_path / "batch.parquet"
    path.write_text("old")
    model = hipmdp.load("grid")
    for save in (
        lambda: hipmdp.save_transitions(batch, path),
        lambda: model.save(tmp_path / "batch.parquet"),
        lambda: write(path, "x" * 2000),
    ):
        with full_disk(1000), pytest.raises(ValueError, match=r"Cannot write '.*batch\.parquet': File too large\."):
            save()
        assert path.read_text() == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["batch.parquet"]


def write(path, text):
    with atomic_write(path) as temporary:
        temporary.write_text(text)


def test_a_command_on_a_full_disk_ends_with_one_sentence(tmp_path, capsys):
    with full_disk(100), pytest.raises(SystemExit) as caught:
        cli.main(["info", "grid", "--json", str(tmp_path / "facts.json")])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert "facts.json': File too large." in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


class Large(Task):
    """A cell that has done some work, and then does not fit on the disk."""

    path = Path("cells/large.parquet")
    needs = ()

    def make(self, inputs, out, work, cores):
        work.mkdir(parents=True, exist_ok=True)
        (work / "checkpoint").touch()
        write(work / "more", "x" * 20_000)

    def check(self, path):
        raise AssertionError("It is never there.")


def test_a_study_on_a_full_disk_says_so_and_keeps_what_was_done(tmp_path, capsys):
    """Not even the error fits: it is said, with the file's name, and the study goes on."""
    task = Large()
    with full_disk():
        assert run_task(tmp_path, task, 1) is Outcome.FAILED
    error = capsys.readouterr().err
    assert "cells/large failed: Cannot write" in error
    assert "more': File too large." in error
    assert "large.error.json': File too large." in error
    assert error.count("\n") == 1
    assert "could not be written" in failure(tmp_path, task)
    assert [path.name for path in tmp_path.rglob("checkpoint")] == ["checkpoint"]
    # With room for the error it is kept, as what was done is.
    with full_disk(15_000):
        assert run_task(tmp_path, task, 1) is Outcome.FAILED
    assert "more': File too large." in failure(tmp_path, task)
    assert list(tmp_path.rglob("checkpoint"))
    (tmp_path / "cells" / "large.error.json").write_bytes(b"\xff\xfe\x00")
    assert "is damaged" in failure(tmp_path, task)


def test_a_disk_error_is_a_value_error():
    assert issubclass(DiskError, ValueError)


@given(st.text())
def test_texts_of_a_table_are_shown_as_they_are(text):
    """Whatever stands in a name: no markup, no control characters, no error."""
    table = plain_table(text, [text, "b"], [[text, text]], caption=text, left=[text])
    console = Console(width=1000, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    shown = console.export_text()
    console.file.close()
    assert all(character.isprintable() or character == "\n" for character in shown)


@pytest.mark.parametrize("name", ["[off]", "[/red]", "[bold]x", "a[/]b", "\x1b[31mred", "[link=x]y[/link]", "back\\"])
def test_markup_in_names_is_text(name):
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(plain_table(name, [name], [[name]], caption=name))
    shown = console.export_text()
    console.file.close()
    assert shown.count(plain(name)) == 4
    assert "\x1b" not in plain(name)


@given(st.integers())
def test_a_seed_is_any_whole_number_of_64_bits(seed):
    if 0 <= seed <= LARGEST_SEED:
        assert check_seed(seed) == seed
    else:
        with pytest.raises(ValueError, match="seed must be at"):
            check_seed(seed)


@pytest.mark.parametrize("value", [True, 1.5, "3", None, float("nan")])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(ValueError, match="n must be a whole number"):
        whole("n", value)


def test_episodes_are_limited_by_their_steps():
    assert check_episodes(500_000, 200) == 500_000
    with pytest.raises(ValueError, match="at most 500000 where an episode has 200 steps, got 500001"):
        check_episodes(500_001, 200)
