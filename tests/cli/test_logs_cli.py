"""A person with a log of a fleet, and the command line."""

import json
import sys
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hipmdp
from hipmdp import cli
from hipmdp.data.logs.tables import read_table
from hipmdp.imagination.reward import load_reward
from hipmdp.settings import recipe
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import DynamicsConfig
from tests.fuzz.effort import examples
from tests.systems.fleet import GAINS, SMALL, fleet, write_fleet
from tests.systems.tiny import tiny_policy

COLUMNS = ("--instance-column", "machine", "--episode", "run", "--state", "x", "--action", "push")


def run(capsys, *arguments):
    """(exit code, stdout, stderr)."""
    try:
        cli.main([str(word) for word in arguments])
        code = 0
    except SystemExit as stop:
        code = stop.code
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.fixture
def small(monkeypatch):
    real = DDQNConfig(hidden=(32,), minibatches=5, learning_rate=2e-3)
    imagined = replace(real, lanes=10, epsilon_decay=0.99, epsilon_floor=0.02)
    adaptation = AdaptationConfig(imagined_episodes=30, weight_draws=4, validation_episodes=8)
    adaptation = replace(adaptation, dqn=imagined)
    monkeypatch.setattr(recipe, "dynamics", lambda instances: SMALL)
    monkeypatch.setattr(recipe, "adaptation", lambda *given, **options: adaptation)
    monkeypatch.setattr(recipe, "amortise", lambda *given: tiny_policy())


def test_from_a_log_to_an_answer(tmp_path, capsys, small, monkeypatch):
    old, new = write_fleet(tmp_path / "fleet.csv", GAINS), write_fleet(tmp_path / "new.csv", [1.5], runs=1, seed=5)
    pq.write_table(read_table(old), tmp_path / "fleet.parquet")
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
    answered = json.loads(answer.read_text())
    assert answered["recommended"] == "left"
    assert "Recommended now: left" in out
    assert answered["neighbours"][0]["name"] in ("m7(1.2)", "m8(1.6)")
    assert [len(answered["forecast"][a]["mean"]) for a in ("left", "none", "right")] == [4, 4, 4]
    assert answered["forecast"]["left"]["mean"][1][0] == pytest.approx(0.9 - 0.45, abs=0.1)
    assert answered["warnings"] == []

    # The best action leads to 0.45: a limit above that leaves the second best.
    care = ("--limit", "x>=0.7", "--limit", "x<3", "--within", "1", "--risk", "0.1", "--caution", "0.9")
    code, out, err = run(capsys, "adapt", model, "--logs", new, "--at", "1.0", *care, "--json", answer)
    assert code == 0, err
    answered = json.loads(answer.read_text())
    assert answered["recommended"] == "none"
    assert "Note: left has the highest value, but breaks x>=0.7 and x<3 within 1 steps with a chance of" in out
    assert all(word in out for word in ("chance: of breaking x>=0.7 and x<3", "worst 10 %", "(high)"))
    assert answered["limits"] == {"limits": ["x>=0.7", "x<3"], "risk": 0.1, "within": 1}
    assert [answered["values"][a]["allowed"] for a in ("left", "none", "right")] == [False, True, True]
    assert answered["values"]["left"]["chance"] > 0.9
    assert answered["values"]["none"]["cautious"] <= answered["values"]["none"]["mean"]
    assert len(answered["remarks"]) == 1

    # Without a reward: everything but the policy.
    code, out, _ = run(capsys, "adapt", model, "--logs", new, "--reward", "none")
    assert (code, "Recommended" in out, "No reward, so no policy" in out) == (0, False, True)
    (tmp_path / "mine.py").write_text("def far(state, action, next_state):\n    return next_state[0]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert float(load_reward("mine:far")(0, 0, [3.0])) == 3.0

    code, out, _ = run(capsys, "info", model, "--json", tmp_path / "info.json")
    assert code == 0
    assert all(
        word in out for word in ("fleet-logs", "embedded", "m8(1.6)", "error on training episodes", "left, none, right")
    )
    assert len(json.loads((tmp_path / "info.json").read_text())["latents"]) == 10

    for arguments, message in (
        (("adapt", model), "was learned from logs and has no environment: give --logs"),
        (("adapt", model, "--logs", old), "The log holds 10 systems"),
        (("adapt", model, "--logs", new, "--instance", "machine"), "with --logs use --instance-column COLUMN"),
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


@pytest.fixture
def remembering(tmp_path):
    """A model that remembers its columns; it identifies nothing, so that an answer ends where reading has succeeded."""
    batch = fleet(tmp_path, GAINS[:2], runs=1)
    model = hipmdp.pretrain(batch, "scratch", config=DynamicsConfig(hidden=(4,), latent_size=2), quiet=True)
    columns = {"state": ["x"], "action": "push", "instance": "machine", "episode": "run", "reward": "gain"}
    columns |= {"terminated": "end"}
    replace(model, metadata={**model.metadata, "columns": columns}).save(tmp_path / "fleet.hipmdp")
    return tmp_path / "fleet.hipmdp"


READ = "has no latents to identify a system by"


def test_a_remembered_column_that_is_missing_is_an_error(tmp_path, capsys, remembering):
    """Without its episode column a log would be one long run, and a gap between runs one step of it."""
    new = write_fleet(tmp_path / "new.csv", [1.5], runs=3)
    text = new.read_text()
    for column, other, arguments, message in (
        ("run", "part", (), "The model remembers the episode column 'run', which"),
        ("run", "part", (), "(it has machine, part, x, push, gain): name it with --episode, or say --no-episode if"),
        ("run", "part", ("--episode", "part"), READ),
        ("run", "part", ("--no-episode",), READ),
        ("run", "part", ("--no-episode", "--episode", "part"), "--episode names a column, and --no-episode says that"),
        ("run", "part", ("--episode", "parts"), "Unknown column of the logs 'parts'. Did you mean 'part'?"),
        ("machine", "unit", (), "name it with --instance-column, or say --no-instance-column if each file is one"),
        ("machine", "unit", ("--no-instance-column",), READ),
        ("machine", "unit", ("--instance-column", "unit"), READ),
        ("push", "do", (), "The model remembers the action column 'push', which"),
        ("push", "do", ("--action", "do"), READ),
        ("x", "y", (), "rename it in the log"),
        ("gain", "pay", (), READ),
        ("gain", "end", (), "column 'end' is '"),
    ):
        head, rest = text.split("\n", 1)
        new.write_text(head.replace(column, other) + "\n" + rest)
        code, _, err = run(capsys, "adapt", remembering, "--logs", new, *arguments)
        assert code == 2
        assert message in err
        assert err.count("\n") == 1, err


@pytest.mark.filterwarnings("always::hipmdp.LeftOutWarning")
def test_bad_rows_may_be_split_off(tmp_path, capsys, remembering):
    new = write_fleet(tmp_path / "new.csv", [1.5], runs=2)
    lines = new.read_text().splitlines()
    lines[9] = lines[9].replace("m0", "").replace("(1.5)", "")
    new.write_text("\n".join(lines))
    code, _, err = run(capsys, "adapt", remembering, "--logs", new)
    assert (code, "row 9, column 'machine' does not say which one" in err) == (2, True)
    for flag in ("--split", "--drop"):
        code, _, err = run(capsys, "adapt", remembering, "--logs", new, flag)
        assert READ in err
        assert ("1 bad row (2 episodes became 3), 1 row in all (of 62)" in err) == (flag == "--split")
        assert ("1 episode with problems, 31 rows in all (of 62)" in err) == (flag == "--drop")
    code, _, err = run(capsys, "adapt", remembering, "--logs", new, "--split", "--drop")
    assert (code, "not both" in err) == (2, True)
    learn = ("pretrain", "--logs", write_fleet(tmp_path / "old.csv", GAINS), *COLUMNS)
    for arguments, message in (
        (("--actions", "left,none,none"), "Action 'none' is named twice."),
        (("--next-state", "x"), "Column 'x' is named as state and as next state"),
        (("--time", "push"), "Column 'push' is named as action and as time"),
    ):
        code, _, err = run(capsys, *learn, *arguments)
        assert code == 2
        assert message in err


def test_debug_shows_the_traceback(capsys, tmp_path):
    with pytest.raises(ValueError, match="Cannot read"):
        cli.main(["info", str(tmp_path / "none.hipmdp"), "--debug"])
    code, _, err = run(capsys, "info", tmp_path / "none.hipmdp")
    assert (code, err) == (2, f"hipmdp: Cannot read {str(tmp_path / 'none.hipmdp')!r}: No such file or directory.\n")


def test_an_unexpected_error_is_one_line_too(capsys, monkeypatch):
    # A failure inside hipmdp: no frame of a user's own code.
    monkeypatch.setattr("hipmdp.cli.info.load", {}.__getitem__)
    code, _, err = run(capsys, "info", "luck")
    assert (code, err) == (1, "hipmdp: unexpected KeyError: 'luck' (--debug shows where; please report it).\n")


def test_without_a_command_there_is_help(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert all(name in out for name in cli.COMMANDS)


WORDS = (
    "demo", "collect", "pretrain", "adapt", "compare", "report", "info", "check-env", "instances", "pack", "grud",
    "grid", "--logs", "--state", "x,v", "--action", "push", "--seed", "-1", "nan", "1e400", "--episodes", "0",
    "--instance", "test:999", "a=b", "--out", "\x00", "/dev/null/x", "--method", "magic", "--preset", "best",
    "none.parquet", "bad.csv", "bad.hipmdp", "--json", "", "--reward", "no:thing", "module:name", "--jobs", "x",
    "--instances", "--help=",
)  # fmt: skip


@settings(
    max_examples=examples(250),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_any_words_get_an_answer_in_words(tmp_path, capsys, monkeypatch, words):
    """Nothing here can be done: there are no such files, and whatever would begin real work is stopped at its door."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("x,v,push\n1,2,\n,,left\n")
    (tmp_path / "bad.hipmdp").write_bytes(b"hipmdp model 1\n9999\n{}")
    for module, name in (("collect", "run_collect"), ("compare", "run_compare"), ("adapt", "learn_policy"),
                         ("demo", "compare"), ("instances", "run_searches")):  # fmt: skip
        monkeypatch.setattr(sys.modules[f"hipmdp.cli.{module}"], name, refuse, raising=False)
    code, out, err = run(capsys, *words)
    assert code in (0, 2), err
    assert "Traceback" not in out + err
    assert err if code == 2 else out


def refuse(*arguments, **options):
    raise ValueError("not here")
