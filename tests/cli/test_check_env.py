"""`hipmdp check-env`: one line per check, and the exit code."""

import pytest

from hipmdp.cli.check_env import check_env


def test_all_is_well(capsys):
    check_env("tests.families.walks:WALK")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11
    assert all(line.startswith("✓ ") for line in lines)
    assert lines[0] == "✓ spaces: 1 observed numbers, 2 actions, horizon 6"


def test_what_fails_is_named_and_the_exit_code_is_1(tmp_path, monkeypatch, capsys):
    (tmp_path / "deaf.py").write_text(
        "from tests.families.walks import Walk, walk\nfamily = walk(lambda theta: Walk(1.0))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit) as stopped:
        check_env("deaf:family")
    assert stopped.value.code == 1
    output = capsys.readouterr()
    assert "✗ length: " in output.out
    assert "2 of 10 checks failed for deaf:family" in output.err


@pytest.mark.parametrize("name", ["nowhere:family", "tests.families.walks:Walk", "wlak"])
def test_what_cannot_be_loaded_is_one_sentence(name):
    with pytest.raises(ValueError, match=r"no module|not a family|Unknown family"):
        check_env(name)


@pytest.mark.parametrize("steps", [0, 10**9])
def test_steps_have_a_range(steps):
    with pytest.raises(ValueError, match="--steps must be at"):
        check_env("tests.families.walks:WALK", steps=steps)
