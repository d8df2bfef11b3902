"""The same calls at a small size: what the pages show is real use, what the tests run takes seconds."""

import functools
import inspect
from dataclasses import replace

import hipmdp
from hipmdp.dynamics import fit, reward_head
from hipmdp.dynamics.presets import preset as dynamics_preset
from hipmdp.transfer.config import preset as transfer_preset

MOST = {"collect": {"instances": 2, "episodes": 2}, "learn_policy": {"episodes": 1}}
"""A page may ask for more, and gets so much."""


def small_dynamics(name, specification):
    """The preset's network with hardly any training."""
    config = dynamics_preset(name, specification)
    return replace(config, hidden=(16,), rounds=50, tune_rounds=5, scratch_rounds=5, infer_steps=5)


def small_transfer(name, specification):
    """The preset's procedure with hardly any imagination."""
    config = transfer_preset(name, specification)
    learner = replace(config.learner, hidden=(8,), lanes=2, minibatches=1)
    return replace(config, learner=learner, imagined_episodes=4, weight_draws=2, look_episodes=2, retunings=0)


def limited(function, limits):
    """`function` with no more episodes and instances than `limits`, whatever it is asked for."""

    @functools.wraps(function)
    def call(*arguments, **options):
        asked = inspect.signature(function).bind(*arguments, **options)
        asked.apply_defaults()
        for name, most in limits.items():
            if isinstance(asked.arguments[name], int):
                asked.arguments[name] = min(asked.arguments[name], most)
        return function(*asked.args, **asked.kwargs)

    return call


def skip_learning(monkeypatch):
    """Fits and imagination end before their first step: they would take minutes to compile, and have tests of their own."""
    monkeypatch.setattr(fit, "run_schedule", lambda dynamics, config, prior, schedule, state, report=None: state)
    for place in ("algorithm", "advise"):
        monkeypatch.setattr(
            f"hipmdp.transfer.{place}.simulate_episodes",
            lambda config, environment, contexts, student, *rest: student,
        )


def make_small(monkeypatch):
    """Until the end of the test, everything is done at a small size."""
    skip_learning(monkeypatch)
    monkeypatch.setattr("hipmdp.transfer.pretrain.dynamics_preset", small_dynamics)
    for place in ("learn", "advise"):
        monkeypatch.setattr(f"hipmdp.transfer.{place}.transfer_preset", small_transfer)
    monkeypatch.setattr(reward_head, "STEPS", 50)
    for name, limits in MOST.items():
        monkeypatch.setattr(hipmdp, name, limited(getattr(hipmdp, name), limits))
