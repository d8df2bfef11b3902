"""The command line as a user meets it."""

import subprocess
import sys

import pytest

import hipmdp
from hipmdp import cli


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["hipmdp", *arguments])
    cli.main()


def test_demo_prints_a_table_and_writes_a_picture(monkeypatch, capsys, tmp_path):
    run(monkeypatch, "demo", "--out", str(tmp_path / "new"))
    text = capsys.readouterr().out
    assert all(word in text for word in ("grid", "acrobot", "hiv", "class 1", "baseline"))
    picture = (tmp_path / "new" / "demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(list((tmp_path / "new").iterdir())) == 1


def test_bad_output_directory_is_one_sentence_and_exit_code_2(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, "demo", "--out", str(tmp_path / "file"))
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("hipmdp: Cannot write to")
    assert error.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


def test_collect_writes_a_batch_and_a_table(monkeypatch, capsys, tmp_path):
    run(monkeypatch, "collect", "grid", "--instances", "test:1,test:0", "--episodes", "2", "--out", str(tmp_path / "b"))
    text = capsys.readouterr().out
    assert "transitions in" in text
    batch = hipmdp.load_transitions(tmp_path / "b" / "batch.parquet")
    assert batch.thetas == {0: {"theta": 1.0}, 1: {"theta": 0.0}}
    assert batch.episode_count == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("collect", "grd"), "Unknown family 'grd'. Did you mean 'grid'?"),
        (("collect", "grid", "--instances", "tst"), "Did you mean 'test'?"),
        (("instances", "grid", "--draws", "0"), "must be at least 1, got 0, 1 and 2."),
    ],
)
def test_bad_words_are_one_sentence_and_exit_code_2(monkeypatch, capsys, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, *arguments)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_help_of_the_installed_command_shows_an_example():
    result = subprocess.run(
        [sys.executable, "-c", "from hipmdp.cli import main; main()", "demo", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Example: hipmdp demo" in result.stdout
