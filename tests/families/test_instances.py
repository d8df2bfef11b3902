"""What a family says about its instance sets, its scripted rule, and whether it can be simulated."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp._random import root_key, stream
from hipmdp.control.policies import repeat_theta
from hipmdp.families.instances import frozen_instance, resolve_instances
from hipmdp.families.protocol import AbstractFamily, BaseFamily
from hipmdp.families.rollout import mean_return
from tests.families.walks import WALK
from tests.systems.corridor import CORRIDOR


@pytest.mark.parametrize(
    ("name", "options", "file"),
    [
        ("grid", {}, "grid.json"),
        ("grid", {"beta": 0.1}, None),
        ("acrobot", {}, "acrobot.json"),
        ("acrobot", {"sd": 0.25}, "acrobot-wide.json"),
        ("acrobot", {"sd": 0.2}, None),
        ("hiv", {}, "hiv.json"),
        ("hiv", {"vary": "all"}, None),
        ("hiv", {"sd": 0.1}, None),
    ],
)
def test_a_family_names_its_file_where_its_options_have_one(name, options, file):
    family = hipmdp.make(name, **options)
    assert family.instance_file == file
    if file is None:
        with pytest.raises(ValueError, match=r"no frozen instances for .* draw some with draw_instances"):
            family.instances("test")
    else:
        assert family.instances("test")[0].is_scored


def test_a_family_of_users_own_ships_none_and_draws_its_sets():
    assert CORRIDOR.instance_file is None
    assert WALK.instance_file is None
    assert not frozen_instance(CORRIDOR, "train32:3").is_scored
    with pytest.raises(ValueError, match=r"Unknown instance set of corridor 'tets'. Did you mean 'test'"):
        CORRIDOR.instances("tets")


def test_the_training_pool_is_the_familys_to_name():
    assert [hipmdp.make(name).training_pool for name in ("grid", "acrobot", "hiv")] == ["train", "train32", "train32"]
    with pytest.raises(ValueError, match="between 1 and 2, got 3"):
        resolve_instances(hipmdp.make("grid"), 3, jax.random.key(0))


@pytest.mark.parametrize("name", ["grid", "acrobot", "hiv"])
def test_the_scripted_rule_is_the_familys_own(name):
    """Its return on a frozen instance is the stored one, up to the draw of the starts."""
    family = hipmdp.make(name)
    words, rule = family.scripted_rule
    member = family.instances("test")[0]
    keys = jax.random.split(jax.random.key(0), 1 if family.fixed_start else 200)
    episodes = family.rollouts(rule, keys, repeat_theta(member.theta, len(keys)))
    assert words
    assert mean_return(episodes) == pytest.approx(member.scripted, rel=0.01 if family.fixed_start else 0.1)
    assert CORRIDOR.scripted_rule is None


def test_a_family_in_jax_is_its_own_simulator():
    assert CORRIDOR.simulator("anything") is CORRIDOR
    assert CORRIDOR.simulated
    assert isinstance(CORRIDOR, BaseFamily)
    assert not isinstance(WALK, AbstractFamily)


@pytest.mark.parametrize("family", [hipmdp.make("acrobot"), WALK], ids=["jax", "gymnasium"])
def test_draw_i_has_the_stream_of_its_index(family):
    """Every draw of the acrobot is well-behaved here, so that numbers are not shifted."""
    key = root_key(3)
    drawn = family.draw_instances(key, 4)
    for i in range(4):
        alone = family.sample_instance(stream(key, "families/prior", i))
        for together, value in zip(drawn, alone, strict=True):
            np.testing.assert_allclose(together[i], value, rtol=1e-6)


def test_every_module_of_families_can_be_imported_first():
    """No cycle, whichever module comes first."""
    modules = ("gymnasium.build", "instances", "base_family", "protocol", "scripted", "check_family", "grid")
    for module in modules:
        subprocess.run([sys.executable, "-c", f"import hipmdp.families.{module}"], check=True)
