"""The Gymnasium side: check_env, seeds, resets, time limits, pictures."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import hipmdp

NAMES = ("Grid", "Acrobot", "HIV")


@pytest.mark.parametrize("name", NAMES)
def test_check_env_is_clean(name):
    check_env(gymnasium.make(f"hipmdp/{name}-v0", render_mode="rgb_array").unwrapped)
    check_env(gymnasium.make(f"hipmdp/{name}-v0", theta={}, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("name", NAMES)
def test_instance_is_drawn_with_the_seed_and_kept_without(name):
    env = gymnasium.make(f"hipmdp/{name}-v0").unwrapped
    with pytest.raises(ValueError, match="first reset"):
        env.theta  # noqa: B018
    drawn = {}
    for seed in range(6):
        _, info = env.reset(seed=seed)
        drawn[seed] = tuple(info["theta"].values())
        assert tuple(env.reset()[1]["theta"].values()) == drawn[seed]
    assert len(set(drawn.values())) == (2 if name == "Grid" else 6)
    assert tuple(env.reset(seed=0)[1]["theta"].values()) == drawn[0]


@pytest.mark.parametrize(("name", "horizon"), [("Grid", 100), ("Acrobot", 400), ("HIV", 200)])
def test_time_limit_truncates_and_does_not_terminate(name, horizon):
    env = gymnasium.make(f"hipmdp/{name}-v0", theta={})
    env.reset(seed=0)
    for t in range(1, horizon + 1):
        _, _, terminated, truncated, _ = env.step(1)
        assert not terminated
        assert truncated == (t == horizon)
    with pytest.raises(ValueError, match="episode is over"):
        env.step(1)


def test_state_option_is_in_natural_units():
    env = gymnasium.make("hipmdp/HIV-v0", theta={})
    start = [1e6, 600, 76, 6, 415, 353108]
    observation, _ = env.reset(options={"state": start})
    np.testing.assert_allclose(observation, np.log10(start), rtol=1e-6)
    observation, _ = gymnasium.make("hipmdp/Grid-v0", theta={"theta": 1}).reset(options={"state": [0.5, -1]})
    np.testing.assert_array_equal(observation, np.float32([0.5, -1]))


def test_environment_follows_the_family():
    import jax
    import jax.numpy as jnp

    env = gymnasium.make("hipmdp/Acrobot-v0", theta={"m2": 1.3})
    before, _ = env.reset(seed=3)
    after, reward, *_ = env.step(2)
    family = hipmdp.make("acrobot")
    expected = family.step(jax.random.key(0), jnp.asarray(before), jnp.asarray(2), family.theta({"m2": 1.3}))
    np.testing.assert_allclose(after, expected.state, atol=1e-6)
    assert reward == pytest.approx(float(expected.reward), rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_pictures_show_the_episode(name):
    env = gymnasium.make(f"hipmdp/{name}-v0", theta={}, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    for action in (1, 1, 2, 0, 2):
        env.step(action)
    second = env.render()
    assert first.dtype == np.uint8
    assert first.shape == second.shape
    assert first.shape[2] == 3
    # Something drawn in colour, and something that changed.
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 50
    assert (first != second).any(axis=-1).mean() > 0.001
