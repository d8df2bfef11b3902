"""Bad input: a `ValueError` with one clear sentence."""

import re

import gymnasium
import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hipmdp
from hipmdp.families.gymnasium.environments import GridEnv

GRID, ACROBOT, HIV = (hipmdp.make(name) for name in ("grid", "acrobot", "hiv"))


def env(name, **kwargs):
    return gymnasium.make(f"hipmdp/{name}-v0", **kwargs)


def started(name):
    environment = env(name, theta={})
    environment.reset(seed=0)
    return environment.unwrapped


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hipmdp.make("acrobt"), "Unknown family 'acrobt'. Did you mean 'acrobot'?"),
        (lambda: hipmdp.make("HIV"), "Did you mean 'hiv'?"),
        (lambda: hipmdp.make("grid", bta=0.1), "Unknown option of grid 'bta'. Did you mean 'beta'?"),
        (lambda: hipmdp.make("grid", beta=0), "grid option 'beta' must be in (0, 1], got 0."),
        (lambda: hipmdp.make("acrobot", sd=-0.1), "acrobot option 'sd' must be in [0, 1], got -0.1."),
        (lambda: hipmdp.make("hiv", vary="some"), "Unknown value of hiv option 'vary' 'some'."),
        (lambda: HIV.theta({"lamda1": 1e4}), "Unknown parameter of hiv 'lamda1'. Did you mean 'lambda1'?"),
        (lambda: HIV.theta({"nt": 90}), "Did you mean 'NT'?"),
        (lambda: HIV.theta({"eps1": 1.2}), "hiv parameter 'eps1' must be in [0, 1], got 1.2."),
        (lambda: HIV.theta({"k1": -8e-7}), "hiv parameter 'k1' must be greater than 0, got -8e-07."),
        (lambda: HIV.theta({"k1": float("nan")}), "hiv parameter 'k1' must be finite, got nan."),
        (lambda: HIV.theta({"k1": "much"}), "hiv parameter 'k1' must be a number, got 'much'."),
        (lambda: HIV.theta([1, 2]), "theta of hiv must be a mapping by name or a HIVTheta, got list."),
        (lambda: ACROBOT.theta({"l1": -1}), "acrobot parameter 'l1' must be greater than 0, got -1."),
        (lambda: GRID.theta({"theta": 0.5}), "grid parameter 'theta' must be 0 or 1, got 0.5."),
        (lambda: env("Acrobot", theta={"l3": 1}), "Unknown parameter of acrobot 'l3'."),
        (lambda: GridEnv(render_mode="ansi"), "Unknown render_mode 'ansi'."),
        (lambda: env("Grid", theta={}).reset(options={"stat": [0, 0]}), "Did you mean 'state'?"),
        (
            lambda: env("Grid", theta={}).reset(options={"state": [0]}),
            "must have 2 numbers (x, y), got shape (1,).",
        ),
        (lambda: env("Grid", theta={}).reset(options={"state": [0, "a"]}), "must be a list of numbers"),
        (lambda: env("Grid", theta={}).reset(options={"state": [0, float("nan")]}), "but y is not."),
        (
            lambda: env("Grid", theta={}).reset(options={"state": [0, 2.5]}),
            "'y' of grid must be in [-2, 2], got 2.5.",
        ),
        (
            lambda: env("HIV", theta={}).reset(options={"state": [1, 1, 1, 1, 0, 1]}),
            "hiv state 'V' must be greater",
        ),
        (lambda: started("Grid").step(4), "must be a whole number: 0 W, 1 N, 2 E, 3 S; got 4."),
        (lambda: started("Grid").step(-1), "got -1."),
        (lambda: started("HIV").step(1.5), "got 1.5."),
        (lambda: started("HIV").step("none"), "got 'none'."),
        (lambda: env("Grid", theta={}).unwrapped.step(0), "call env.reset() first"),
        (lambda: GRID.step(jax.random.key(0), jnp.zeros(3), 0, GRID.theta()), "must have 2 numbers (x, y)"),
        (lambda: GRID.step(jax.random.key(0), jnp.zeros(2), 7, GRID.theta()), "got 7."),
        (lambda: GRID.step(jax.random.key(0), jnp.asarray([0, jnp.nan]), 0, GRID.theta()), "but y is not."),
        (
            lambda: GRID.step(jax.random.key(0), jnp.zeros(2), jnp.zeros(2, int), GRID.theta()),
            "one action at a time",
        ),
    ],
)
def test_one_clear_sentence(call, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


@settings(max_examples=150, deadline=None)
@given(values=st.dictionaries(st.sampled_from([*HIV.parameter_names, "k3", "", "K1"]), anything, max_size=4))
def test_any_mapping_gives_a_physical_theta_or_a_value_error(values):
    try:
        theta = HIV.theta(values)
    except ValueError as error:
        assert str(error).endswith((".", "?"))  # noqa: PT017
    else:
        assert all(bool(jnp.isfinite(v)) and float(v) >= 0 for v in theta)


@settings(max_examples=100, deadline=None)
@given(state=st.lists(anything, max_size=4) | anything)
def test_any_state_is_accepted_in_bounds_or_refused(state):
    try:
        accepted = ACROBOT.check_state(state)
    except ValueError:
        return
    assert accepted.shape == (4,)
    assert bool(jnp.all(jnp.isfinite(accepted)))
