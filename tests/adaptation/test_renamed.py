"""Nothing depends on what a family is called: built-in families under another name give the same bits."""

from dataclasses import replace

import equinox as eqx
import jax
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


def learned(family, reference):
    """What the recipe learns from a family, at a tiny size: a batch, and a model with its policy."""
    train = [instance.theta for instance in reference.instances("train")[:2]]
    batch = hipmdp.collect(family, train, episodes=3, seed=1, quiet=True, jobs=1)
    dynamics = replace(recipe.dynamics(2), hidden=(16,), correction=(8,), rounds=30, tune_rounds=10)
    return batch, hipmdp.pretrain(batch, seed=1, quiet=True, config=dynamics, policy=tiny_policy(), family=family)


def adapted(family, model, reference):
    """A run of two episodes by the default method."""
    config = replace(
        recipe.adaptation(family.specification), pqn=tiny_policy().pqn, imagined_steps=64, weight_draws=2,
        validation_episodes=2, steps_ahead=1,
    )  # fmt: skip
    theta = reference.instances("test")[0].theta
    run = hipmdp.learn_policy(model, family, theta, episodes=2, seed=1, quiet=True, config=config)
    assert run.method == "refined"
    return run


@pytest.mark.filterwarnings("ignore::hipmdp.LatentIgnoredWarning")
@pytest.mark.parametrize("kind", [Grid, Compass, Acrobot, HIV])
def test_a_built_in_family_under_another_name_gives_the_same_bits(kind):
    own, other = kind(), renamed(kind)
    (batch, model), (same_batch, same_model) = (learned(family, own) for family in (own, other))
    for name in ("state", "action", "reward"):
        np.testing.assert_array_equal(getattr(batch, name), getattr(same_batch, name))
    np.testing.assert_array_equal(model.dynamics.posterior.mean, same_model.dynamics.posterior.mean)
    policies = [jax.tree.leaves(eqx.filter(m.latent_policy, eqx.is_array)) for m in (model, same_model)]
    for one, same in zip(*policies, strict=True):
        np.testing.assert_array_equal(one, same)
    assert model.metrics == same_model.metrics
    # The run compiles most: two families of different kinds (walls; a smooth one with a fixed start) stand for all.
    if kind in (Compass, HIV):
        run, same_run = adapted(own, model, own), adapted(other, same_model, own)
        for name in ("returns", "learning_returns", "latent", "model_error"):
            np.testing.assert_array_equal(getattr(run, name), getattr(same_run, name))
