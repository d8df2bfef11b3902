"""Chances of breaking a limit, by rollouts that can be worked out by hand."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.control.caution import Chances
from hipmdp.control.guard import Guard, boundary, broken_within, draw_count, guarded, keys_of
from hipmdp.families.rollout import AbstractEnvironment, Step
from hipmdp.settings.limits import Limits
from tests.systems.corridor import Corridor

SPECIFICATION = Corridor().specification
KEY = jax.random.key(0)
LEFT, STAY, RIGHT = 0, 1, 2


class Walk(AbstractEnvironment):
    """A step to the left, none, or to the right, as long as the context says; beyond 8 the episode ends."""

    @property
    def horizon(self):
        return 20

    def reset(self, key, context):
        return jnp.zeros(1, jnp.float32)

    def step(self, key, state, action, context):
        after = state + context * (action - 1).astype(jnp.float32)
        return Step(after, jnp.zeros(()), after[0] > 8)


class Same(eqx.Module):
    """What a member may be, whatever is remembered: lengths of its steps."""

    lengths: jax.Array

    def __call__(self, key, memory):
        return self.lengths


class Always(NamedTuple):
    """The same action."""

    action: int

    def __call__(self, state, context):
        return jnp.asarray(self.action, jnp.int32)


def chances(limit, lengths, start=0.0, policy=STAY, within=3, risk=0.05):
    limits = Limits((limit,), risk, within)
    lengths = jnp.asarray(lengths, jnp.float32)
    guard = Guard(Walk(), Same(lengths), Always(policy), boundary(limits, SPECIFICATION), within=within, risk=risk)
    return guard.chances(KEY, jnp.asarray([start], jnp.float32), None, 3)


def test_an_action_now_and_the_policy_or_the_safest_action_afterwards():
    """From 0 with steps of 1 or 2: to the right, then nothing, reaches 1 or 2."""
    found = chances("x<=1", [1.0, 2.0])
    np.testing.assert_allclose(found.chance, [0.0, 0.0, 0.5])
    # In that half all three next states are beyond, when one stays; one, when one goes back at once.
    np.testing.assert_allclose(found.beyond, [0.0, 0.0, 1 / 6], rtol=1e-6)
    # The policy goes to the right: an actor that checks every decision would not follow it.
    np.testing.assert_allclose(chances("x<=1", [1.0, 2.0], policy=RIGHT).chance, [0.0, 0.0, 0.5])


@pytest.mark.parametrize(("limit", "expected"), [("x<=1", 0.0), ("x<1", 1.0), ("x>=-1", 0.0), ("x>1", 1.0)])
def test_the_bound_itself(limit, expected):
    assert float(chances(limit, [1.0], within=1).chance[RIGHT]) == expected


def test_only_next_states_count():
    """From 3 the limit is broken now; a step back mends it, at once."""
    found = chances("x<=2", [1.0], start=3.0)
    np.testing.assert_allclose(found.chance, [0.0, 1.0, 1.0])
    # From 5 nothing does within two steps; going back breaks it as shortly as nothing else.
    found = chances("x<=2", [1.0, 3.0], start=5.0, within=2)
    np.testing.assert_allclose(found.chance, [0.5, 1.0, 1.0])
    np.testing.assert_allclose(found.beyond, [0.5, 0.75, 1.0])


def test_what_comes_after_the_end_does_not_count():
    """From 8 a step to the right ends the episode; to the left and back again would break the limit later."""
    assert float(chances("x<=9", [1.0], start=8.0, policy=RIGHT).chance[RIGHT]) == 0.0
    assert float(chances("x<=8.5", [1.0], start=8.0).chance[RIGHT]) == 1.0


def test_several_limits():
    limits = Limits(("x<=1", "x>=-1"))
    both = boundary(limits, SPECIFICATION)
    assert [bool(both.is_broken(jnp.asarray([x]))) for x in (-1.5, -1.0, 0.0, 1.0, 1.5)] == [
        True, False, False, False, True,
    ]  # fmt: skip


def test_the_best_allowed_action_is_taken():
    scores = jnp.asarray([0.0, 1.0, 2.0])
    limits = Limits(("x<=1",), 0.4, 3)
    for risk, expected in ((0.4, STAY), (0.6, RIGHT)):
        guard = Guard(
            Walk(), Same(jnp.asarray([1.0, 2.0])), Always(STAY), boundary(limits, SPECIFICATION), within=3, risk=risk
        )
        decision = guarded(guard, KEY, jnp.zeros(1), None, scores)
        assert int(decision.action) == expected
        assert isinstance(decision.chances, Chances)
    free = guarded(None, KEY, jnp.zeros(1), None, scores)
    assert (int(free.action), free.chances) == (RIGHT, None)
    assert keys_of(KEY, None)[0] is KEY


def test_draws_are_many_enough_for_the_risk():
    assert [draw_count(risk) for risk in (0.5, 0.05, 0.01, 1e-6)] == [64, 80, 400, 512]


def test_broken_within_by_hand():
    limits = Limits(("x<=1",), 0.05, 2)
    states = np.asarray([[0.0], [1.5], [0.0], [0.0], [2.0]])
    assert broken_within(limits, SPECIFICATION, states).tolist() == [True, True, False, True, True]
