"""Files: whole or not at all, durable, private, and no left-overs."""

import os
import resource
import subprocess
import sys
from contextlib import contextmanager

import pyarrow as pa
import pytest

from hipmdp._files import (
    LONGEST_NAME,
    atomic_write,
    check_writable,
    claim_directory,
    file_name,
    read_json,
    remove_leftovers,
    save_json,
)
from hipmdp.data.digest import save_table


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_block_that_fails_changes_nothing(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_temporary_names_are_new_and_beside_the_file(tmp_path):
    seen = set()
    for _ in range(3):
        with atomic_write(tmp_path / "a.txt") as temporary:
            assert temporary.parent == tmp_path
            assert temporary.suffix == ".txt"
            assert temporary.stat().st_size == 0
            seen.add(temporary.name)
            temporary.write_text("new")
    assert len(seen) == 3
    assert names(tmp_path) == ["a.txt"]


def test_a_temporary_file_is_written_in_place(tmp_path):
    with atomic_write(tmp_path / "a.json") as outer:
        save_json(outer, {"x": 1})
        assert names(tmp_path) == [outer.name]
    assert read_json(tmp_path / "a.json") == {"x": 1}


def test_a_link_at_the_target_is_replaced_and_not_followed(tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("mine")
    (tmp_path / "a.txt").symlink_to(other)
    with atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert other.read_text() == "mine"
    assert not (tmp_path / "a.txt").is_symlink()


LEFT = ".a.0123456789abcdef.tmp.txt"


def test_left_overs_of_killed_processes_are_removed(tmp_path):
    script = (
        "import os, sys; from pathlib import Path; from hipmdp._files import atomic_write\n"
        "with atomic_write(Path(sys.argv[1])) as t: t.write_text('half'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.txt")], check=False)
    assert len(names(tmp_path)) == 1
    assert names(tmp_path)[0].startswith(".a.")
    (tmp_path / LEFT).touch()
    for kept in (".a.txt", "a.tmp.txt", ".b.0123.tmp.txt"):
        (tmp_path / kept).touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / LEFT).touch()
    claim_directory(tmp_path / "work.json", {}, "work")
    assert names(tmp_path) == [".a.txt", ".b.0123.tmp.txt", "a.tmp.txt", "below", "work.json"]
    assert names(tmp_path / "below") == [LEFT]
    remove_leftovers(tmp_path, below=True)
    assert names(tmp_path / "below") == []


def test_the_next_write_of_a_file_removes_what_was_left_of_it(tmp_path):
    (tmp_path / LEFT).touch()
    (tmp_path / LEFT.replace("a", "b", 1)).touch()
    save_json(tmp_path / "a.txt", {})
    assert names(tmp_path) == [LEFT.replace("a", "b", 1), "a.txt"]


def test_what_is_being_written_is_no_left_over(tmp_path):
    with atomic_write(tmp_path / "a.txt") as temporary:
        remove_leftovers(tmp_path)
        with atomic_write(tmp_path / "a.txt") as second:
            second.write_text("second")
        assert temporary.exists()
        temporary.write_text("first")
    assert (tmp_path / "a.txt").read_text() == "first"


@contextmanager
def file_size_limit(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_sentence_and_nothing_half_written(tmp_path):
    path = tmp_path / "a.json"
    save_json(path, {"x": 1})
    table = pa.table({"x": [os.urandom(9000).hex() for _ in range(5)]})
    for write in (lambda: save_json(path, {"x": "y" * 9000}), lambda: save_table(tmp_path / "t.parquet", table)):
        with file_size_limit(4096), pytest.raises(ValueError, match=r"Cannot write '.*': File too large\.") as caught:
            write()
        assert "\n" not in str(caught.value)
    assert read_json(path) == {"x": 1}
    assert names(tmp_path) == ["a.json"]


def test_outputs_that_cannot_be_written_are_told(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for path, told in (
        (tmp_path, "it is a directory"),
        (tmp_path / "none" / "a.txt", "there is no directory"),
        (tmp_path / "file" / "a.txt", "there is no directory"),
        (tmp_path / "pipe", "it is not a file"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(ValueError, match=told):
            check_writable(path)
        with pytest.raises(ValueError, match=told), atomic_write(path):
            pass
    check_writable(tmp_path / "good.txt")
    # Nearly as long as a name may be.
    check_writable(tmp_path / ("ä" * 120 + ".txt"))
    assert names(tmp_path) == ["file", "pipe"]


def test_names_of_files():
    assert file_name("acrobot-sd0.25") == "acrobot-sd0.25"
    assert file_name("ä" * (LONGEST_NAME // 2)) == "ä" * (LONGEST_NAME // 2)
    for bad in ("ä" * (LONGEST_NAME // 2 + 1), "/etc", "a/b", "..", ".", "", "a\0", "a\n", "\u202e", "C:x", "a\\b"):
        with pytest.raises(ValueError, match="cannot be the name of a file"):
            file_name(bad)
