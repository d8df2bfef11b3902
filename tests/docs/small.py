"""The same calls at a small size: what the pages show is real use, what the tests run takes seconds."""

import functools
import inspect
import types
from dataclasses import replace

import hipmdp
from hipmdp.control import dqn, guard
from hipmdp.dynamics import reward_head
from hipmdp.families import hiv_equations
from hipmdp.pretraining.pretrain import pretrain
from hipmdp.settings import recipe
from tests.systems.tiny import tiny_policy

MOST = {"collect": {"instances": 2, "episodes": 2}, "learn_policy": {"episodes": 2}, "train_blind": {"episodes": 20}}
"""A page may ask for more, and gets so much."""


def small_recipe(monkeypatch):
    """The recipe with hardly any network and imagination, and no rounds of a fit."""
    real, dynamics = recipe.real_dqn, recipe.dynamics
    adaptation = recipe.adaptation
    changes = {
        "real_dqn": lambda *given: replace(real(*given), hidden=(8,), minibatches=1),
        "dynamics": lambda instances: replace(
            dynamics(instances), hidden=(16,), correction=(), rounds=0, tune_rounds=0, scratch_rounds=0, infer_steps=5
        ),
        "adaptation": lambda *given, **options: replace(
            adaptation(*given, **options), pqn=tiny_policy().pqn, imagined_steps=4, imagined_rounds=1, weight_draws=2,
            validation_episodes=2, retunings=0, steps_ahead=0,
        ),
        "amortise": lambda *given: tiny_policy(),
    }  # fmt: skip
    for name, change in changes.items():
        monkeypatch.setattr(recipe, name, change)


def limited(function, limits):
    """`function` with no more episodes and instances than `limits`, whatever it is asked for."""

    @functools.wraps(function)
    def call(*arguments, **options):
        bound = inspect.signature(function).bind(*arguments, **options)
        bound.apply_defaults()
        for name, most in limits.items():
            if isinstance(bound.arguments[name], int):
                bound.arguments[name] = min(bound.arguments[name], most)
        return function(*bound.args, **bound.kwargs)

    return call


def small_pretrain(*arguments, config=None, **options):
    """`pretrain` with the small preset, whatever settings a page shows (making them has checked their names)."""
    return pretrain(*arguments, **options)


def skip_learning(monkeypatch):
    """No reward head is fitted, nothing imagined: that takes minutes to compile, and has tests of its own."""
    monkeypatch.setattr(reward_head, "_fit", lambda head, *rest, **options: head)
    # Every DQN inside imagination has finished before it begins; those of real episodes have not.
    own = types.SimpleNamespace(**{**vars(dqn), "is_finished": lambda state, limit: True})
    monkeypatch.setattr("hipmdp.control.policy_learner.dqn", own)
    monkeypatch.setattr("hipmdp.control.pqn.run_iterations", _count_iterations)


def _count_iterations(config, environment, members, state, *, iterations, total):
    return state._replace(iteration=state.iteration + iterations)


def make_small(monkeypatch):
    """Until the end of the test, everything is done at a small size."""
    skip_learning(monkeypatch)
    # Patients are integrated coarsely.
    monkeypatch.setattr(hiv_equations, "SWEEPS", (20,))
    small_recipe(monkeypatch)
    # Chances are predicted from few draws.
    monkeypatch.setattr(guard, "FEWEST", 2)
    monkeypatch.setattr(guard, "MOST", 2)
    monkeypatch.setattr(hipmdp, "pretrain", small_pretrain)
    for name, limits in MOST.items():
        monkeypatch.setattr(hipmdp, name, limited(getattr(hipmdp, name), limits))
