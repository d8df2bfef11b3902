"""`pretrain`, `infer_latent`, `tune_model`, and models as files."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp._random import root_key
from hipmdp.data.checkpoint import save_checkpoint
from hipmdp.data.transitions import COLUMNS, Transitions
from hipmdp.data.work import Work
from hipmdp.pretraining.pretrain import prepare_model
from hipmdp.pretraining.resume import clear_directory
from hipmdp.settings.presets import dynamics_preset
from tests.dynamics.test_fit import SMALL, slopes_log
from tests.dynamics.toys import random_batch
from tests.systems.interrupts import PressedAfter

TINY = replace(SMALL, rounds=30, tune_rounds=10, scratch_rounds=10, infer_steps=5)


@pytest.fixture(scope="module")
def batch():
    return random_batch(hipmdp.make("grid"), [0, 1], episodes=3)


# Thirty rounds do not teach a network to use its latent, and it says so.
@pytest.mark.filterwarnings("ignore::hipmdp.LatentIgnoredWarning")
@pytest.mark.parametrize("method", ["embedded", "linear", "average", "scratch"])
def test_every_method_goes_through_the_same_calls_and_a_file(batch, method, tmp_path):
    model = hipmdp.pretrain(batch, method=method, config=TINY, quiet=True, policy=False)
    model.save(tmp_path / "model.hipmdp")
    again = hipmdp.load(tmp_path / "model.hipmdp")
    assert again.method == method
    assert again.specification == model.specification
    assert again.metrics == model.metrics
    jax.tree.map(np.testing.assert_array_equal, model.dynamics, again.dynamics)
    episode = batch.of_instance(0)
    latent, other = (hipmdp.infer_latent(m, episode).value for m in (model, again))
    np.testing.assert_array_equal(latent, other)
    told = model.predict(episode.state[:7], episode.action[:7], hipmdp.infer_latent(model, episode))
    assert all(np.asarray(part).shape == (7, 2) and np.isfinite(np.asarray(part)).all() for part in told)
    assert (np.asarray(told.epistemic) >= 0).all()
    found = model.quality(episode, latent)
    assert 0 <= found.coverage[0] <= found.coverage[1] <= found.coverage[2] <= 1
    tuned, latent = hipmdp.tune_model(again, episode)
    assert tuned.method == method
    assert np.isfinite(np.asarray(latent)).all()
    assert not np.array_equal(tuned.dynamics.posterior.mean, model.dynamics.posterior.mean)


def test_scratch_is_untrained_and_model_free_has_no_dynamics(batch):
    assert hipmdp.pretrain(batch, method="scratch").dynamics.latents.shape[0] == 0
    model = hipmdp.pretrain(batch, method="model_free")
    with pytest.raises(ValueError, match="which method 'model_free' does not have"):
        hipmdp.infer_latent(model, batch)


def test_stopped_at_any_chunk_edge_it_goes_on_to_the_same_bits(tmp_path):
    """1,200 rounds are three chunks; a finished call only reads; another one is refused."""
    log, config = slopes_log((0.5, -0.5), 60), replace(SMALL, rounds=1200)
    whole = hipmdp.pretrain(log, config=config, quiet=True, policy=False)
    stopped = 0
    while True:
        try:
            again = prepare_model(
                log, "embedded", key=root_key(0), config=config, policy=False, work=Work(tmp_path, PressedAfter(1))
            )
            break
        except KeyboardInterrupt:
            stopped += 1
    assert stopped == 1
    jax.tree.map(np.testing.assert_array_equal, again.dynamics, whole.dynamics)
    options = {"config": config, "quiet": True, "policy": False, "out": tmp_path / "out"}
    for _ in range(2):
        model = hipmdp.pretrain(log, **options)
        jax.tree.map(np.testing.assert_array_equal, model.dynamics, whole.dynamics)
        assert model.metrics == whole.metrics
        assert model.metadata == whole.metadata
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.hipmdp", "pretrain.json"]
    for change in ({"seed": 1}, {"method": "average"}, {"config": SMALL}):
        with pytest.raises(ValueError, match="holds another model"):
            hipmdp.pretrain(log, **{**options, **change})


def test_a_latent_that_is_ignored_is_reported():
    """Two instances that are the same: nothing to tell apart."""
    same = slopes_log((0.5, 0.5), 60)
    with pytest.warns(hipmdp.LatentIgnoredWarning, match="ignores its latent"):
        model = hipmdp.pretrain(same, config=replace(SMALL, rounds=300), quiet=True, policy=False)
    assert model.metrics["error_with_mean_latent"] < 1.02 * model.metrics["error_on_training_episodes"]


def test_a_model_of_another_family_is_refused(batch):
    model = hipmdp.pretrain(batch, method="scratch")
    with pytest.raises(ValueError, match="The model is for 'grid', the transitions are of 'toy'"):
        hipmdp.infer_latent(model, slopes_log((0.5,), 5))


def test_bad_calls_get_one_clear_sentence(batch):
    with pytest.raises(ValueError, match="method of pretrain"):
        hipmdp.pretrain(batch, method="embeded")
    with pytest.raises(ValueError, match="at least two transitions, got 1"):
        hipmdp.pretrain(batch.select(np.asarray([0])))
    with pytest.raises(ValueError, match="preset"):
        hipmdp.pretrain(batch, preset="quick")
    model = hipmdp.pretrain(batch, method="average", config=TINY, quiet=True, policy=False)
    nothing = batch.select(np.zeros(len(batch), bool))
    with pytest.raises(ValueError, match="infer_latent needs at least one transition"):
        hipmdp.infer_latent(model, nothing)
    with pytest.raises(ValueError, match="tune_model needs at least one transition"):
        hipmdp.tune_model(model, nothing, latent=jnp.zeros(2))


def test_bad_files_get_one_clear_sentence(batch, tmp_path):
    path = tmp_path / "model.hipmdp"
    hipmdp.pretrain(batch, method="average", config=TINY, quiet=True, policy=False).save(path)
    raw = path.read_bytes()
    for name, content, message in (
        ("short", raw[:-10], "checksum"),
        ("shorter", raw[:200], "checksum"),
        ("flipped", raw[:-5] + bytes([raw[-5] ^ 1]) + raw[-4:], "checksum"),
        ("newer", raw.replace(b"hipmdp model 2", b"hipmdp model 9", 1), "install a newer hipmdp"),
        ("older", raw.replace(b"hipmdp model 2", b"hipmdp model 1", 1), "make the model again"),
        ("foreign", b"PK\x03\x04 something else", "not a hipmdp model file"),
        ("empty", b"", "not a hipmdp model file"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            hipmdp.load(tmp_path / name)
    with pytest.raises(ValueError, match="Cannot read"):
        hipmdp.load(tmp_path / "absent")
    save_checkpoint(tmp_path / "strange", "model", (np.zeros(3),), {"method": "average"})
    with pytest.raises(ValueError, match="damaged"):
        hipmdp.load(tmp_path / "strange")


def test_presets_of_the_paper():
    grid, hiv = (dynamics_preset("paper", hipmdp.make(name).specification, 2) for name in ("grid", "hiv"))
    assert (grid.hidden, grid.alpha, grid.learning_rate) == ((25, 25, 25), 0.5, 5e-5)
    assert (hiv.hidden, hiv.alpha, hiv.learning_rate) == ((32, 32), 0.45, 2.5e-4)
    for config in (grid, hiv):
        assert (config.weight_draws, config.batch_size, config.latent_size) == (50, 32, 5)
        assert config.latent_learning_rate == 5e-4
        assert (config.priority_exponent, config.importance_exponent) == (0.2, 0.1)


def test_only_what_a_fit_left_is_removed(tmp_path):
    for name in ("fit.checkpoint", "pretrain.json", "model.hipmdp", "notes.txt"):
        (tmp_path / name).touch()
    clear_directory(tmp_path, "pretrain")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "notes.txt").unlink()
    clear_directory(tmp_path, "pretrain")
    assert not tmp_path.exists()


def test_a_batch_without_anything_to_learn_is_told():
    batch = hipmdp.collect(hipmdp.make("grid"), 2, episodes=2, quiet=True)
    columns = {name: getattr(batch, name) for name in COLUMNS} | {
        "reward": np.full(len(batch), -1.0), "terminated": np.zeros(len(batch), bool)
    }  # fmt: skip
    same = Transitions(batch.specification, columns, batch.thetas)
    with pytest.warns(hipmdp.NothingToLearnWarning, match="Every reward of the batch is -1 and no episode ended"):
        hipmdp.pretrain(same, "model_free", quiet=True)
