"""MountainCar with a hidden hill and engine."""

import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.families.check_family import check_family
from tests.examples.loading import example, random_choice, transitions

EXAMPLE = example("mountaincar")
FAMILY, make, rule = EXAMPLE["family"], EXAMPLE["make"], EXAMPLE["rule"]
NOMINAL = {"gravity": 0.0025, "force": 0.001}
WEAK = {"gravity": 0.003, "force": 0.0008}


def after_one_push(theta, position):
    """(position, velocity) after one push to the right from rest."""
    env = make(theta)
    env.reset(seed=0)
    env.unwrapped.state = (position, 0.0)
    return env.step(2)[0]


def test_the_specification():
    spec = FAMILY.specification
    assert (spec.state_names, spec.action_names) == (("position", "velocity"), ("left", "none", "right"))
    assert (spec.horizon, FAMILY.parameter_names) == (200, ("gravity", "force"))
    np.testing.assert_allclose(FAMILY.baseline, (0.0025, 0.001))
    np.testing.assert_allclose((spec.state_low, spec.state_high), ((-1.2, -0.07), (0.6, 0.07)), rtol=1e-6)


def test_gravity_and_force_by_hand():
    """v' = force − gravity cos(3 x): cos 0 = 1, and at the bottom of the valley cos(−π/2) = 0."""
    np.testing.assert_allclose(after_one_push(WEAK, 0.0), (-0.0022, -0.0022), rtol=1e-6)
    np.testing.assert_allclose(after_one_push(NOMINAL, 0.0), (-0.0015, -0.0015), rtol=1e-6)
    np.testing.assert_allclose(after_one_push(WEAK, -np.pi / 6)[1], 0.0008, rtol=1e-6)


@pytest.mark.parametrize("theta", [NOMINAL, WEAK])
@pytest.mark.parametrize("choose", [random_choice(3), rule], ids=["random", "rule"])
def test_reward_and_end_are_those_of_gymnasium(theta, choose):
    ends = 0
    for seed in range(2):
        for before, action, after, reward, terminated in transitions(make(theta), choose, seed):
            state, next_state = jnp.asarray(before), jnp.asarray(after)
            assert float(FAMILY.reward(state, jnp.asarray(action, jnp.int32), next_state)) == reward == -1
            assert bool(FAMILY.terminated(next_state)) == terminated
            ends += terminated
    # The rule reaches the flag, random actions do not.
    assert ends == (2 if choose is rule else 0)


def test_instances_do_not_leak_into_each_other():
    """Episodes of two cars, step by step in turns, are those of each car alone."""
    alone = [list(transitions(make(theta), rule, seed=3)) for theta in (NOMINAL, WEAK)]
    together = zip(*(transitions(make(theta), rule, seed=3) for theta in (NOMINAL, WEAK)), strict=False)
    for step, cars in enumerate(together):
        for expected, found in zip((episode[step] for episode in alone), cars, strict=True):
            np.testing.assert_array_equal(expected[2], found[2])
    assert len(alone[0]) < len(alone[1])


def test_check_family_passes_and_warns_that_random_actions_never_arrive():
    checks = check_family(FAMILY)
    assert all(check.passed for check in checks)
    assert [check.name for check in checks if check.warns] == ["episodes"]


def test_a_batch_can_be_collected():
    batch = hipmdp.collect(FAMILY, [NOMINAL, WEAK], episodes=1, seed=0, quiet=True, jobs=1)
    assert (batch.episode_count, set(batch.reward)) == (2, {-1.0})
