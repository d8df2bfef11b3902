"""The rules of the recipe: what they read, and what they decide."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

import hipmdp
from hipmdp.control.exploration import epsilon
from hipmdp.settings import recipe
from hipmdp.settings.presets import adaptation_preset, dqn_preset, dynamics_preset
from tests.systems.corridor import Corridor

SPECIFICATION = Corridor().specification


@pytest.mark.parametrize(("instances", "size"), [(1, 2), (2, 2), (3, 2), (5, 4), (13, 12), (500, 12)])
def test_n_instances_differ_in_n_minus_one_directions(instances, size):
    assert recipe.dynamics(instances).latent_size == size


@pytest.mark.parametrize("episodes", [10, 150, 2000])
def test_epsilon_is_at_its_floor_after_the_same_share_of_the_episodes(episodes):
    config = recipe.real_dqn(SPECIFICATION, episodes)
    early, late = (float(epsilon(config, jnp.asarray(int(share * episodes)))) for share in (0.3, 0.6))
    assert early > 1.5 * config.epsilon_floor
    assert late == pytest.approx(config.epsilon_floor, rel=0.01)


@pytest.mark.parametrize("name", ["grid", "acrobot", "hiv", "compass"])
def test_one_recipe_whatever_the_family_is_called(name):
    """A built-in family under another name gets the same settings, and γ is the specification's."""
    own = hipmdp.make(name).specification
    other = replace(own, family="rigs")
    for make in (
        lambda s: dqn_preset("default", s, 100),
        lambda s: dynamics_preset("default", s, 8),
        lambda s: adaptation_preset("default", s),
        lambda s: adaptation_preset("default", s, refined=True),
        recipe.amortise,
        recipe.online,
        recipe.search,
    ):
        assert make(own) == make(other)
    assert dqn_preset("default", own, 100).discount == own.discount


def test_who_goes_on_from_a_policy_explores_little():
    plain, refined = (adaptation_preset("default", SPECIFICATION, refined=refined) for refined in (False, True))
    assert (plain.pqn.epsilon_start, refined.pqn.epsilon_start) == (1.0, 0.2)
    assert replace(refined, pqn=plain.pqn) == plain


@pytest.mark.parametrize(("actions", "steps"), [(2, 2), (4, 2), (8, 2), (9, 1), (50, 1), (65, 0)])
def test_it_looks_as_far_ahead_as_there_is_time_for(actions, steps):
    """At most 64 sequences of actions, and two steps."""
    assert recipe.steps_ahead(actions) == steps


@pytest.mark.parametrize(("instances", "episodes"), [(1, 500), (2, 500), (12, 400), (32, 150), (500, 150)])
def test_a_study_has_about_as_many_training_episodes_whatever_the_number_of_instances(instances, episodes):
    assert recipe.training_episodes(instances, simulated=True) == episodes
    assert recipe.training_episodes(instances, simulated=False) == 150


def test_what_the_rules_chose_is_explained():
    """A latent of another size was not chosen by the rule, and a model without one has none."""
    told = recipe.explained(SPECIFICATION, 5, 4, 2.5)
    assert told["latent size"] == "4: one less than the 5 instances, from 2 to 12"
    assert told["unit of rewards"].startswith("2.5,")
    assert told["random actions"] == "single; held for up to 5 of 20 steps where nothing happens"
    for size in (3, None):
        assert "latent size" not in recipe.explained(SPECIFICATION, 5, size, None)
