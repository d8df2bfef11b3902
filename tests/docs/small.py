"""The same calls at a small size: what the pages show is real use, what the tests run takes seconds."""

import functools
from dataclasses import replace

import hipmdp
from hipmdp.dynamics import reward_head
from hipmdp.dynamics.presets import preset as dynamics_preset
from hipmdp.transfer.config import preset as transfer_preset

MOST = {"instances": 2, "episodes": 2}
"""What a page may ask for in earnest, and gets so much of."""


def small_dynamics(name, specification):
    """The preset's network with hardly any training."""
    config = dynamics_preset(name, specification)
    return replace(config, hidden=(16,), rounds=50, tune_rounds=5, scratch_rounds=5, infer_steps=5)


def small_transfer(name, specification):
    """The preset's procedure with hardly any imagination."""
    config = transfer_preset(name, specification)
    learner = replace(config.learner, hidden=(8,), lanes=2, minibatches=1)
    return replace(config, learner=learner, imagined_episodes=4, weight_draws=2, look_episodes=2, retunings=0)


def limited(function):
    """`function` with fewer episodes and instances than it was asked for."""

    @functools.wraps(function)
    def call(*arguments, **options):
        for name, most in MOST.items():
            if isinstance(options.get(name), int):
                options[name] = min(options[name], most)
        return function(*arguments, **options)

    return call


def make_small(monkeypatch):
    """Until the end of the test, everything is done at a small size."""
    monkeypatch.setattr("hipmdp.transfer.pretrain.dynamics_preset", small_dynamics)
    for place in ("learn", "advise"):
        monkeypatch.setattr(f"hipmdp.transfer.{place}.transfer_preset", small_transfer)
    monkeypatch.setattr(reward_head, "STEPS", 50)
    for name in ("collect", "learn_policy"):
        monkeypatch.setattr(hipmdp, name, limited(getattr(hipmdp, name)))
