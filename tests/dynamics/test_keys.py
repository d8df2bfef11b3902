"""The same key gives the same numbers, to the bit; another key gives others."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.data.support import Support
from hipmdp.dynamics.belief import new_filter
from hipmdp.dynamics.fit_family import fit_dynamics
from hipmdp.dynamics.gp import fit_gp
from hipmdp.dynamics.infer import infer_latent, tune_model
from hipmdp.dynamics.model import predict
from hipmdp.dynamics.network import initial_mean
from hipmdp.dynamics.quality import latent_use, quality
from hipmdp.dynamics.reward_head import new_reward_head
from tests.dynamics.test_fit import SLOPES, SMALL, slopes_log

CONFIG = replace(SMALL, rounds=20, tune_rounds=5, infer_steps=5)
BATCH = slopes_log(SLOPES, 40)


@pytest.fixture(scope="module")
def model():
    return fit_dynamics(BATCH, CONFIG, key=jax.random.key(0))


def one_of(batch):
    return batch.of_instance(0)


DRAWN = {
    "fit_dynamics": lambda model, key: fit_dynamics(BATCH, CONFIG, key=key).posterior.mean,
    "initial latents": lambda model, key: fit_dynamics(BATCH, CONFIG, key=key, rounds=1).latents,
    "infer_latent": lambda model, key: infer_latent(model, one_of(BATCH), key=key).value,
    "tune_model": lambda model, key: tune_model(model, one_of(BATCH), key=key).dynamics.posterior.mean,
    "tune_model from a latent": lambda model, key: (
        tune_model(model, one_of(BATCH), key=key, latent=jnp.zeros(2)).latent
    ),
    "quality": lambda model, key: quality(model, one_of(BATCH), model.latents[0], key=key).log_likelihood,
    "latent_use": lambda model, key: latent_use(model, BATCH, key=key, most=20).error_own_latent,
    "predict": lambda model, key: predict(model, BATCH.state[:3], BATCH.action[:3], model.latents[0], key=key).mean,
    "new_filter": lambda model, key: new_filter(model, key).weights,
    "new_reward_head": lambda model, key: new_reward_head(model.specification, model.scaling, 2, key=key).weights,
    "Support.sample": lambda model, key: Support.sample(BATCH, key=key, most=20).state,
}


@pytest.mark.parametrize("name", DRAWN)
def test_keys_repeat_to_the_bit_and_differ(model, name):
    first, again, other = (np.asarray(DRAWN[name](model, jax.random.key(seed))) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_latents_of_a_gp_start_from_the_key():
    small = BATCH.select(np.arange(len(BATCH)) % 20 == 0)
    first, again, other = (fit_gp(small, key=jax.random.key(seed), steps=0).hyper.latents for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_layers_start_differently():
    """Two square layers: no key serves both."""
    weights = np.asarray(initial_mean((4, 4, 4, 1), key=jax.random.key(0)))
    assert not np.array_equal(weights[:16], weights[20:36])
