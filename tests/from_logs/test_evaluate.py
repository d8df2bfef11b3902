"""What a policy is worth on a system of which there is only a log."""

from dataclasses import replace

import numpy as np
import pytest

import hipmdp
from hipmdp.control.policy import Constant, Policy, function_policy
from hipmdp.from_logs.evaluation.estimate import logged_episodes
from tests.dynamics.toys import random_batch
from tests.systems.corridor import CORRIDOR
from tests.systems.corridor_runs import model

LEFT, RIGHT = 0, 1


def log(direction=1.0, episodes=6):
    return random_batch(CORRIDOR, ({"direction": direction},), episodes=episodes, seed=3)


def right(specification):
    return Policy(specification, Constant(RIGHT))


# All of it.


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_the_right_way_is_better_than_random_and_the_wrong_one_worse(direction):
    """−1 − γ + 10 γ² = 6.2 for the right way; the wrong one costs 1 in each of 20 steps: −8.78."""
    good, bad = ("right", "left") if direction > 0 else ("left", "right")
    logged = log(direction)
    found = hipmdp.evaluate(model("embedded"), logged, f"constant:{good}")
    assert found.value.value == pytest.approx(6.2, abs=0.8)
    assert found.undiscounted.value == pytest.approx(8, abs=0.8)
    assert found.value.low <= 6.2 <= found.value.high
    earned = logged_episodes(logged).returns(0.9).mean()
    assert found.logged.value == pytest.approx(earned)
    assert found.verdict == "better"
    worse = hipmdp.evaluate(model("embedded"), logged, f"constant:{bad}")
    assert worse.value.value == pytest.approx(-(1 - 0.9**20) / 0.1, abs=0.5)
    assert worse.value.high < found.value.low


def test_policies_by_name(tmp_path, monkeypatch):
    known, logged = model("amortised"), log(-1.0)
    specification = known.specification
    done = hipmdp.evaluate(known, logged, "logged")
    assert done.value == done.logged
    assert done.verdict == "what was done"
    asked = hipmdp.evaluate(known, logged, "amortised")
    assert asked.value.value == pytest.approx(6.2, abs=0.8)
    assert asked.value.low <= 6.2 <= asked.value.high
    same = [
        hipmdp.evaluate(known, logged, policy).value
        for policy in (Policy(specification, Constant(LEFT)), lambda state: "left", "constant:left")
    ]
    assert same[0] == same[1] == same[2]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evaluated.py").write_text("def go(state):\n    return 0 if state[0] < 5 else 1\n")
    assert hipmdp.evaluate(known, logged, "evaluated:go").value == same[0]


def test_bad_policies_are_one_sentence(tmp_path):
    known, logged = model("embedded"), log()
    known.save(tmp_path / "model.hipmdp")
    for policy, message in (
        ("constant:up", "Unknown action of a constant policy 'up'"),
        ("best", "There is no policy 'best': say amortised"),
        (str(tmp_path), "holds no policy of one system"),
        ("amortised", "needs a policy Q"),
        (3, "A policy must be a Policy"),
        (Policy(replace(CORRIDOR.specification, family="other"), Constant(0)), "of another family"),
    ):
        with pytest.raises(ValueError, match=message):
            hipmdp.evaluate(known, logged, policy)
    with pytest.raises(ValueError, match="at least 10 transitions"):
        hipmdp.evaluate(known, logged.select(np.arange(3)), "logged")


def test_a_function_must_return_an_action():
    policy = function_policy(lambda state: 2, CORRIDOR.specification)
    with pytest.raises(ValueError, match="must return an action"):
        policy([0.0])
