"""The worked example, CartPole with a hidden pole, from Gymnasium to a policy, at a small size."""

import runpy
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp.control.config import DDQNConfig
from hipmdp.control.evaluate import repeat_theta
from hipmdp.data.episodes import episodes_to_transitions
from hipmdp.families.play import play
from hipmdp.families.scripted import random_policy
from hipmdp.transfer.config import TransferConfig

FAMILY = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "cartpole.py"))["family"]
SHORT, LONG = {"length": 0.25, "masspole": 0.1}, {"length": 1.0, "masspole": 0.1}
DYNAMICS = hipmdp.DynamicsConfig(hidden=(24, 24), latent_size=2, rounds=1500, batch_size=64, tune_rounds=50)
LEARNER = DDQNConfig(
    hidden=(64, 64), minibatches=4, lanes=10, epsilon_decay=0.98, epsilon_floor=0.02, learning_rate=1e-3
)
TRANSFER = TransferConfig(learner=LEARNER, imagined_episodes=150, weight_draws=4, look_episodes=10, retunings=0)


def random_episodes(theta, count, seed, first=0):
    """What a random policy meets."""
    known, keys = FAMILY.theta(theta), jax.random.split(jax.random.key(seed), count)
    lived = play(FAMILY, random_policy(FAMILY), keys, repeat_theta(known, count))
    return episodes_to_transitions(FAMILY, lived, known).renumbered(first)


@pytest.fixture(scope="module")
def batch():
    log = random_episodes(SHORT, 30, 0)
    for number, theta in enumerate((LONG, SHORT | {"length": 0.3}, LONG | {"length": 0.9}), start=1):
        log = log.extended(random_episodes(theta, 30, number, first=number))
    return log


@pytest.fixture(scope="module")
def model(batch):
    return hipmdp.pretrain(batch, "embedded", config=DYNAMICS, quiet=True)


def test_the_latent_tells_short_poles_from_long_ones(model):
    known = np.asarray(model.dynamics.latents)
    gap = np.linalg.norm(known[[0, 2]].mean(axis=0) - known[[1, 3]].mean(axis=0))
    for theta, own in (({"length": 0.27, "masspole": 0.1}, (0, 2)), ({"length": 0.95, "masspole": 0.1}, (1, 3))):
        latent = np.asarray(hipmdp.infer_latent(model, random_episodes(theta, 3, 7)).value)
        mine = known[list(own)].mean(axis=0)
        assert np.linalg.norm(latent - mine) < gap / 3


def test_one_episode_with_a_new_pole_is_enough_to_beat_random_by_far(model):
    run = hipmdp.learn_policy(model, FAMILY, {"length": 0.8, "masspole": 0.1}, 1, seed=1, config=TRANSFER, quiet=True)
    assert run.learning_returns[0] < 100
    assert run.returns[0] > 150
    assert run.transitions.terminated.sum() == 1
    assert (run.success[0] == 1) == (run.returns[0] == 500)
    assert run.policy([0.0, 0.0, 0.1, 0.5]) == 1


def test_model_free_goes_on_where_it_was_stopped(tmp_path, model):
    free = replace(hipmdp.pretrain(model_batch := random_episodes(SHORT, 2, 0), "model_free"), method="model_free")
    assert len(model_batch) > 10
    whole = hipmdp.learn_policy(free, FAMILY, SHORT, 3, seed=2, quiet=True)
    assert whole.returns.shape == (3,)
    log = whole.transitions
    assert log.episode_count == 3
    assert ((log.terminated | log.truncated).sum()) == 3
    hipmdp.learn_policy(free, FAMILY, SHORT, 3, seed=2, quiet=True, out=tmp_path)
    again = hipmdp.learn_policy(free, FAMILY, SHORT, 3, seed=2, quiet=True, out=tmp_path)
    np.testing.assert_array_equal(whole.returns, again.returns)
    np.testing.assert_array_equal(log.state, again.transitions.state)


def test_collect_keeps_what_was_lived_and_goes_on(tmp_path):
    batch = hipmdp.collect(FAMILY, [SHORT, "test:1"], episodes=4, seed=0, quiet=True, out=tmp_path)
    assert batch.episode_count == 8
    assert batch.specification == FAMILY.specification
    assert batch.thetas[0]["length"] == 0.25
    again = hipmdp.collect(FAMILY, [SHORT, "test:1"], episodes=4, seed=0, quiet=True, out=tmp_path)
    np.testing.assert_array_equal(batch.state, again.state)
    with pytest.raises(ValueError, match="holds another collection"):
        hipmdp.collect(FAMILY, [LONG, "test:1"], episodes=4, seed=0, quiet=True, out=tmp_path)


def test_blind():
    model = hipmdp.train_blind(FAMILY, [SHORT, LONG], 20, seed=0, config=DDQNConfig(hidden=(16, 16)), quiet=True)
    run = hipmdp.learn_policy(model, FAMILY, SHORT, 2, seed=0)
    assert run.returns[0] == run.returns[1] > 0


def test_what_a_gymnasium_environment_cannot_do_is_said(model):
    for options, words in (
        ({"dynamics": "true"}, 'dynamics="true" needs a family in JAX'),
        ({"reward": "true"}, 'reward="true" needs a family in JAX'),
    ):
        with pytest.raises(ValueError, match=words):
            hipmdp.learn_policy(model, FAMILY, SHORT, 1, quiet=True, **options)
    silent = hipmdp.gymnasium_family(
        "cartpole", FAMILY.factory, {"length": (0.25, 1.0), "masspole": (0.05, 0.5)},
        state_names=FAMILY.specification.state_names, action_names=("left", "right"),
    )  # fmt: skip
    with pytest.raises(ValueError, match='give them to gymnasium_family, or use reward="learned"'):
        hipmdp.learn_policy(model, silent, SHORT, 1, quiet=True)
    config = replace(TRANSFER, imagined_episodes=10, look_episodes=2)
    assert hipmdp.learn_policy(model, silent, SHORT, 1, reward="learned", config=config, quiet=True).returns[0] > 0
