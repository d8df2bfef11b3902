"""Nothing depends on what a family is called: built-in families under another name give the same bits."""

from dataclasses import replace

import numpy as np
import pytest

import hipmdp
from hipmdp.families.acrobot import Acrobot
from hipmdp.families.compass import Compass
from hipmdp.families.grid import Grid
from hipmdp.families.hiv import HIV
from hipmdp.settings import recipe
from tests.systems.tiny import tiny_policy


def renamed(kind):
    """A family whose specification has another name."""

    class Other(kind):
        @property
        def specification(self):
            return replace(super().specification, family="rigs")

    return Other()


def everything(family, reference):
    """All that the recipe does, at a tiny size: a batch, a model with its policy, and a run of each kind."""
    train = [instance.theta for instance in reference.instances("train")[:2]]
    batch = hipmdp.collect(family, train, episodes=3, seed=1, quiet=True, jobs=1)
    dynamics = replace(recipe.dynamics(2), hidden=(16,), correction=(8,), rounds=30, tune_rounds=10)
    model = hipmdp.pretrain(batch, seed=1, quiet=True, config=dynamics, policy=tiny_policy(), family=family)
    config = replace(
        recipe.adaptation(family.specification), pqn=tiny_policy().pqn, imagined_steps=64, weight_draws=2,
        validation_episodes=2, steps_ahead=1,
    )  # fmt: skip
    theta = reference.instances("test")[0].theta
    run = hipmdp.learn_policy(model, family, theta, episodes=2, seed=1, quiet=True, config=config)
    assert run.method == "refined"
    return batch, model, run


@pytest.mark.filterwarnings("ignore::hipmdp.LatentIgnoredWarning")
@pytest.mark.parametrize("kind", [Grid, Compass, Acrobot, HIV])
def test_a_built_in_family_under_another_name_gives_the_same_bits(kind):
    own, other = (everything(family, kind()) for family in (kind(), renamed(kind)))
    for name in ("state", "action", "reward"):
        np.testing.assert_array_equal(getattr(own[0], name), getattr(other[0], name))
    np.testing.assert_array_equal(own[1].dynamics.posterior.mean, other[1].dynamics.posterior.mean)
    assert own[1].metrics == other[1].metrics
    for name in ("returns", "learning_returns", "latent", "model_error"):
        np.testing.assert_array_equal(getattr(own[2], name), getattr(other[2], name))
