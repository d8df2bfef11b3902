"""One contract for every registered family."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.families import FAMILIES
from hipmdp.families.scripted import random_policy

LANES = 8


@eqx.filter_jit
def sample(family, keys):
    return jax.vmap(family.sample_instance)(keys)


@eqx.filter_jit
def one_step(family, key, state, action, theta):
    return family.step(key, state, action, theta)


@eqx.filter_jit
def many_steps(family, keys, states, actions, thetas):
    return jax.vmap(family.step)(keys, states, actions, thetas)


@pytest.fixture(scope="module", params=list(FAMILIES))
def family(request):
    return hipmdp.make(request.param)


@pytest.fixture(scope="module")
def lanes(family):
    """(keys, states, actions, thetas) of LANES members drawn from the raw prior, a few steps into episodes."""
    keys = jax.random.split(jax.random.key(0), LANES)
    thetas = sample(family, keys)
    states = jax.vmap(family.reset)(keys, thetas)
    actions = jnp.arange(LANES, dtype=jnp.int32) % family.specification.action_count
    for shift in range(3):
        states = many_steps(family, keys, states, jnp.roll(actions, shift), thetas).state
    return keys, states, actions, thetas


def lane(tree, i):
    return jax.tree.map(lambda leaf: leaf[i], tree)


def test_shapes_and_dtypes_are_stable(family, lanes):
    keys, states, actions, thetas = lanes
    spec = family.specification
    assert states.shape == (LANES, spec.state_size)
    assert states.dtype == jnp.float32
    outcome = one_step(family, keys[0], states[0], actions[0], lane(thetas, 0))
    assert outcome.state.shape == (spec.state_size,)
    assert (outcome.state.dtype, outcome.reward.dtype, outcome.terminated.dtype) == (
        jnp.float32,
        jnp.float32,
        bool,
    )
    assert (outcome.reward.shape, outcome.terminated.shape) == ((), ())
    assert all(leaf.dtype == jnp.float32 and leaf.shape == (LANES,) for leaf in jax.tree.leaves(thetas))
    assert thetas._fields == family.parameter_names
    lengths = {len(spec.state_names), len(spec.state_low), len(spec.state_high), len(spec.angles)}
    assert lengths == {spec.state_size}


def test_jit_equals_no_jit(family, lanes):
    keys, states, actions, thetas = lanes
    jitted = one_step(family, keys[1], states[1], actions[1], lane(thetas, 1))
    with jax.disable_jit():
        plain = family.step(keys[1], states[1], actions[1], lane(thetas, 1))
    np.testing.assert_allclose(jitted.state, plain.state, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(jitted.reward, plain.reward, rtol=2e-4)
    assert bool(jitted.terminated) == bool(plain.terminated)


def test_vmap_over_theta_and_lanes_equals_single_steps(family, lanes):
    keys, states, actions, thetas = lanes
    together = many_steps(family, keys, states, actions, thetas)
    for i in range(LANES):
        alone = one_step(family, keys[i], states[i], actions[i], lane(thetas, i))
        np.testing.assert_allclose(together.state[i], alone.state, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(together.reward[i], alone.reward, rtol=2e-4)


def test_same_key_same_result_to_the_bit(family, lanes):
    keys, states, actions, thetas = lanes
    again = sample(family, keys)
    assert all(np.array_equal(a, b) for a, b in zip(thetas, again, strict=True))
    assert np.array_equal(family.reset(keys[0], lane(thetas, 0)), family.reset(keys[0], lane(thetas, 0)))
    first, second = (many_steps(family, keys, states, actions, thetas) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_different_keys_differ(family, lanes):
    keys, _, _, thetas = lanes
    drawn = np.stack([np.asarray(leaf) for leaf in thetas], axis=-1)
    assert len(np.unique(drawn, axis=0)) == (2 if family.name == "grid" else LANES)
    starts = np.stack([family.reset(key, lane(thetas, 0)) for key in keys])
    assert len(np.unique(starts, axis=0)) == (1 if family.fixed_start else LANES)


def test_hidden_parameters_change_the_dynamics(family, lanes):
    keys, states, _, _ = lanes
    # Classes are swapped (a wall is met only beside it), numbers grow by a twentieth.
    changes = {name: 1.05 * base + 0.05 * (base == 0) for name, base in family.baseline._asdict().items()
               if name not in ("eps1", "eps2", "wall")} | ({"theta": 1.0} if family.listed_members else {})  # fmt: skip
    thetas = [family.theta({name: value}) for name, value in changes.items()]
    action = jnp.asarray(family.specification.action_count - 1)
    nominal = one_step(family, keys[0], states[0], action, family.theta())
    for theta in thetas:
        changed = one_step(family, keys[0], states[0], action, theta)
        moved = not np.array_equal(changed.state, nominal.state)
        # l2 enters the acrobot only through the height of its foot, that is through reward and termination.
        assert moved or float(changed.reward) != float(nominal.reward)


def test_time_limit_never_terminates(family):
    """Random episodes that last the whole horizon are not terminated, those that end early are."""
    keys = jax.random.split(jax.random.key(3), LANES)
    thetas = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (LANES,)), family.theta())
    episodes = family.rollouts(random_policy(family), keys, thetas)
    full = np.asarray(episodes.length) == family.horizon
    ended = np.asarray(episodes.steps.terminated).any(axis=-1)
    assert full.any()
    assert not ended[full & ~np.asarray(episodes.steps.terminated)[:, -1]].any()
    last_states = episodes.steps.next_state[:, -1]
    flags = [bool(family.terminated(s, lane(thetas, i))) for i, s in enumerate(last_states)]
    assert flags == ended.tolist()


def test_states_stay_in_the_declared_bounds(family):
    keys = jax.random.split(jax.random.key(4), LANES)
    thetas = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (LANES,)), family.theta())
    states = np.asarray(family.rollouts(random_policy(family), keys, thetas).steps.next_state)
    low, high = (np.asarray(b, np.float32) for b in (family.specification.state_low, family.specification.state_high))
    assert (states >= low).all()
    assert (states <= high).all()


def test_draw_instances_are_well_behaved_and_extend(family):
    few, more = family.draw_instances(jax.random.key(9), 3), family.draw_instances(jax.random.key(9), 5)
    assert all(np.array_equal(a, b[:3]) for a, b in zip(few, more, strict=True))
    assert bool(jnp.all(eqx.filter_jit(jax.vmap(family.is_well_behaved))(more)))
    with pytest.raises(ValueError, match="at least 1"):
        family.draw_instances(jax.random.key(9), 0)


def test_specification_survives_json(family):
    import json

    spec = family.specification
    assert hipmdp.Specification.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
