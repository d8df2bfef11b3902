"""The command line as a user meets it."""

import importlib
import json
import select
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import pytest

import hipmdp
from hipmdp import cli
from hipmdp.settings import recipe
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.study.setup import Variant
from tests.systems.tiny import tiny_policy


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["hipmdp", *arguments])
    cli.main()


def test_demo_prints_a_table_and_writes_a_picture(monkeypatch, capsys, tmp_path):
    # Small networks, which compile sooner.
    small = (("hidden", (8,)),)
    tiny = Variant(
        "demo", dynamics=(*small, ("rounds", 20), ("tune_rounds", 5)), collection=small,
        adaptation=(("pqn", tiny_policy().pqn), ("imagined_steps", 64)),
        amortise=(("pqn", tiny_policy().pqn), ("steps", 64), ("pools", 2)),
    )  # fmt: skip
    for name, value in {"METHODS": ["embedded", "model_free"], "TRAINING_EPISODES": 2, "SMALL": tiny}.items():
        monkeypatch.setattr(importlib.import_module("hipmdp.cli.demo"), name, value)
    with warnings.catch_warnings():
        # After twenty rounds it well may.
        warnings.simplefilter("ignore", hipmdp.LatentIgnoredWarning)
        run(monkeypatch, "demo", "--out", str(tmp_path / "new"), "--seeds", "1", "--jobs", "1")
    text = capsys.readouterr().out
    assert all(
        word in text for word in ("collect", "pre-train", "embedded", "model_free", "demo.png", "hipmdp adapt hiv")
    )
    assert (tmp_path / "new" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "new").glob("cells/grid/*/demo/*.parquet"))) == 4


def test_the_demo_names_a_command_that_works(monkeypatch, tmp_path):
    module = importlib.import_module("hipmdp.cli.demo")
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    program = tmp_path / ".venv" / "bin" / "hipmdp"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(program), "demo"])
    assert module._command() == str(program)
    monkeypatch.chdir(tmp_path)
    assert module._command() == ".venv/bin/hipmdp"
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert module._command().endswith("python -m hipmdp")
    monkeypatch.setattr(module.shutil, "which", lambda name: "/usr/bin/hipmdp")
    assert module._command() == "hipmdp"


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


@pytest.mark.filterwarnings("ignore::hipmdp.LatentIgnoredWarning")
def test_pretrain_and_adapt_from_files_alone(monkeypatch, capsys, tmp_path):
    """A tiny batch, a model file, a new instance; with --out, the same command again only reads."""
    quick = AdaptationConfig(dqn=DDQNConfig(hidden=(8,), lanes=2), imagined_episodes=4, weight_draws=2)
    small, policy = replace(recipe.dynamics(2), rounds=20, tune_rounds=10), tiny_policy()
    monkeypatch.setattr(recipe, "dynamics", lambda instances: small)
    monkeypatch.setattr(recipe, "adaptation", lambda *given, **options: quick)
    monkeypatch.setattr(recipe, "amortise", lambda *given: policy)
    batch = hipmdp.collect(hipmdp.make("grid"), ["test:0", "test:1"], episodes=2, quiet=True)
    hipmdp.save_transitions(batch, tmp_path / "batch.parquet")
    model, out = tmp_path / "models" / "grid.hipmdp", tmp_path / "run"
    run(monkeypatch, "pretrain", str(tmp_path / "batch.parquet"), "--out", str(model))
    text = capsys.readouterr().out
    assert "embedded model of grid, from" in text.replace("\n", " ")
    assert "error on training episodes" in text
    arguments = ("adapt", str(model), "--instance", "test:1", "--out", str(out), "--json", str(tmp_path / "run.json"))
    run(monkeypatch, *arguments)
    table = capsys.readouterr().out
    assert all(word in table for word in ("score", "greedy", "latent:", "model.hipmdp"))
    facts = json.loads((tmp_path / "run.json").read_text())
    assert facts["theta"] == {"theta": 1.0}
    assert len(facts["returns"]) == len(facts["scores"]) == 2
    assert hipmdp.load(out / "model.hipmdp").policy is not None
    assert hipmdp.load_transitions(out / "transitions.parquet").episode_count == 2
    run(monkeypatch, *arguments)
    assert capsys.readouterr().out == table
    assert json.loads((tmp_path / "run.json").read_text()) == facts


@pytest.mark.parametrize("name", ["grid", "acrobot", "hiv"])
def test_a_model_of_every_family_comes_with_the_package(name):
    model = hipmdp.load(name)
    assert model.specification == hipmdp.make(name).specification
    assert model.method in ("embedded", "amortised")
    assert model.latent_policy.centre.shape[0] == model.specification.state_size + model.dynamics.config.latent_size
    assert model.reward_head is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pretrain", "absent.parquet"), "absent.parquet"),
        (("adapt", "hv"), "hv"),
        (("adapt", "grid", "--instance", "theta=a"), "grid parameter 'theta' must be a number, got 'a'."),
        (("adapt", "grid", "--instance", "thta=1"), "Did you mean 'theta'?"),
        (("adapt", "grid", "--instance", "test:7"), "must be written test:0 to test:1."),
        (("adapt", "grid", "--reward", "free"), "Unknown reward 'free'."),
        (("adapt", "grid", "--imagine-in", "mind"), "Unknown value of --imagine-in 'mind'."),
        (("pack", "absent"), "There is no directory 'absent'"),
        (("collect", "grd"), "Unknown family 'grd'. Did you mean 'grid'?"),
        (("collect", "grid", "--instances", "tst"), "Did you mean 'test'?"),
        (("instances", "grid", "--draws", "0"), "--draws must be at least 1, got 0."),
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


def test_ctrl_c_ends_soon_and_leaves_what_was_done(tmp_path):
    """Once the first line of progress is out, everything is compiled: the next chunk edge is not far."""
    command = [
        sys.executable,
        "-u",
        "-c",
        "from hipmdp.cli import main; main()",
        "adapt",
        "grid",
        "--method",
        "embedded",
        "--out",
        str(tmp_path),
    ]
    with subprocess.Popen([*command, "--instance", "test:0"], stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "left" in line:
                break
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert "interrupted" in process.stderr.read()
        assert process.wait() == 130
        # Two seconds on a quiet machine, six on one that had four other things to do; the run itself takes far longer.
        assert time.monotonic() - begin < 10
    assert (tmp_path / "run.checkpoint").exists()


def test_ctrl_c_twice_in_collect_ends_at_once_and_cleanly(tmp_path):
    """Threads are inside XLA; the process must neither wait for them nor abort."""
    program = "import sys; from hipmdp.cli import main; sys.stderr.write('ready\\n'); main()"
    command = [sys.executable, "-u", "-c", program, "collect", "hiv", "--episodes", "400", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert "ready" in process.stderr.readline()
        # The directory is claimed when the threads are about to start.
        while not (tmp_path / "collection.json").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            select.select([], [], [], 0.2)
        error = process.stderr.read()
        # Killed by the signal once it has said its last word, it has the same code for a shell.
        assert process.returncode in (130, -signal.SIGINT), error
    assert error.splitlines()[-1] == "hipmdp: interrupted."
    assert "Fatal" not in error


def test_help_of_the_installed_command_shows_an_example():
    result = subprocess.run(
        [sys.executable, "-c", "from hipmdp.cli import main; main()", "demo", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Example: hipmdp demo" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Name at least one family"),
        (["moon"], "Unknown family 'moon'"),
        (["grid", "--methods", "magic"], "Unknown method of compare 'magic'"),
        (["grid", "--instances", "test:7"], "must be written test:0 to test:1"),
        (["grid", "--seeds", "0"], "--seeds must be at least 1"),
        (["grid", "--preset", "papr"], "Unknown preset 'papr'. Did you mean 'paper'?"),
        (["grid", "--executor", "slurm"], "Unknown executor 'slurm'"),
        (["grid", "--address", "auto"], "--address and --shared are for --executor ray"),
        (["grid", "--executor", "ray", "--jobs", "2"], "--jobs is for this machine"),
        (["grid", "--ablations", "lr"], "Unknown ablation 'lr'"),
        (["--extras", "everything"], "Unknown extra measurement 'everything'"),
        (["grid", "--jobs", "0"], "jobs must be at least 1"),
    ],
)
def test_bad_comparisons_are_one_sentence_and_write_nothing(monkeypatch, capsys, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, "compare", *arguments)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("command", ["compare", "report"])
def test_help_shows_an_example(command, monkeypatch, capsys):
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, command, "--help")
    assert caught.value.code == 0
    assert f"Example: hipmdp {command}" in capsys.readouterr().out
