"""Instances one after the other, with no batch: on a corridor whose actions may be swapped."""

import dataclasses
import importlib
import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from hipmdp import cli
from hipmdp._progress import Progress
from hipmdp._random import root_key
from hipmdp.data.work import Work
from hipmdp.dynamics.fit_family import Capacity, held_out_rows
from hipmdp.families import make
from hipmdp.online.loop import chosen_instances, online, run_online
from hipmdp.online.model_size import HELD_OUT_SHARE, choose_size
from hipmdp.online.phases import OnlineTask
from hipmdp.settings import recipe
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.online import GrowthConfig, OnlineConfig
from tests.dynamics.toys import random_batch, toy_log
from tests.systems.corridor import CORRIDOR, DYNAMICS, PQN
from tests.systems.interrupts import PressedAfter

TINY = GrowthConfig(((16, 16),), 300, replace(DYNAMICS, rounds=800))
POLICY = AmortiseConfig(PQN, steps=20_000, pools=4, latent_spread=0.1, validation_draws=4)
CONFIG = OnlineConfig(TINY, POLICY)
THREE = [{"direction": sign} for sign in (1.0, -1.0, 1.0)]


def go(instances=THREE, **options):
    return online(CORRIDOR, instances, **{"episodes": 2, "seed": 0, "config": CONFIG, "quiet": True, **options})


@pytest.fixture(scope="module")
def whole():
    return go()


def same(one, other):
    for a, b in zip(one.records, other.records, strict=True):
        assert a._replace(seconds=0, model_error=0) == b._replace(seconds=0, model_error=0)
        np.testing.assert_array_equal(a.model_error, b.model_error)
    np.testing.assert_array_equal(one.transitions.state, other.transitions.state)
    jax.tree.map(np.testing.assert_array_equal, one.model.latent_policy, other.model.latent_policy)
    jax.tree.map(np.testing.assert_array_equal, one.model.dynamics, other.model.dynamics)


def test_the_third_goes_well_from_its_first_episode(whole):
    """−1 −1 + 10 = 8 is the best there is (9 for starts above 0.2); a belief that starts wrong costs two steps more."""
    first = whole.returns[:, 0]
    assert first[2] >= 6
    assert np.isnan(whole.scores).all()
    assert whole.model.method == "amortised"
    assert whole.model.dynamics.latents.shape[0] >= 2
    assert whole.transitions.instances == [0, 1, 2]
    assert whole.transitions.episode_count == 6


def test_what_is_unlike_all_before_is_noticed(whole):
    """The second corridor is the first one mirrored; at the third both are known."""
    misjudged = [record.misjudged for record in whole.records]
    assert misjudged[0][0]
    assert misjudged[1][0]
    assert np.isnan(whole.records[0].model_error[0])
    assert whole.records[1].model_error[0] > 5 * whole.records[2].model_error[0]
    assert all(record.fits <= 1 + CONFIG.refits for record in whole.records)
    assert whole.records[0].fits >= 1


def test_stopped_anywhere_it_goes_on_to_the_same_bits(whole, tmp_path):
    """After an episode, in the middle of a fit, in the middle of learning Q(s, w): each time a little later."""
    task = OnlineTask(CORRIDOR, chosen_instances(CORRIDOR, THREE, 0), 2, CONFIG, root_key(0))
    stopped, kept = 0, set()
    while True:
        try:
            run_online(task, Work(tmp_path, PressedAfter(4 + 2 * stopped)), Progress("", 6, quiet=True))
            break
        except KeyboardInterrupt:
            stopped += 1
            kept |= {path.name for path in tmp_path.iterdir()}
            assert stopped < 40
    assert stopped >= 5
    assert {"choice.checkpoint", "fit.checkpoint", "amortise.checkpoint", "state.checkpoint"} <= kept
    assert "transitions-000-001-0.parquet" in kept
    # A finished run is read; another one is refused; left-overs are removed; a broken file is named.
    (tmp_path / "model-001-001-1.hipmdp").touch()
    run = go(out=tmp_path)
    same(run, whole)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert [name.partition("-")[0] for name in left] == ["model", "online.json", "state.checkpoint", "transitions"]
    with pytest.raises(ValueError, match="holds another run"):
        go(out=tmp_path, seed=1)
    (tmp_path / "state.checkpoint").write_text('{"returns": 1')
    with pytest.raises(ValueError, match=r"state.checkpoint' is"):
        go(out=tmp_path)


def test_the_seed_decides(whole):
    """The run that was stopped above was the same again; another seed is another run."""
    other = go(seed=1)
    assert not np.array_equal(whole.transitions.state[:5], other.transitions.state[:5])
    assert other.returns[2, 0] >= 6


def bumps(rows):
    """A step function with eight edges and a little noise, of one instance."""
    draw = np.random.default_rng(0)
    state = draw.uniform(-1, 1, (rows, 1))
    return toy_log(state, np.sign(np.sin(4 * np.pi * state)) + 0.1 * draw.normal(size=(rows, 1)))


def test_few_data_get_a_small_network_and_many_a_large_one():
    """Twelve rows do not show eight edges: what a large network makes of them is wrong between them."""
    config = GrowthConfig(((2,), (32, 32)), 800, replace(DYNAMICS, latent_size=1))
    # A single fit to nine rows depends on its key: the mean over several does not.
    few = [choose_size(bumps(12), config, Capacity(2, 1024), key=root_key(seed)) for seed in range(4)]
    small, large = np.mean([choice.likelihoods for choice in few], axis=0)
    assert small > large
    many = choose_size(bumps(1000), config, Capacity(2, 1024), key=root_key(0))
    assert many.size == (32, 32)
    assert many.rows == 1000
    assert many.error < min(choice.error for choice in few)


def test_what_is_held_out():
    """The fourth of four episodes; of an instance with fewer, the last quarter of its rows."""
    batch = random_batch(make("grid"), [0, 1], episodes=4, steps=8)
    batch = batch.select((batch.instance == 0) | (batch.episode == 0))
    mask = held_out_rows(batch, HELD_OUT_SHARE, split_few=True)
    assert set(batch.episode[mask & (batch.instance == 0)]) == {3}
    assert batch.time[mask & (batch.instance == 1)].tolist() == [6, 7]
    few = held_out_rows(batch.select(np.arange(3)), HELD_OUT_SHARE, split_few=True)
    assert few.tolist() == [False, False, True]
    with pytest.raises(ValueError, match="One instance with 1 transition is too little"):
        choose_size(batch.select(np.arange(1)), TINY, Capacity(2, 256), key=root_key(0))


def test_which_instances_a_run_has():
    grid = make("grid")
    assert [one.label for one in chosen_instances(grid, 3, 0)] == ["test:0", "test:1", "test:0"]
    assert [one.label for one in chosen_instances(grid, ["test:1", None], 0)] == ["test:1", "drawn:1"]
    assert [one.label for one in chosen_instances(grid, "test", 0)] == ["test:0", "test:1"]


def test_bad_calls_get_one_clear_sentence(tmp_path):
    (tmp_path / "file").write_text("mine")
    for call, message in (
        (lambda: go(episodes=0), "episodes must be at least 1, got 0"),
        (lambda: go(0), "instances must be at least 1, got 0"),
        (lambda: go([]), "instances must be a number, the name of a set or a list"),
        (lambda: go(out=tmp_path / "file"), "Cannot write to"),
        (lambda: GrowthConfig(()), "sizes must name at least one network"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_the_command(whole, monkeypatch, capsys, tmp_path):
    seen = {}

    def instead(family, instances, episodes, seed, out):
        seen.update(family=family.name, instances=instances, episodes=episodes, seed=seed)
        return dataclasses.replace(whole, instances=chosen_instances(make("grid"), 3, 0))

    monkeypatch.setattr(importlib.import_module("hipmdp.cli.online"), "run_online", instead)
    out = tmp_path / "run"
    out.mkdir()
    cli.main(
        ["online", "grid", "--instances", "3", "--episodes", "2", "--out", str(out), "--json", str(out / "a.json")]
    )
    text = capsys.readouterr().out
    assert seen == {"family": "grid", "instances": 3, "episodes": 2, "seed": 0}
    assert "score" in text
    written = json.loads((out / "a.json").read_text())
    assert [row["instance"] for row in written["instances"]] == ["test:0", "test:1", "test:0"]
    assert written["instances"][0]["model_error"][0] is None
    assert (out / "model.hipmdp").exists()
    with pytest.raises(SystemExit) as caught:
        cli.main(["online", "grd"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_presets_are_values():
    assert recipe.online(make("grid").specification).growth.sizes[-1] == (64, 64)
    assert recipe.online(make("acrobot").specification).amortise.steps < recipe.AMORTISED_STEPS
