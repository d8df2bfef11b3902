"""Command lines that make no sense: one sentence, exit code 2, and nothing is left behind."""

import os
import textwrap

import pytest

import hipmdp
from hipmdp import cli
from tests.dynamics.toys import random_batch

HUGE = "99999999999999999999"
LONG = "n" * 300
FILES = ("batch.parquet", "binary.hipmdp", "binary.parquet", "plain.txt")

ODD = [
    # Words.
    ("colect grid", "Unknown command 'colect'. Did you mean 'collect'?"),
    ("collect", "Missing from hipmdp collect"),
    ("collect grid more", "Unrecognized options: more"),
    ("collect grid --nope 1", "Unrecognized options: --nope"),
    ("collect grid --episodes", "Missing value for argument '--episodes'"),
    ("collect grid --episodes x", "Error parsing --episodes"),
    ("collect grid --episodes 1.5", "Error parsing --episodes"),
    ("adapt", "Missing from hipmdp adapt"),
    ("info", "Missing from hipmdp info"),
    ("pack", "Missing from hipmdp pack"),
    # Numbers.
    (f"collect grid --seed {2**63}", "seed must be at most 9223372036854775807"),
    ("collect grid --seed -1", "seed must be at least 0"),
    ("pretrain batch.parquet --actions left,right", "--actions is for --logs."),
    ("pretrain batch.parquet --state x", "--state is for --logs."),
    ("adapt grid --only m1", "--only is for --logs."),
    ("adapt grid --episode run", "--episode is for --logs."),
    ("adapt grid --risk 0.1", "--risk is for --limit."),
    ("adapt grid --within 3", "--within is for --limit."),
    ("adapt grid --limit z<=1", "Unknown state in a limit 'z'. Known: x, y."),
    ("adapt grid --limit x", "A limit is a state, <=, <, >= or >, and a number, such as"),
    ("adapt grid --limit x<=one", "The number of limit 'x<=one' must be a number"),
    ("adapt grid --limit x<=9", "The limit 'x<=9' is far from all data"),
    ("adapt grid --limit x<=1 --limit", "--limit"),
    ("adapt grid --limit x<=1 --risk 1", "risk must be above 0 and below 1"),
    ("adapt grid --limit x<=1 --within 0", "within must be at least 1"),
    ("adapt grid --limit x<=1 --method refined", "Limits are kept by method 'amortised', and not by 'refined'."),
    ("adapt grid --caution 1", "caution must be at least 0 (the mean) and below 1, got 1."),
    ("adapt grid --caution nan", "must be finite"),
    ("adapt grid --logs plain.txt --method embedded", "--method is for environments, and not for --logs."),
    (f"collect grid --episodes {HUGE}", "episodes must be at most 1000000"),
    ("collect hiv --episodes 900000", "where an episode has 200 steps"),
    ("collect grid --episodes 0", "episodes must be at least 1"),
    (f"collect grid --instances {HUGE}", "must be between 1 and 2"),
    ("collect grid --instances 99", "must be between 1 and 2, got 99"),
    ("collect grid --instances=-3", "must be between 1 and 2, got -3"),
    ("collect grid --instances ,", "Unknown"),
    ("collect grid --jobs 0", "jobs must be at least 1"),
    ("collect grid --jobs -1", "jobs must be at least 1"),
    (f"collect grid --jobs {HUGE}", "jobs must be at most 1024"),
    ("collect acrobot --sd nan", "must be"),
    ("collect acrobot --sd -1", "must be"),
    ("collect grid --sd 1", "Unknown option of grid 'sd'"),
    ("collect grid --preset papr", "Did you mean 'paper'?"),
    (f"compare grid --seeds {HUGE}", "--seeds must be at most 10000"),
    (f"compare grid --first-seed {2**63}", "--first-seed must be at most"),
    ("compare grid --first-seed -1", "--first-seed must be at least 0"),
    ("compare grid --methods", "--methods names no method"),
    ("compare grid --jobs 0", "jobs must be at least 1"),
    ("compare grid --jobs -1", "jobs must be at least 1"),
    ("compare grid --executor ray --cpus 0", "cpus must be at least 1"),
    ("compare grid --instances 99", "--instances must be at most 2, all test instances of grid, got 99"),
    ("compare grid --instances 0", "--instances must be at least 1"),
    ("compare grid --instances=-2", "--instances must be at least 1"),
    (f"compare grid --episodes {HUGE}", "episodes must be at most"),
    (f"compare grid --training-episodes {HUGE}", "training episodes must be at most"),
    ("compare grid --training 99", "must be between 1 and 2"),
    ("compare grid:sd=x", "Option of grid 'sd' must be a number"),
    ("demo --seeds 0", "--seeds must be at least 1"),
    ("demo --jobs 0", "jobs must be at least 1"),
    ("demo --jobs -1", "jobs must be at least 1"),
    ("instances grid --jobs 0", "jobs must be at least 1"),
    (f"instances grid --draws {HUGE}", "--draws must be at most"),
    ("instances grid --audit -1", "--audit must be at least 0"),
    ("instances walks:family", "There is no module 'walks'"),
    (f"adapt grid --seed {2**63}", "seed must be at most"),
    (f"adapt grid --episodes {HUGE}", "episodes must be at most"),
    ("adapt grid --horizon 0", "horizon must be at least 1"),
    ("adapt grid --instance test:99999999999", "must be written test:0 to test:1"),
    ("adapt grid --method magic", "Unknown method"),
    (f"online grid --instances {HUGE}", "instances must be at most"),
    ("online grid --instances 0", "instances must be at least 1"),
    ("online grid --instances 900000 --episodes 900000", "the number of episodes with all instances must be at most"),
    ("online grid --seed -1", "seed must be at least 0"),
    ("check-env grid --steps 0", "--steps must be at least 1"),
    (f"check-env grid --seed {HUGE}", "seed must be at most"),
    ("pretrain batch.parquet --seed -1", "seed must be at least 0"),
    ("pretrain batch.parquet --discount nan", "must be finite"),
    ("pretrain batch.parquet --discount 2", "must be in (0, 1]"),
    ("pretrain batch.parquet --least 0", "--least must be at least 1"),
    ("pretrain batch.parquet --horizon 0", "--horizon must be at least 1"),
    ("pretrain batch.parquet --method magic", "Unknown method of pretrain 'magic'"),
    # Outputs.
    ("pretrain batch.parquet --out .", "Cannot write '.': it is a directory."),
    ("pretrain batch.parquet --out batch.parquet", "is the batch itself"),
    ("pretrain batch.parquet --out plain.txt/m.hipmdp", "Not a directory"),
    (f"pretrain batch.parquet --out {LONG}.hipmdp", "File name too long"),
    ("pretrain batch.parquet --json nosuch/x.json", "Cannot write 'nosuch/x.json'"),
    ("pretrain batch.parquet --out m.hipmdp --json m.hipmdp", "is named twice"),
    ("adapt grid --json nosuch/x.json", "Cannot write 'nosuch/x.json'"),
    ("adapt grid --json .", "it is a directory"),
    ("adapt grid --out plain.txt", "Cannot write to 'plain.txt'"),
    ("adapt grid --out plain.txt/deep/er", "Not a directory"),
    ("adapt grid --out here --json here", "is named twice"),
    ("adapt grid --tensorboard plain.txt", "plain.txt"),
    (f"adapt grid --out {LONG}", "File name too long"),
    ("online grid --json nosuch/x.json", "Cannot write 'nosuch/x.json'"),
    ("online grid --out plain.txt", "Cannot write to 'plain.txt'"),
    (f"collect grid --out deep/{LONG}", "File name too long"),
    ("collect grid --out plain.txt", "Cannot write to 'plain.txt'"),
    ("compare grid --out plain.txt", "Cannot write to 'plain.txt'"),
    ("demo --out plain.txt", "Cannot write to 'plain.txt'"),
    ("info grid --json nosuch/x.json", "Cannot write 'nosuch/x.json'"),
    (f"info grid --json {LONG}", "File name too long"),
    ("instances grid --out plain.txt/x.json", "Not a directory"),
    ("report nosuch", "There is no directory 'nosuch'"),
    ("report plain.txt", "There is no directory 'plain.txt'"),
    # Files that are not what they should be.
    ("info binary.hipmdp", "binary.hipmdp"),
    ("info binary.parquet", "binary.parquet"),
    ("info .", "'.'"),
    (f"info {LONG}", "File name too long"),
    (f"pretrain {LONG}.parquet", LONG),
    ("pretrain binary.parquet", "binary.parquet"),
    ("adapt binary.hipmdp", "binary.hipmdp"),
    ("pack plain.txt", "plain.txt"),
    # A user's own code.
    ("collect exits:family", "it ends the program (sys.exit)"),
    ("collect broken:family", "Module 'broken' cannot be imported: ZeroDivisionError"),
    ("collect broken", "Unknown family 'broken'"),
    ("collect broken:", "is written module:name"),
    ("adapt grid --method exits:Method", "sys.exit"),
    ("check-env exits:family", "it ends the program (sys.exit)"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    hipmdp.save_transitions(random_batch(hipmdp.make("grid"), [0, 1], episodes=2), folder / "batch.parquet")
    for name in ("binary.hipmdp", "binary.parquet"):
        (folder / name).write_bytes(bytes(range(256)))
    (folder / "plain.txt").write_text("mine")
    (folder / "exits.py").write_text("import sys\nsys.exit(3)\n")
    (folder / "broken.py").write_text("1 / 0\n")
    return folder


def refused(capsys, arguments):
    """What the command says, which must be one line, with exit code 2."""
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    said = capsys.readouterr()
    assert caught.value.code == 2, said.err
    assert said.err.startswith("hipmdp: ")
    assert said.err.count("\n") == 1, said.err
    assert "please report" not in said.err
    return said.err


@pytest.mark.parametrize(("line", "words"), ODD, ids=[line[:60] for line, _ in ODD])
def test_an_odd_command_is_one_sentence_and_leaves_nothing(line, words, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*") if "__pycache__" not in path.parts}
    assert words in refused(capsys, line.split())
    after = {path: path.stat().st_mtime_ns for path in place.rglob("*") if "__pycache__" not in path.parts}
    assert {p: t for p, t in after.items() if p.is_file()} == {p: t for p, t in before.items() if p.is_file()}
    assert set(after) == set(before)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a place where nobody may write")
@pytest.mark.parametrize(
    "line",
    ["adapt grid --json /proc/x.json", "adapt grid --out /proc/x", "collect grid --out /proc/x", "demo --out /proc/x"],
)
def test_a_place_where_nobody_may_write_is_refused_at_once(line, capsys):
    assert "Cannot write" in refused(capsys, line.split())


def test_an_error_in_a_users_own_code_is_told_as_theirs(tmp_path, monkeypatch, capsys):
    """A family in JAX whose steps cannot be computed: no word of reporting it to us."""
    source = """
        import jax.numpy as jnp
        from hipmdp.families.grid import Grid

        class Mine(Grid):
            def dynamics(self, key, state, action, theta):
                return {}["nothing"]
    """
    (tmp_path / "mine_with_a_fault.py").write_text(textwrap.dedent(source))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    error = refused(capsys, ["collect", "mine_with_a_fault:Mine", "--instances", "1", "--episodes", "1"])
    assert "KeyError: 'nothing'" in error
    assert "mine_with_a_fault.py, line 7" in error
    with pytest.raises(KeyError):
        cli.main(["collect", "mine_with_a_fault:Mine", "--instances", "1", "--episodes", "1", "--debug"])
