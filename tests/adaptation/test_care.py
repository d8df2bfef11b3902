"""Caution and limits in real episodes, on the corridor: x > 1 is the goal, a step is 0.4, −1 swaps left and right."""

from dataclasses import replace

import numpy as np
import pytest

import hipmdp
from hipmdp.adaptation.remarks import broken_limits
from hipmdp.settings.limits import Limits
from tests.systems.corridor import AMORTISE, CORRIDOR, TRANSFER
from tests.systems.corridor_runs import adapt, batch, model

LIMITS = Limits(("x<=0.7",), 0.05, 3)


@pytest.fixture(scope="module")
def kept():
    return adapt("amortised", -1.0, limits=LIMITS)


def test_a_limit_before_the_goal_is_kept(kept):
    """The free policy ends in the goal; within the limit twenty steps go by."""
    assert kept.transitions.next_state.max() <= 0.7 + 1e-6
    assert kept.returns.tolist() == kept.learning_returns.tolist() == [-20.0, -20.0]


def test_the_record_of_limits(kept):
    for info in kept.trace:
        assert info["chances"].shape == (20, 2)
        assert ((info["chances"] >= 0) & (info["chances"] <= 1)).all()
        assert info["decisions"] == 20
        assert info["decisions_allowed"] == (info["chances"] <= 0.05).any(axis=1).sum() >= 18
        assert info["broken_if_allowed"] == 0
    # Where the member is known, its step across the limit is known to break it, as long as one step can.
    states, chances = (kept.transitions.state[20:, 0], kept.trace[1]["chances"])
    assert (chances[(states > 0.35) & (states <= 0.6)].max(axis=1) > 0.9).all()
    assert kept.config.limits == LIMITS


def test_it_resumes_with_its_limits(kept, tmp_path):
    first = adapt("amortised", -1.0, limits=LIMITS, out=tmp_path, episodes=1)
    assert first.returns.tolist() == [-20.0]
    with pytest.raises(ValueError, match="run"):
        adapt("amortised", -1.0, limits=LIMITS.limits, risk=0.1, within=3, out=tmp_path, episodes=1)
    again = adapt("amortised", -1.0, limits=LIMITS.limits, risk=0.05, within=3, out=tmp_path, episodes=1)
    np.testing.assert_array_equal(first.transitions.action, again.transitions.action)
    np.testing.assert_array_equal(first.transitions.action, kept.transitions.action[:20])


def test_no_caution_is_what_it_was():
    plain, zero, cautious = (adapt("amortised", 1.0, **options) for options in ({}, {"caution": 0}, {"caution": 0.9}))
    np.testing.assert_array_equal(plain.transitions.state, zero.transitions.state)
    assert plain.trace[0].keys() == zero.trace[0].keys()
    assert cautious.config.caution == 0.9
    assert cautious.learning_returns[1] >= 8


def test_a_model_remembers_its_caution(tmp_path):
    given = replace(model("amortised"), metadata={**model("amortised").metadata, "caution": 0.5})
    given.save(tmp_path / "model.hipmdp")
    options = {"model": hipmdp.load(tmp_path / "model.hipmdp"), "config": None, "episodes": 1}
    assert adapt("amortised", 1.0, **options).config.caution == 0.5
    assert adapt("amortised", 1.0, **options, caution=0.0).config.caution == 0.0
    with pytest.raises(ValueError, match="caution must be at least 0"):
        hipmdp.amortise(model("embedded"), batch(), config=AMORTISE, family=CORRIDOR, caution=1.0)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("refined", {"limits": LIMITS}, "Limits are kept by method 'amortised', and not by 'refined'."),
        ("embedded", {"config": replace(TRANSFER, limits=LIMITS)}, "Limits are kept by method 'amortised'"),
        ("blind", {"caution": 0.5}, "caution is for methods whose Q.s, w. acts under a belief"),
        ("scratch", {"caution": 0.5}, "'scratch' has none here"),
        ("amortised", {"limits": ("y<=1",)}, "Unknown state in a limit 'y'"),
        ("amortised", {"limits": ("x<=5",)}, "is far from all data"),
        ("amortised", {"risk": 0.0}, "risk must be above 0"),
        ("amortised", {"caution": 1.0}, "caution must be at least 0"),
    ],
)
def test_what_would_not_be_kept_is_refused(method, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        adapt(method, 1.0, **options, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_limits_choose_the_method():
    both = replace(model("amortised"), method="embedded")
    assert adapt(None, 1.0, model=both, limits=LIMITS, episodes=1).method == "amortised"


def test_what_is_said_of_limits():
    def said(decisions, allowed, broken):
        kept = {"decisions": decisions, "decisions_allowed": allowed, "broken_if_allowed": broken}
        return broken_limits(LIMITS, kept)

    assert said(20, 20, 1) == []
    (alone,) = said(20, 18, 0)
    assert alone.startswith("In 2 of 20 decisions every action was predicted to break x<=0.7 within 3 steps with a")
    (broken,) = said(20, 20, 2)
    assert broken.startswith("After 2 of the 20 other decisions x<=0.7 was broken within 3 steps, more often than")
