"""The worked example, CartPole with a hidden pole, from Gymnasium to a policy, at a small size: 60 steps at most."""

import runpy
from pathlib import Path

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp.control.policies import repeat_theta
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.families.scripted import random_policy
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dqn import DDQNConfig

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "cartpole.py"))
SHORT, LONG = {"length": 0.25, "masspole": 0.1}, {"length": 1.0, "masspole": 0.1}
DYNAMICS = hipmdp.DynamicsConfig(hidden=(16, 16), latent_size=2, rounds=1000, batch_size=64, tune_rounds=50)
DQN = DDQNConfig(hidden=(32, 32), minibatches=5, lanes=10, epsilon_decay=0.98, learning_rate=2e-3, target_rate=0.02)
TRANSFER = AdaptationConfig(dqn=DQN, imagined_episodes=150, weight_draws=2, validation_episodes=4, retunings=0)


def cartpole(**options):
    known = {"horizon": 60, "evaluation_episodes": 5, "success": "survived"}
    known |= {name: EXAMPLE[name] for name in ("reward", "terminated")}
    ranges = {"length": (0.25, 1.0), "masspole": (0.05, 0.5)}
    return hipmdp.gymnasium_family("cartpole", EXAMPLE["make"], ranges, **(known | options))


FAMILY = cartpole()


def random_episodes(theta, count, seed, first=0):
    """Transitions of random episodes of one instance."""
    known, keys = FAMILY.theta(theta), jax.random.split(jax.random.key(seed), count)
    episodes = FAMILY.rollouts(random_policy(FAMILY), keys, repeat_theta(known, count))
    return episodes_to_transitions(FAMILY, episodes, known).renumbered(first)


@pytest.fixture(scope="module")
def batch():
    log = random_episodes(SHORT, 40, 0)
    for number, theta in enumerate((LONG, SHORT | {"length": 0.3}, LONG | {"length": 0.9}), start=1):
        log = log.extended(random_episodes(theta, 40, number, first=number))
    return log


@pytest.fixture(scope="module")
def model(batch):
    return hipmdp.pretrain(batch, "embedded", config=DYNAMICS, quiet=True, policy=False)


def test_the_latent_tells_short_poles_from_long_ones(model):
    known = np.asarray(model.dynamics.latents)
    gap = np.linalg.norm(known[[0, 2]].mean(axis=0) - known[[1, 3]].mean(axis=0))
    for theta, own in (({"length": 0.27, "masspole": 0.1}, (0, 2)), ({"length": 0.95, "masspole": 0.1}, (1, 3))):
        latent = np.asarray(hipmdp.infer_latent(model, random_episodes(theta, 20, 7)).value)
        assert np.linalg.norm(latent - known[list(own)].mean(axis=0)) < gap / 3


def test_one_episode_with_a_new_pole_is_enough_to_beat_random_by_far(model):
    pole = {"length": 0.8, "masspole": 0.1}
    run = hipmdp.learn_policy(model, FAMILY, pole, 1, seed=1, config=TRANSFER, quiet=True)
    # Every step pays 1. Random actions keep this pole up for 30 steps on average.
    assert len(random_episodes(pole, 20, 1)) / 20 < 40
    assert run.returns[0] > 50
    assert run.success[0] > 0.3
    # The pole falls to the right: so must the cart go.
    assert run.policy([0.0, 0.0, 0.1, 0.5]) == 1


def test_collect_and_model_free_go_on_where_they_were_stopped(tmp_path):
    batch = hipmdp.collect(FAMILY, [SHORT, "test:1"], episodes=3, seed=0, quiet=True, out=tmp_path / "batch", jobs=1)
    assert batch.episode_count == 6
    assert (batch.terminated | batch.truncated).sum() == 6
    assert batch.thetas[0]["length"] == 0.25
    again = hipmdp.collect(FAMILY, [SHORT, "test:1"], episodes=3, seed=0, quiet=True, out=tmp_path / "batch", jobs=1)
    np.testing.assert_array_equal(batch.state, again.state)
    with pytest.raises(ValueError, match="holds another collection"):
        hipmdp.collect(FAMILY, [LONG, "test:1"], episodes=3, seed=0, quiet=True, out=tmp_path / "batch", jobs=1)
    free = hipmdp.pretrain(batch, "model_free")
    whole, kept = (
        hipmdp.learn_policy(free, FAMILY, SHORT, 3, seed=2, quiet=True, out=out) for out in (None, tmp_path / "run")
    )
    again = hipmdp.learn_policy(free, FAMILY, SHORT, 3, seed=2, quiet=True, out=tmp_path / "run")
    for run in (kept, again):
        np.testing.assert_array_equal(whole.returns, run.returns)
        np.testing.assert_array_equal(whole.transitions.state, run.transitions.state)


def test_blind():
    model = hipmdp.train_blind(FAMILY, [SHORT, LONG], 20, seed=0, config=DDQNConfig(hidden=(16, 16)), quiet=True)
    run = hipmdp.learn_policy(model, FAMILY, SHORT, 2, seed=0)
    assert run.returns[0] == run.returns[1] > 0


def test_what_a_gymnasium_environment_cannot_do_is_said(model):
    for family, options, words in (
        (FAMILY, {"imagine_in": "environment"}, 'imagine_in="environment" needs a family in JAX'),
        (FAMILY, {"reward": "true"}, 'reward="true" needs a family in JAX'),
        (cartpole(reward=None, terminated=None), {}, 'give them to gymnasium_family, or use reward="learned"'),
    ):
        with pytest.raises(ValueError, match=words):
            hipmdp.learn_policy(model, family, SHORT, 1, quiet=True, **options)
