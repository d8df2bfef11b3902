"""Policies by name: the model's own, one that was kept, a function, a constant action, or what was done."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp

from hipmdp._errors import known_name
from hipmdp.control.policies import BeliefPolicy, Greedy
from hipmdp.control.policy import Constant, Policy, function_policy
from hipmdp.dynamics.belief import Belief
from hipmdp.families.loading import user_module
from hipmdp.pretraining.model import Model, load

AMORTISED, LOGGED, CONSTANT = "amortised", "logged", "constant:"
FILE = "model.hipmdp"
"""Of a directory that `adapt --out` wrote."""
HYPOTHESES = 4
"""The most probable ones under which the amortised policy acts: the others have no weight after a log."""
HINT = "amortised, logged, constant:ACTION, module:function, or the directory or model file of hipmdp adapt --out"


def named_policy(given: Any, model: Model, belief: Belief | None) -> Policy:
    """What `given` stands for: a `Policy`, a function of the state, or a text as in `HINT` (but not logged)."""
    specification = model.specification
    if isinstance(given, Policy):
        if given.specification != specification:
            raise ValueError("The policy is for systems of another family: its specification differs.")
        return given
    if callable(given):
        return function_policy(given, specification)
    if not isinstance(given, (str, Path)):
        raise ValueError(f"A policy must be a Policy, a function of the state, or {HINT}; got {given!r}.")
    text = str(given)
    if text == AMORTISED:
        return _amortised(model, belief)
    if text.startswith(CONSTANT):
        name = known_name("action of a constant policy", text.removeprefix(CONSTANT), specification.action_names)
        return Policy(specification, Constant(specification.action_names.index(name)))
    if Path(text).exists():
        return _kept(Path(text), model)
    module, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"There is no policy {text!r}: say {HINT}.")
    function = getattr(user_module(module), name, None)
    if not callable(function):
        raise ValueError(f"Module {module!r} has no function {name!r} that could be a policy.")
    return function_policy(function, specification)


def _amortised(model: Model, belief: Belief | None) -> Policy:
    """Q(s, w) under the belief after the log."""
    network = model.need_latent_policy(AMORTISED)
    if belief is None:
        zero = model.need_dynamics(AMORTISED).latent_prior.mean * 0
        return Policy(model.specification, Greedy(network.at(zero)))
    likely = jnp.argsort(-belief.log_weight)[:HYPOTHESES]
    weight, mean, covariance, before = (leaf[likely] for leaf in belief[:4])
    return Policy(model.specification, BeliefPolicy(network, Belief(weight, mean, covariance, before, *belief[4:])))


def _kept(path: Path, model: Model) -> Policy:
    """The policy in a model file."""
    kept = load(path / FILE if path.is_dir() else path)
    if kept.specification != model.specification:
        raise ValueError(f"The policy in {str(path)!r} is for systems of another family: its specification differs.")
    if kept.policy is None:
        raise ValueError(f"{str(path)!r} holds no policy of one system: `hipmdp adapt --out` keeps one.")
    return Policy(kept.specification, Greedy(kept.policy))
