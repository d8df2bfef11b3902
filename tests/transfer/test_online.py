"""Instances one after the other, with no batch: on a corridor whose actions may be swapped."""

import dataclasses
import importlib
import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from hipmdp import cli
from hipmdp.families import make
from hipmdp.transfer import online as module
from hipmdp.transfer.config import AmortiseConfig
from hipmdp.transfer.growing import Choice, GrowthConfig, Room, choose_size, held_back
from hipmdp.transfer.grown import OnlineConfig, online_preset
from hipmdp.transfer.online import meetings, online
from tests.dynamics.toys import random_batch, toy_log
from tests.transfer.corridor import CORRIDOR, DYNAMICS, LEARNER

TINY = GrowthConfig(((16, 16),), 300, replace(DYNAMICS, rounds=800))
POLICY = AmortiseConfig(replace(LEARNER, restart_share=0.2), episodes=160, pools=4, members=8, member_spread=0.1,
                        perception_error=0.1, looks_per_latent=4)  # fmt: skip
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
    jax.tree.map(np.testing.assert_array_equal, one.model.policy, other.model.policy)
    jax.tree.map(np.testing.assert_array_equal, one.model.dynamics, other.model.dynamics)


def test_the_third_is_met_better_than_the_first(whole):
    """−1 −1 + 10 = 8 is the best there is (9 for starts above 0.2); a belief that starts wrong costs two steps more."""
    first = whole.returns[:, 0]
    assert first[0] < 6 <= first[2]
    assert np.isnan(whole.scores).all()
    assert whole.model.method == "amortised"
    assert whole.model.dynamics.latents.shape[0] >= 2
    assert whole.transitions.instances == [0, 1, 2]
    assert whole.transitions.episode_count == 6


def test_what_is_unlike_all_before_is_noticed(whole):
    """The second corridor is the first one mirrored; in the third meeting both are known."""
    misjudged = [record.misjudged for record in whole.records]
    assert misjudged[0][0]
    assert misjudged[1][0]
    assert np.isnan(whole.records[0].model_error[0])
    assert whole.records[1].model_error[0] > 5 * whole.records[2].model_error[0]
    assert all(1 <= record.fits <= 1 + CONFIG.refits for record in whole.records)


def test_stopped_after_any_instance_it_goes_on_to_the_same_bits(whole, tmp_path, monkeypatch):
    learn, calls = module.learn_family, 0

    def stops(*arguments):
        nonlocal calls
        calls += 1
        if calls % 4 == 0:
            raise KeyboardInterrupt
        return learn(*arguments)

    monkeypatch.setattr(module, "learn_family", stops)
    stopped = 0
    while True:
        try:
            run = go(out=tmp_path)
            break
        except KeyboardInterrupt:
            stopped += 1
            assert stopped < 10
    assert stopped >= 1
    same(run, whole)
    assert len(list(tmp_path.glob("model*.hipmdp"))) == 1
    # A finished run is read; another one is refused; a broken file is named.
    monkeypatch.setattr(module, "learn_family", None)
    same(go(out=tmp_path), whole)
    with pytest.raises(ValueError, match="holds another run"):
        go(out=tmp_path, seed=1)
    (tmp_path / "instance002.json").write_text('{"returns": 1')
    with pytest.raises(ValueError, match=r"instance002.json' is damaged"):
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
    few, many = (choose_size(bumps(rows), config, Room(2, 1024)) for rows in (12, 1000))
    assert few.size == (2,)
    assert many.size == (32, 32)
    assert many.rows == 1000
    assert many.error < few.error


def test_what_is_held_back():
    """The fourth of four episodes; of an instance with fewer, the last quarter of its rows."""
    batch = random_batch(make("grid"), [0, 1], episodes=4, steps=8)
    batch = batch.select((batch.instance == 0) | (batch.episode == 0))
    mask = held_back(batch)
    assert set(batch.episode[mask & (batch.instance == 0)]) == {3}
    assert batch.time[mask & (batch.instance == 1)].tolist() == [6, 7]
    assert held_back(batch.select(np.arange(3))).tolist() == [False, False, True]
    with pytest.raises(ValueError, match="One instance with 1 transition is too little"):
        choose_size(batch.select(np.arange(1)), TINY, Room(2, 256))


def test_who_is_met():
    grid = make("grid")
    assert [one.label for one in meetings(grid, 3, 0)] == ["test:0", "test:1", "test:0"]
    assert [one.label for one in meetings(grid, ["test:1", None], 0)] == ["test:1", "drawn:1"]
    assert [one.label for one in meetings(grid, "test", 0)] == ["test:0", "test:1"]


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
        return dataclasses.replace(whole, instances=meetings(make("grid"), 3, 0))

    monkeypatch.setattr(importlib.import_module("hipmdp.cli.online"), "run_online", instead)
    out = tmp_path / "run"
    out.mkdir()
    cli.main(
        ["online", "grid", "--instances", "3", "--episodes", "2", "--out", str(out), "--json", str(out / "a.json")]
    )
    text = capsys.readouterr().out
    assert seen == {"family": "grid", "instances": 3, "episodes": 2, "seed": 0}
    assert "score" in text
    told = json.loads((out / "a.json").read_text())
    assert [row["instance"] for row in told["instances"]] == ["test:0", "test:1", "test:0"]
    assert told["instances"][0]["model_error"][0] is None
    assert (out / "model.hipmdp").exists()
    with pytest.raises(SystemExit) as caught:
        cli.main(["online", "grd"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_presets_are_values():
    assert online_preset(make("grid")).growth.sizes[-1] == (64, 64)
    assert online_preset(make("acrobot")).amortise.episodes < 3000
    assert isinstance(Choice((2,), ((2,),), (0.0,), 0.1, 5).size, tuple)
