"""LunarLander with hidden gravity and engine power."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("Box2D")

from gymnasium.envs.box2d import lunar_lander

import hipmdp
from hipmdp.families.check_family import check_family
from tests.examples.loading import example, random_choice, transitions

EXAMPLE = example("lunarlander")
FAMILY, make, rule = EXAMPLE["family"], EXAMPLE["make"], EXAMPLE["rule"]
NOMINAL = {"gravity": -10.0, "power": 1.0}
STRONG = {"gravity": -10.0, "power": 1.2}
LIGHT = {"gravity": -8.0, "power": 1.0}
NONE, MAIN = 0, 2


def velocities(theta, action, steps=1):
    """(vx, vy) after each step of one action."""
    episode = list(transitions(make(theta), lambda observation: action, seed=3, most=steps))
    return np.array([step[2][2:4] for step in episode], np.float64)


def states(theta, choose, seed=3):
    return np.stack([step[2] for step in transitions(make(theta), choose, seed, most=60)])


def test_the_specification():
    spec = FAMILY.specification
    assert spec.state_names == ("x", "y", "vx", "vy", "angle", "rate", "left_leg", "right_leg")
    assert spec.action_names == ("none", "left", "main", "right")
    assert (spec.horizon, FAMILY.parameter_names) == (500, ("gravity", "power"))
    assert FAMILY.baseline == (-10.0, 1.0)
    assert not FAMILY.knows_reward


def test_nominal_landers_are_those_of_gymnasium():
    """The same states and rewards to the bit."""
    own, known = (
        list(transitions(env, random_choice(4), seed=5)) for env in (make(NOMINAL), lunar_lander.LunarLander())
    )
    assert len(own) == len(known) > 50
    for mine, theirs in zip(own, known, strict=True):
        np.testing.assert_array_equal(mine[2], theirs[2])
        assert mine[3:] == theirs[3:]


def test_gravity_by_hand():
    """A step takes 1/50 s and vy is observed in units of 7.5 m/s: 2 m/s² less are 2/50/7.5 more in every step.

    `reset` has taken the first step.
    """
    gained = velocities(LIGHT, NONE, 5)[:, 1] - velocities(NOMINAL, NONE, 5)[:, 1]
    np.testing.assert_allclose(gained, 2 / 50 / 7.5 * np.arange(2, 7), rtol=1e-3)


def test_power_by_hand():
    """What one firing adds to the velocity is proportional to the power; the other engines do not have it."""
    off = velocities(NOMINAL, NONE)
    nominal, strong = (velocities(theta, MAIN) - off for theta in (NOMINAL, STRONG))
    assert nominal[0, 1] > 0.02
    np.testing.assert_allclose(strong / nominal, 1.2, rtol=1e-3)
    for action in (1, 3):
        np.testing.assert_array_equal(velocities(NOMINAL, action, 5), velocities(STRONG, action, 5))


def shaping(state):
    x, y, vx, vy, angle, _, left, right = np.asarray(state, np.float64)
    return -100 * (np.hypot(x, y) + np.hypot(vx, vy) + abs(angle)) + 10 * (left + right)


@pytest.mark.parametrize("theta", [NOMINAL, {"gravity": -8.0, "power": 1.3}])
def test_the_reward_is_a_function_of_the_transition_but_for_the_end(theta):
    """As the example says: what cannot be read off the observation is when an episode ends."""
    last = []
    for seed in range(3):
        for before, action, after, reward, terminated in transitions(make(theta), random_choice(4, seed), seed):
            if terminated:
                last.append(reward)
                continue
            fuel = (0, 0.03, 0.3, 0.03)[action]
            assert reward == pytest.approx(shaping(after) - shaping(before) - fuel, abs=1e-3)
    assert last == [-100, -100, -100]


def test_a_lander_that_leaves_gymnasiums_bounds_can_be_stepped():
    known = lunar_lander.LunarLander().observation_space
    path = np.stack([step[2] for step in transitions(make(STRONG), lambda observation: MAIN, seed=1)])
    assert not all(known.contains(state) for state in path)
    assert all(make(STRONG).observation_space.contains(state) for state in path)


def test_instances_do_not_leak_into_each_other():
    """Episodes of three landers, in turns and in threads, are those of each lander alone."""
    thetas = [NOMINAL, STRONG, LIGHT]
    alone = [states(theta, lambda observation: MAIN) for theta in thetas]
    episodes = (transitions(make(theta), lambda observation: MAIN, seed=3, most=60) for theta in thetas)
    turns = [np.stack([step[2] for step in episode]) for episode in zip(*zip(*episodes, strict=True), strict=True)]
    with ThreadPoolExecutor(3) as pool:
        threads = list(pool.map(lambda theta: states(theta, lambda observation: MAIN), thetas))
    for number in range(3):
        np.testing.assert_array_equal(alone[number], turns[number])
        np.testing.assert_array_equal(alone[number], threads[number])
    assert lunar_lander.MAIN_ENGINE_POWER == 13.0


def test_the_rule_lands_a_nominal_lander_and_crashes_a_weak_one():
    nominal, weak = (
        list(transitions(make(theta), rule, seed=0))[-1] for theta in (NOMINAL, {"gravity": -11.5, "power": 0.8})
    )
    assert (nominal[3], weak[3]) == (100, -100)


def test_check_family_passes():
    assert [check for check in check_family(FAMILY) if not check.passed] == []


def test_imagination_needs_the_learned_reward():
    batch = hipmdp.collect(FAMILY, [NOMINAL, STRONG], episodes=1, seed=0, quiet=True, jobs=1)
    config = hipmdp.DynamicsConfig(hidden=(8,), latent_size=2, rounds=10, batch_size=16, tune_rounds=2)
    model = hipmdp.pretrain(batch, "average", config=config, quiet=True, policy=False)
    assert model.reward_head is not None
    with pytest.raises(ValueError, match='or use reward="learned"'):
        hipmdp.learn_policy(model, FAMILY, LIGHT, 1, quiet=True)
