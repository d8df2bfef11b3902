"""The same calls at a small size: what the pages show is real use, what the tests run takes seconds."""

import functools
import inspect
from dataclasses import replace

import hipmdp
from hipmdp.control.presets import preset as control_preset
from hipmdp.dynamics import fit, reward_head
from hipmdp.dynamics.presets import preset as dynamics_preset
from hipmdp.families import hiv_equations
from hipmdp.transfer.config import amortise_preset
from hipmdp.transfer.config import preset as transfer_preset
from hipmdp.transfer.pretrain import pretrain

MOST = {"collect": {"instances": 2, "episodes": 2}, "learn_policy": {"episodes": 2}}
"""A page may ask for more, and gets so much."""


def small_dynamics(name, specification):
    """The preset's network with hardly any training."""
    config = dynamics_preset(name, specification)
    return replace(config, hidden=(16,), rounds=50, tune_rounds=5, scratch_rounds=5, infer_steps=5)


def small_learner(name, specification):
    """The preset's learner with hardly any network."""
    return replace(control_preset(name, specification), hidden=(8,), minibatches=1)


def small_transfer(name, specification, amortised=False):
    """The preset's procedure with hardly any imagination."""
    config = transfer_preset(name, specification, amortised)
    learner = replace(config.learner, hidden=(8,), lanes=2, minibatches=1)
    return replace(
        config, learner=learner, imagined_episodes=4, weight_draws=2, look_episodes=2, retunings=0, rehearsal=False
    )


def small_amortise(name, specification):
    """The preset's policy for all members, looked at once and hardly learned."""
    config = amortise_preset(name, specification)
    learner = replace(config.learner, hidden=(8,), lanes=2, minibatches=1)
    return replace(config, learner=learner, episodes=2, pools=1, members=2)


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


def small_pretrain(*arguments, config=None, **options):
    """`pretrain` with the small preset, whatever settings a page shows (making them has checked their names)."""
    return pretrain(*arguments, **options)


def skip_learning(monkeypatch):
    """Fits and imagination end before their first step: they take minutes to compile, and have tests of their own."""
    monkeypatch.setattr(reward_head, "_fit", lambda head, *rest: head)
    monkeypatch.setattr(fit, "run_schedule", lambda dynamics, config, prior, schedule, state, report=None: state)
    for place in ("algorithm", "advise"):
        monkeypatch.setattr(
            f"hipmdp.transfer.{place}.simulate_episodes",
            lambda config, environment, contexts, student, *rest: student,
        )


def make_small(monkeypatch):
    """Until the end of the test, everything is done at a small size."""
    skip_learning(monkeypatch)
    # Patients are integrated coarsely.
    monkeypatch.setattr(hiv_equations, "SWEEPS", (20,))
    monkeypatch.setattr("hipmdp.transfer.pretrain.dynamics_preset", small_dynamics)
    for place in ("collect", "learn"):
        monkeypatch.setattr(f"hipmdp.transfer.{place}.control_preset", small_learner)
    for place in ("learn", "advise"):
        monkeypatch.setattr(f"hipmdp.transfer.{place}.transfer_preset", small_transfer)
    monkeypatch.setattr("hipmdp.transfer.amortise.amortise_preset", small_amortise)
    monkeypatch.setattr(hipmdp, "pretrain", small_pretrain)
    for name, limits in MOST.items():
        monkeypatch.setattr(hipmdp, name, limited(getattr(hipmdp, name), limits))
