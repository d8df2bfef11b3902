"""Advice with caution and within limits: machines whose push of gain g moves x to 0.9 x + 0.3 g (a − 1)."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dqn import DDQNConfig
from tests.systems.fleet import GAINS, SMALL, fleet

LEFT, NONE, RIGHT = 0, 1, 2
QUICK = AdaptationConfig(
    imagined_episodes=20,
    weight_draws=4,
    validation_episodes=4,
    dqn=DDQNConfig(hidden=(32,), lanes=10, minibatches=5, epsilon_decay=0.9, learning_rate=2e-3, discount=0.9),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return hipmdp.pretrain(fleet(tmp_path_factory.mktemp("fleet"), GAINS), config=SMALL, quiet=True, policy=False)


@pytest.fixture(scope="module")
def log(model, tmp_path_factory):
    return fleet(tmp_path_factory.mktemp("new"), [1.5], model.specification, runs=1, seed=5)


def far(state, action, next_state):
    """The further right, the better."""
    return jnp.sum(next_state)


def advice(model, log, x=1.0, **options):
    return hipmdp.advise(model, log, np.asarray([x]), far, config=QUICK, **options)


@pytest.fixture(scope="module")
def free(model, log):
    return advice(model, log)


def test_without_limits_nothing_changes(free):
    assert free.action == RIGHT == free.values.argmax()
    np.testing.assert_array_equal(free.cautious, free.values)
    assert free.chances.tolist() == [0, 0, 0]
    assert free.allowed.all()
    assert (free.caution, free.limits, free.remarks) == (0.0, None, [])


def test_an_action_that_breaks_a_limit_is_not_recommended(model, log, free):
    """From 1 a push to the right leads to 1.35, none to 0.9."""
    found = advice(model, log, limits=("x<=1.15", "x>=-1.5"), within=4)
    np.testing.assert_array_equal(found.values, free.values)
    assert found.chances[RIGHT] > 0.95
    assert (found.chances[:RIGHT] <= 0.05).all()
    assert found.allowed.tolist() == [True, True, False]
    assert found.action == NONE
    assert found.remarks[0].startswith(
        "right has the highest value, but breaks x<=1.15 and x>=-1.5 within 4 steps with"
    )
    assert free.policy([1.0]) == RIGHT
    assert found.policy([1.0]) == NONE
    # From 0 a push leads to 0.45.
    assert found.policy([[1.0], [0.0]]).tolist() == [NONE, RIGHT]


def test_where_none_is_allowed_the_safest_is_recommended(model, log):
    """From 2.2 only pushes to the left lead below 1 within four steps: 1.53, 0.93."""
    found = advice(model, log, 2.2, limits=("x<=1",), within=4)
    assert not found.allowed.any()
    assert (found.action, found.chances.min()) == (LEFT, 1.0)
    assert found.remarks[0].startswith(
        "Every action is predicted to break x<=1 within 4 steps with a chance above 0.05"
    )
    assert "left, the safest, does with 1." in found.remarks[0]


def test_caution_is_the_mean_of_the_worst_futures(model, log, free):
    found = advice(model, log, caution=0.9)
    np.testing.assert_array_equal(found.values, free.values)
    assert (found.cautious <= found.values).all()
    assert (found.cautious >= found.low - 1e-3 * abs(found.low) - (found.high - found.low)).all()
    assert found.caution == 0.9
    assert found.action == found.cautious.argmax()


def test_what_is_no_limit_is_told_before_anything_is_learned(model, log):
    for options, message in (
        ({"limits": ("y<=1",)}, "Unknown state in a limit 'y'"),
        ({"limits": ("x<=100",)}, "is far from all data"),
        ({"limits": ("x",)}, "A limit is a state"),
        ({"risk": 1.0}, "risk must be above 0 and below 1"),
        ({"within": 0}, "within must be at least 1"),
        ({"caution": -0.1}, "caution must be at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            hipmdp.advise(replace(model, reward_head=None), log, **options)


def test_a_model_without_latents_keeps_limits_too(log, tmp_path):
    average = hipmdp.pretrain(
        fleet(tmp_path, GAINS), "average", config=replace(SMALL, rounds=300), quiet=True, policy=False
    )
    found = advice(average, log, limits=("x<=1.15",), within=2)
    assert found.chances.shape == (3,)
    assert found.chances[RIGHT] >= found.chances[LEFT]
