"""A person with a log of a fleet, and the command line."""

import json
import sys

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hipmdp import cli
from hipmdp.control.config import DDQNConfig
from hipmdp.control.presets import DEFAULT as CONTROL
from hipmdp.data.tables import read_table
from hipmdp.dynamics.presets import DEFAULT as DYNAMICS
from hipmdp.transfer.config import DEFAULT as TRANSFER
from hipmdp.transfer.config import TransferConfig
from hipmdp.transfer.rewards import load_reward
from tests.transfer.fleet import GAINS, SMALL, write_fleet

COLUMNS = ("--instance", "machine", "--episode", "run", "--state", "x", "--action", "push")


def run(capsys, *arguments):
    """(exit code, stdout, stderr)."""
    try:
        cli.main([str(word) for word in arguments])
        code = 0
    except SystemExit as stop:
        code = stop.code
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(DYNAMICS, "fleet-logs", SMALL)
    monkeypatch.setitem(CONTROL, "fleet-logs", DDQNConfig(hidden=(32,), minibatches=5, learning_rate=2e-3))
    monkeypatch.setitem(TRANSFER, "fleet-logs", TransferConfig(imagined_episodes=30, weight_draws=4, look_episodes=8))


def test_from_a_log_to_an_answer(tmp_path, capsys, small, monkeypatch):
    fleet, new = write_fleet(tmp_path / "fleet.csv", GAINS), write_fleet(tmp_path / "new.csv", [1.5], runs=1, seed=5)
    pq.write_table(read_table(fleet), tmp_path / "fleet.parquet")
    model, facts = tmp_path / "fleet.hipmdp", tmp_path / "facts.json"
    arguments = ("--logs", tmp_path / "fleet.parquet", *COLUMNS, "--out", model, "--json", facts)
    code, out, err = run(capsys, "pretrain", *arguments, "--reward", "gain")
    assert code == 0, err
    assert "1200 transitions of 10 instances" in out
    assert "actions: left, none, right" in out
    assert json.loads(facts.read_text())["transitions"] == 1200

    answer = tmp_path / "answer.json"
    code, out, err = run(capsys, "adapt", model, "--logs", new, "--at", "1.0", "--horizon", "3", "--json", answer)
    assert code == 0, err
    told = json.loads(answer.read_text())
    assert told["recommended"] == "left"
    assert "Recommended now: left" in out
    assert told["neighbours"][0]["name"] in ("m7(1.2)", "m8(1.6)")
    assert [len(told["outlook"][a]["mean"]) for a in ("left", "none", "right")] == [4, 4, 4]
    assert told["outlook"]["left"]["mean"][1][0] == pytest.approx(0.9 - 0.45, abs=0.1)
    assert told["warnings"] == []

    # Without a reward: everything but the policy.
    code, out, _ = run(capsys, "adapt", model, "--logs", new, "--reward", "none")
    assert (code, "Recommended" in out, "No reward, so no policy" in out) == (0, False, True)
    (tmp_path / "mine.py").write_text("def far(state, action, next_state):\n    return next_state[0]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert float(load_reward("mine:far")(0, 0, [3.0])) == 3.0

    code, out, _ = run(capsys, "info", model, "--json", tmp_path / "info.json")
    assert code == 0
    assert all(word in out for word in ("fleet-logs", "embedded", "m8(1.6)", "held out error", "left, none, right"))
    assert len(json.loads((tmp_path / "info.json").read_text())["latents"]) == 10

    for arguments, message in (
        (("adapt", model), "was learned from logs and has no environment: give --logs"),
        (("adapt", model, "--logs", fleet), "The log holds 10 systems"),
        (("adapt", model, "--logs", new, "--at", "1,2"), "--at must be 1 numbers (x)"),
        (("adapt", model, "--logs", new, "--horizon", "0"), "horizon must be at least 1"),
        (("adapt", model, "--logs", new, "--reward", "mine:near"), "has no function 'near'"),
        (("adapt", model, "--logs", new, "--reward", "much"), "Unknown reward"),
        (("adapt", model, "--logs", new, "--only", "me"), "Unknown system in the log 'me'"),
        (("pretrain", "--logs", new, "--action", "push"), "say which columns are the state: --state"),
        (("pretrain",), "either a batch from `hipmdp collect` or --logs"),
        (("info", new), "is not a hipmdp model file"),
    ):
        code, out, err = run(capsys, *arguments)
        assert code == 2
        assert message in err
        assert err.count("\n") == 1, err


def test_debug_shows_the_traceback(capsys, tmp_path):
    with pytest.raises(ValueError, match="Cannot read"):
        cli.main(["info", str(tmp_path / "none.hipmdp"), "--debug"])
    code, _, err = run(capsys, "info", tmp_path / "none.hipmdp")
    assert (code, err) == (2, f"hipmdp: Cannot read {str(tmp_path / 'none.hipmdp')!r}: No such file or directory.\n")


def test_what_nobody_thought_of_is_one_line_too(capsys, monkeypatch):
    def broken(path: str) -> None:
        """Fail."""
        raise RuntimeError("out of luck")

    monkeypatch.setattr(cli, "command", lambda name: broken)
    code, _, err = run(capsys, "info", "--path", "x")
    assert (code, err) == (1, "hipmdp: unexpected RuntimeError: out of luck (--debug shows where; please report it).\n")


def test_without_a_command_there_is_help(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert all(name in out for name in cli.COMMANDS)


WORDS = (
    "demo", "collect", "pretrain", "adapt", "compare", "report", "info", "check-env", "instances", "grud", "grid",
    "--logs", "--state", "x,v", "--action", "push", "--seed", "-1", "nan", "1e400", "--episodes", "0", "--instance",
    "test:999", "a=b", "--out", "\x00", "/dev/null/x", "--method", "magic", "--preset", "best", "none.parquet",
    "bad.csv", "bad.hipmdp", "--json", "", "--reward", "no:thing", "module:name", "--jobs", "x", "--instances",
    "--help=",
)  # fmt: skip


@settings(max_examples=250, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_any_words_get_an_answer_in_words(tmp_path, capsys, monkeypatch, words):
    """Nothing here can be done: there are no such files, and whatever would begin real work is stopped at its door."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("x,v,push\n1,2,\n,,left\n")
    (tmp_path / "bad.hipmdp").write_bytes(b"hipmdp model 1\n9999\n{}")
    for module, name in (("collect", "run_collect"), ("compare", "run_compare"), ("adapt", "learn_policy"),
                         ("demo", "compare"), ("instances", "make_sets")):  # fmt: skip
        monkeypatch.setattr(sys.modules[f"hipmdp.cli.{module}"], name, refuse, raising=False)
    code, out, err = run(capsys, *words)
    assert code in (0, 2), err
    assert "Traceback" not in out + err
    assert err if code == 2 else out


def refuse(*arguments, **options):
    raise ValueError("not here")
