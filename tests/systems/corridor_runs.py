"""Models of the corridor, and short runs of Algorithm 1 on it."""

import functools
from typing import Any

import hipmdp
from hipmdp.adaptation.method import Setting
from hipmdp.adaptation.methods import METHODS
from tests.dynamics.toys import random_batch
from tests.systems.corridor import AMORTISE, BOTH, CORRIDOR, DYNAMICS, TRANSFER

METHODS_WITH_MODEL = ("embedded", "linear", "average", "scratch")


@functools.cache
def batch() -> hipmdp.Transitions:
    return random_batch(CORRIDOR, BOTH, episodes=30)


@functools.cache
def model(method: str) -> hipmdp.Model:
    if method in ("amortised", "refined"):
        return hipmdp.amortise(model("embedded"), batch(), config=AMORTISE, family=CORRIDOR, quiet=True)
    if method == "blind":
        return hipmdp.train_blind(CORRIDOR, list(BOTH), episodes=20, quiet=True)
    return hipmdp.pretrain(batch(), method, config=DYNAMICS, quiet=True, policy=False)


def adapt(method: str, direction: float, **options: Any) -> hipmdp.Run:
    settings = {"episodes": 2, "seed": 1, "config": TRANSFER, "quiet": True, **options}
    settings.setdefault("method", method)
    given = settings.pop("model", None) or model(method)
    return hipmdp.learn_policy(given, CORRIDOR, {"direction": direction}, **settings)


def built_in(name: str, **setting: Any) -> Any:
    """A method as `learn_policy` makes it."""
    values = {"adaptation": TRANSFER, "family": CORRIDOR, "theta": CORRIDOR.theta({"direction": 1.0}), "episodes": 2}
    return METHODS[name](Setting(**(values | setting)))
