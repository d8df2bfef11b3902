"""The families of benchmarks/synthetic.py: what a seed decides, what thirty seeds cover, the equations by hand."""

import importlib
import json
import warnings
from dataclasses import asdict
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.synthetic_families import (
    DYNAMICS,
    ENTRIES,
    HORIZONS,
    REWARDS,
    SIGNS,
    Draw,
    Goal,
    Synthetic,
    System,
    _probe,
    drift,
    matrices,
    numbers,
    plain_reward,
)
from hipmdp.families.check_family import check_family

SEEDS = range(30)


def typical_reward(seed):
    """Mean |R| over some of the states behind the goal."""
    draw, system, _ = numbers(seed)
    paths, actions = _probe(np.random.default_rng(0), draw, system)
    with jax.disable_jit():
        rewards = [Synthetic(seed).reward(path[0], jnp.asarray(int(np.argmax(chosen[0]))), path[-1])
                   for path, chosen in zip(paths[::8], actions[::8], strict=True)]  # fmt: skip
    return np.mean(np.abs(rewards))


def test_a_seed_decides_everything():
    first = numbers(7)
    numbers.cache_clear()
    again = numbers(7)
    assert first is not again
    assert first.draw == again.draw
    for part, same in zip((*first.system, *first.goal), (*again.system, *again.goal), strict=True):
        np.testing.assert_array_equal(part, same)
    assert Synthetic(7) == Synthetic(seed=7.0)
    assert Synthetic(7).name == "synthetic7"
    assert Synthetic(7).instances("test")[0].theta == Synthetic(7).instances("test")[0].theta


def test_thirty_seeds_differ_and_cover_all_kinds():
    draws = [numbers(seed).draw for seed in SEEDS]
    assert len({json.dumps(asdict(draw) | {"seed": 0}) for draw in draws}) == len(draws)
    assert {draw.dynamics for draw in draws} == set(DYNAMICS)
    assert {draw.horizon for draw in draws} == set(HORIZONS)
    assert {(draw.reward, draw.sign) for draw in draws} == {(r, s) for r in REWARDS for s in SIGNS}
    assert {entry for draw in draws for entries in draw.entries for entry in entries} == set(ENTRIES)
    assert {len(draw.entries) for draw in draws} == {1, 2, 3, 4}
    assert {draw.wall is None for draw in draws} == {draw.noise == 0 for draw in draws} == {True, False}
    assert {draw.actions for draw in draws} == set(range(2, 7))
    assert (min(draw.states for draw in draws), max(draw.states for draw in draws)) == (1, 8)
    assert all(4 <= draw.instances <= 16 for draw in draws)


def test_rewards_span_ten_decades():
    sizes = [typical_reward(seed) for seed in SEEDS if numbers(seed).draw.reward != "region"]
    assert np.isfinite(sizes).all()
    assert max(sizes) / min(sizes) > 1e10


@pytest.mark.parametrize("sign", ["positive", "negative"])
@pytest.mark.parametrize("reward", REWARDS)
def test_an_offset_gives_all_rewards_one_sign(reward, sign):
    seed = next(s for s in SEEDS if (numbers(s).draw.reward, numbers(s).draw.sign) == (reward, sign))
    family = Synthetic(seed)
    states = 100 * jax.random.normal(jax.random.key(0), (256, family.draw.states), jnp.float32)
    # The start, the target and states where nobody ever was.
    states = jnp.concatenate(
        [states, jnp.zeros((1, family.draw.states)), jnp.asarray(family.numbers.goal.target)[None]]
    )
    rewards = jax.vmap(lambda after: family.reward(after, jnp.asarray(0), after))(states)
    assert (np.sign(rewards) == (1 if sign == "positive" else -1)).all()


def draw_of(**changes):
    values = {
        "seed": 0, "states": 2, "actions": 2, "horizon": 10, "instances": 4, "entries": (), "dynamics": "tanh",
        "wall": None, "noise": 0.0, "duration": 1.0, "discount": 0.9, "reward": "quadratic", "scale": 1.0,
        "sign": "as it is",
    }  # fmt: skip
    return Draw(**(values | changes))


SYSTEM = System(
    a=np.asarray([[-1, 0], [0, -2]], np.float32),
    a_gain=np.asarray([1, 0], np.float32),
    a_added=np.asarray([np.zeros((2, 2)), [[0, 1], [0, 0]]], np.float32),
    b=np.asarray([[1, 2], [3, 4]], np.float32),
    b_gain=np.asarray([[0, 0], [0, 1]], np.float32),
    b_added=np.asarray([[[1, 0], [0, 0]], np.zeros((2, 2))], np.float32),
    c=np.eye(2, dtype=np.float32),
    width=np.asarray([0.5, 0.5], np.float32),
    weights=np.asarray([1, 2], np.float32),
    prices=np.asarray([0, 0.5], np.float32),
)
GOAL = Goal(np.asarray([3, 4], np.float32), 1.0, 0.0, 1.0)


@pytest.mark.parametrize("xp", [np, jnp])
def test_equations_by_hand(xp):
    """θ₀ = 1.5 multiplies A by 1.5 and adds 0.5 to B₀₀; θ₁ = 3 adds 2 to A₀₁ and multiplies B's second column by 3."""
    theta, state, second = (xp.asarray(v, xp.float32) for v in ([1.5, 3.0], [1.0, 0.5], [0, 1]))
    a, b = matrices(SYSTEM, theta, xp)
    np.testing.assert_allclose(a, [[-1.5, 2.0], [0.0, -3.0]])
    np.testing.assert_allclose(b, [[1.5, 6.0], [3.0, 12.0]])
    # A s = (−1.5 + 1, −1.5).
    for dynamics, curve in (("linear", np.zeros_like), ("tanh", np.tanh), ("sine", np.sin)):
        expected = np.asarray([-0.5 + 6, -1.5 + 12]) + curve(np.asarray([1.0, 0.5]))
        found = drift(draw_of(dynamics=dynamics), SYSTEM, state, second, theta, xp)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("reward", "expected"), [("quadratic", -2.0), ("distance", -np.hypot(2, 3.5)), ("region", 0.0), ("cost", -1.35)]
)
def test_rewards_by_hand(reward, expected):
    """s' = (1, 0.5) and the second action, whose price is 0.5: 1 + 2 · 0.25 + 0.5, and 0.1 + 0.75 + 0.5."""
    state, second = jnp.asarray([1.0, 0.5]), jnp.asarray([0.0, 1.0])
    assert float(plain_reward(draw_of(reward=reward), SYSTEM, GOAL, second, state, jnp)) == pytest.approx(expected)


def test_the_region_pays_and_ends():
    family = Synthetic(next(s for s in SEEDS if numbers(s).draw.reward == "region"))
    target = jnp.asarray(family.numbers.goal.target)
    assert bool(family.terminated(target))
    assert float(family.reward(target, jnp.asarray(0), target)) == pytest.approx(family.draw.scale)
    assert not bool(family.terminated(target + 10 * family.numbers.goal.radius))


@pytest.mark.parametrize("seed", [5, 22])
def test_families_pass_all_checks(seed):
    failed = [check for check in check_family(Synthetic(seed)) if not check.passed]
    assert not failed, failed


@pytest.fixture
def benchmark(monkeypatch):
    """The script: it imports what stands beside it."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("synthetic")


def test_what_raises_is_a_row(benchmark, monkeypatch):
    def fail(*arguments, **options):
        warnings.warn("look here", UserWarning, stacklevel=1)
        raise RuntimeError("no memory")

    monkeypatch.setattr(benchmark.hipmdp, "collect", fail)
    row = json.loads(json.dumps(benchmark.measured(5, small=True)))
    assert (row["family"], row["not_finite"]) == ("synthetic5", [])
    assert row["warnings"] == ["collect: UserWarning: look here"]
    (error,) = row["errors"]
    assert (error["stage"], error["error"]) == ("collect", "RuntimeError: no memory")
    assert row["random"]["mean"] == pytest.approx(np.mean(row["random"]["members"]))
    assert "embedded" not in row
    assert "collect raised RuntimeError: no memory" in benchmark.line(row)


def test_what_is_not_finite_is_noted(benchmark):
    row = {"not_finite": []}
    benchmark._note_not_finite(row, "numbers", 1.0, np.ones(2), jnp.ones(2), jnp.arange(3), jax.random.key(0), "text")
    assert row == {"not_finite": []}
    benchmark._note_not_finite(row, "a NaN", {"a": jnp.asarray([0.0, jnp.nan])})
    benchmark._note_not_finite(row, "too large", [float("inf")])
    assert row == {"not_finite": ["a NaN", "too large"]}


def test_mean_over_members_by_hand(benchmark):
    """Means 1 and 5; variances 2 and 8 over two episodes each: standard errors² 1 and 4, √5 / 2 for the mean."""
    found = benchmark.over_members([np.asarray([0.0, 2.0]), np.asarray([3.0, 7.0])])
    assert found == {"mean": pytest.approx(3.0), "standard_error": pytest.approx(5**0.5 / 2)}


def test_summary_by_hand(benchmark):
    def row(name, embedded, average, errors=()):
        returns = {"random": (10.0, 1.0), "embedded": (embedded, 1.0), "average": (average, 1.0)}
        parts = {key: {"mean": mean, "standard_error": error} for key, (mean, error) in returns.items()}
        return {"family": name, "errors": list(errors), "not_finite": [], **parts}

    # 1.96 standard errors of random are 1.96, of a difference 2.77.
    broken = {"family": "d", "errors": [{"stage": "collect"}], "not_finite": []}
    lines = benchmark.summary([row("a", 12.0, 7.0), row("b", 7.5, 9.0), row("c", 13.0, 12.0), broken]).splitlines()
    assert lines[0] == "4 families; 1 ended in NaN or an exception (d)"
    assert "interval 1 of 3 (b); by more than that of the difference 0; above by more than that 1" in lines[1]
    assert "interval 1 of 3 (a); by more than that of the difference 1 (a); above by more than that 0" in lines[2]
    assert lines[3] == "embedded above average: 2 of 3 (67%)"
