"""The HIV family against numbers that can be checked by hand; LSODA comparisons are in tests/oracles."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.families.hiv import UNHEALTHY_START, VARIED
from hipmdp.families.scripted import constant_policy

HIV = hipmdp.make("hiv")
START = np.log10(np.asarray(UNHEALTHY_START))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        # V = 63919, E = 24 after the step; RTI costs 2e4·0.49 = 9800, PI 2e3·0.09 = 180.
        (0, -6391.9 + 24000),
        (1, -6391.9 + 24000 - 9800),
        (2, -6391.9 + 24000 - 180),
        (3, -6391.9 + 24000 - 9980),
    ],
)
def test_reward_by_hand(action, expected):
    state = jnp.asarray(START, jnp.float32)
    assert float(HIV.reward(state, jnp.asarray(action), state)) == pytest.approx(expected, rel=1e-4)


def test_baseline_returns():
    """Undiscounted 200-step returns of the baseline patient under constant treatment."""
    key, theta = jax.random.key(0)[None], jax.tree.map(lambda leaf: leaf[None], HIV.theta())
    expected = (3_432_590, 3_192_270, 3_978_320, 7_021_675)
    for action, value in enumerate(expected):
        total = float(HIV.rollouts(constant_policy(action), key, theta).undiscounted_return[0])
        assert total == pytest.approx(value, rel=1e-3)


def test_prior_varies_twelve_or_all():
    for family, count in ((HIV, 12), (hipmdp.make("hiv", vary="all"), 22)):
        draws = jax.vmap(family.sample_instance)(jax.random.split(jax.random.key(0), 400))
        varied = [name for name, leaf in draws._asdict().items() if np.ptp(np.asarray(leaf)) > 0]
        assert len(varied) == count
        assert set(VARIED) <= set(varied)
        ratio = np.asarray(draws.lambda1) / HIV.baseline.lambda1
        assert np.mean(ratio) == pytest.approx(1, abs=0.04)
        assert np.std(ratio) == pytest.approx(0.25, abs=0.025)
        for name in ("f", "eps1", "eps2"):
            values = np.asarray(getattr(draws, name))
            assert ((values >= 0) & (values <= 1)).all()


def test_well_behaved_parts():
    parts = eqx.filter_jit(HIV.well_behaved_parts)
    assert all(bool(v) for v in parts(HIV.theta()).values())
    negative = parts(HIV.theta()._replace(k1=jnp.asarray(-8e-7)))
    assert not bool(negative["physical parameters"])
    # An immune response that hardly dies heals the patient without any drug.
    strong = parts(HIV.theta({"dE": 0.1}))
    assert not bool(strong["unhealed untreated"])
    assert bool(strong["integrates"])


def test_nominal_efficacies_in_the_reward():
    """A patient who responds less to the drugs pays the same for them: R tells nothing about θ."""
    state = jnp.asarray(START, jnp.float32)
    weak = HIV.theta({"eps1": 0.2, "eps2": 0.1})
    assert float(HIV.reward(state, jnp.asarray(3), state, weak)) == float(HIV.reward(state, jnp.asarray(3), state))
