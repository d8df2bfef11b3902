"""The command line as a user meets it."""

import subprocess
import sys

import pytest

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


def test_help_of_the_installed_command_shows_an_example():
    result = subprocess.run(
        [sys.executable, "-c", "from hipmdp.cli import main; main()", "demo", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Example: hipmdp demo" in result.stdout
