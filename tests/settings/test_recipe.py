"""The rules of the recipe: what they read, and what they decide."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

import hipmdp
from hipmdp.control.exploration import epsilon
from hipmdp.settings import recipe
from hipmdp.settings.presets import adaptation_preset, amortise_preset, dqn_preset, dynamics_preset, online_preset
from hipmdp.settings.recipe import Facts
from tests.systems.corridor import Corridor

SPECIFICATION = Corridor().specification


@pytest.mark.parametrize(("instances", "size"), [(1, 2), (2, 2), (3, 2), (5, 4), (13, 12), (500, 12)])
def test_n_instances_differ_in_n_minus_one_directions(instances, size):
    assert recipe.dynamics(Facts(instances, 50.0)).latent_size == size


@pytest.mark.parametrize(
    ("length", "episodes"), [(1.0, 4000), (10.0, 4000), (37.0, 2000), (100.0, 1000), (200.0, 500), (2000.0, 125)]
)
def test_imagined_episodes_make_a_hundred_thousand_steps(length, episodes):
    short = replace(SPECIFICATION, horizon=100)
    assert recipe.imagined_episodes(short, Facts(5, length)) == episodes


def test_imagined_episodes_have_room_where_they_last_longer_than_the_batch_s():
    """Episodes of 20 steps in the batch that may last 1,000: at most a million steps."""
    assert recipe.imagined_episodes(replace(SPECIFICATION, horizon=1000), Facts(5, 20.0)) == 1000


@pytest.mark.parametrize("episodes", [10, 150, 2000])
def test_epsilon_is_at_its_floor_after_the_same_share_of_the_episodes(episodes):
    config = recipe.real_dqn(SPECIFICATION, episodes)
    early, late = (float(epsilon(config, jnp.asarray(int(share * episodes)))) for share in (0.3, 0.6))
    assert early > 1.5 * config.epsilon_floor
    assert late == pytest.approx(config.epsilon_floor, rel=0.01)


def test_one_recipe_whatever_the_family_is_called():
    """Two names that nobody has values for get the same settings, and γ is the specification's."""
    facts = Facts(8, 40.0)
    patients, rigs = (replace(SPECIFICATION, family=name) for name in ("patients", "rigs"))
    for make in (
        lambda s: dqn_preset("default", s, 100),
        lambda s: dynamics_preset("default", s, facts),
        lambda s: adaptation_preset("default", s, facts),
        lambda s: amortise_preset("default", s, facts),
        online_preset,
    ):
        assert make(patients) == make(rigs)
    assert dqn_preset("default", patients, 100).discount == patients.discount


def test_a_model_keeps_what_the_rules_read():
    batch = hipmdp.collect(Corridor(), 2, episodes=3, quiet=True, jobs=1)
    model = hipmdp.pretrain(batch, "model_free", quiet=True)
    assert model.facts == Facts(2, len(batch) / 6)
