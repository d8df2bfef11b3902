"""What `check_family` finds, and its sentences."""

import runpy
from pathlib import Path
from typing import ClassVar

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.families.check_family import check_family
from tests.families.walks import WALK, Walk, walk
from tests.systems.corridor import Corridor, CorridorTheta

EXAMPLE = Path(__file__).parents[2] / "examples" / "cartpole.py"


def failures(family, **options):
    return {check.name: check.sentence for check in check_family(family, **options) if not check.passed}


def sentence(family, name):
    return next(check.sentence for check in check_family(family) if check.name == name)


@pytest.mark.parametrize("family", [WALK, Corridor()], ids=["gymnasium", "jax"])
def test_a_right_family_passes(family):
    assert failures(family) == {}


def test_the_example_passes_and_every_step_was_compared():
    family = runpy.run_path(str(EXAMPLE))["family"]
    assert failures(family) == {}
    assert "4 of 4 random episodes terminated" in sentence(family, "episodes")
    assert "largest difference 0" in sentence(family, "terminated")


def test_a_parameter_that_changes_nothing_is_named():
    family = walk(parameters={"length": (0.5, 1.0), "colour": (0.0, 1.0)})
    found = failures(family)
    assert list(found) == ["colour"]
    assert "behave the same in 6 steps of the same actions" in found["colour"]
    deaf = failures(walk(lambda theta: Walk(1.0)))
    assert list(deaf) == ["hidden parameters", "length"]


def test_wrong_functions_are_named_with_step_and_values():
    wrong = walk(reward=lambda s, a, after: after[0] + 0.5, terminated=lambda after: after[0] > 0.4)
    found = failures(wrong)
    assert list(found) == ["reward", "terminated"]
    assert "the function says" in found["reward"]
    assert "the environment 0" in found["terminated"]
    numpy = walk(reward=lambda s, a, after: float(after[0]), terminated=lambda after: False)
    assert "raised" in failures(numpy)["reward"]
    assert 'use reward="learned"' in sentence(walk(), "reward")


class _Whim(Walk):
    """Ignores its seed."""

    whims: ClassVar = np.random.default_rng(0)

    def step(self, action):
        self.x += float(self.whims.normal())
        return super().step(action)


class _Yes(Walk):
    def step(self, action):
        state, reward, _, truncated, info = super().step(action)
        return state, reward, 0, truncated, info


class _Short(Walk):
    def reset(self, **options):
        return super().reset(**options)[0]


class _Far(Walk):
    def step(self, action):
        state, *rest = super().step(action)
        return state + 100, *rest


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (_Whim, "seeds", "two episodes from the same seed differ at step 0"),
        (_Yes, "step", "terminated must be a bool, got 0 at step 0"),
        (_Short, "reset", r"must return (observation, info)"),
    ],
)
def test_a_broken_contract_is_named(kind, name, words):
    family = walk(lambda theta: kind(theta["length"]), state_centre=(0.0,), state_scale=(1.0,))
    assert words in failures(family)[name]


def test_leaving_the_observation_space_is_an_error():
    family = walk(lambda theta: _Far(theta["length"]))
    assert "outside its observation space" in failures(family)["step"]


class _High(Walk):
    """Its states lie a million spreads from zero."""

    def __init__(self, length):
        super().__init__(length)
        self.observation_space = gymnasium.spaces.Box(-1e7, 1e7, (1,), np.float32)

    def reset(self, **options):
        observation, info = super().reset(**options)
        return observation + np.float32(1e6), info

    def step(self, action):
        observation, *rest = super().step(action)
        return observation + np.float32(1e6), *rest


def test_states_that_float32_cannot_tell_apart_are_named():
    found = failures(walk(lambda theta: _High(theta["length"])))
    assert found["units"].startswith("x varies by")
    assert found["units"].endswith("give it in other units")


class _Doubled(Corridor):
    def dynamics(self, key, state, action, theta):
        return jnp.concatenate([state, state])


class _Secretive(Corridor):
    def reward(self, state, action, next_state, theta=None):
        return next_state[0] * theta.direction


class _Branching(Corridor):
    def dynamics(self, key, state, action, theta):
        return state if float(theta.direction) > 0 else -state


class _Constant(Corridor):
    def sample_instance(self, key):
        return CorridorTheta(jnp.asarray(1.0, jnp.float32))


@pytest.mark.parametrize(
    ("family", "name", "words"),
    [
        (_Doubled(), "step", "the state must be float32 of shape (1,), got float32 of shape (2,)"),
        (_Secretive(), "reward without θ", "set reward_needs_theta = True"),
        (_Branching(), "step", "cannot be jitted and vmapped: ConcretizationTypeError"),
        (_Constant(), "hidden parameters", "are all the same instance"),
    ],
)
def test_a_broken_family_in_jax_is_named(family, name, words):
    assert words in failures(family)[name]


def test_gymnasium_itself_agrees():
    """Our reading of the contract is not looser than Gymnasium's own checker."""
    from gymnasium.utils.env_checker import check_env

    check_env(Walk(1.0), skip_render_check=True)
    assert isinstance(Walk(1.0), gymnasium.Env)


def test_rewards_that_are_all_alike_are_a_warning():
    """Nothing ends and every step pays the same: that passes, but the user is told."""

    class Endless(Corridor):
        def reward(self, state, action, next_state, theta=None):
            return jnp.asarray(-1.0, jnp.float32)

        def terminated(self, next_state, theta=None):
            return jnp.zeros((), bool)

    (found,) = (check for check in check_family(Endless()) if check.name == "episodes")
    assert found.passed
    assert found.warns
    assert "every reward was -1" in found.sentence
    (usual,) = (check for check in check_family(Corridor()) if check.name == "episodes")
    assert not usual.warns
