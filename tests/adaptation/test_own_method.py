"""Somebody's own method (examples/nearest.py) goes through `learn_policy` and `compare` like the built-in ones."""

import sys

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp import cli
from tests.docs.pages import ROOT


@pytest.fixture
def nearest(monkeypatch):
    """The module of the example."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.delitem(sys.modules, "nearest", raising=False)
    import nearest

    return nearest


@pytest.fixture(scope="module")
def family():
    return hipmdp.make("grid")


@pytest.fixture(scope="module")
def batch(family):
    return hipmdp.collect(family, instances=2, episodes=2, seed=0, quiet=True)


def test_returns_to_go_are_discounted_sums(nearest):
    np.testing.assert_allclose(nearest.returns_to_go(np.asarray([1.0, 0.0, 4.0]), 0.5), [2.0, 2.0, 4.0])


def test_the_value_of_an_action_is_that_of_its_nearest_rows(nearest, family):
    rows = nearest.Memory(
        np.asarray([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [0.0, 0.0]]), np.asarray([0, 0, 0, 2]),
        np.asarray([1.0, 3.0, 100.0, 7.0]), np.zeros(4),
    )  # fmt: skip
    method = nearest.NearestNeighbour(neighbours=2)
    state = method.start(jax.random.key(0), rows, family.specification)
    np.testing.assert_allclose(method.action_values(state, np.zeros(2)), [2.0, -np.inf, 7.0, -np.inf])
    assert method.policy(state)(np.zeros(2)) == 2


def test_rows_of_other_instances_are_further_away(nearest, family):
    rows = nearest.Memory(
        np.asarray([[0.0, 0.0], [0.3, 0.0]]), np.asarray([1, 1]), np.asarray([1.0, 9.0]), np.asarray([1.0, 0.0])
    )
    method = nearest.NearestNeighbour(neighbours=1, doubt=0.5)
    state = method.start(jax.random.key(0), rows, family.specification)
    assert method.action_values(state, np.zeros(2))[1] == 9.0


def test_learn_policy_runs_it(nearest, family, batch):
    def learned():
        return hipmdp.learn_policy(
            None, family, "test:0", episodes=3, method=nearest.NearestNeighbour(), batch=batch, quiet=True
        )

    run = learned()
    assert run.method == "nearest"
    assert run.returns.shape == run.learning_returns.shape == run.success.shape == (3,)
    assert run.transitions.episode_count == 3
    assert run.policy([-1.5, -1.5]) in range(4)
    np.testing.assert_array_equal(learned().learning_returns, run.learning_returns)


def test_a_prepared_one_is_used_as_the_model(nearest, family, batch):
    method = nearest.NearestNeighbour()
    memory = method.prepare(jax.random.key(0), batch, family)
    run = hipmdp.learn_policy(memory, family, "test:1", episodes=1, method=method, quiet=True)
    assert np.isfinite(run.returns).all()


def test_compare_runs_it(nearest, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = (
        "compare grid --methods nearest:NearestNeighbour --instances 1 --episodes 2 --training-episodes 2 --out study"
    )
    cli.main(words.split())
    assert "nearest" in capsys.readouterr().out
