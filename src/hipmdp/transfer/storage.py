"""A model as one file: arrays and a JSON header, no pickle."""

import dataclasses
from importlib import resources
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hipmdp.control.network import QNetwork
from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from hipmdp.dynamics.config import DynamicsConfig, LatentRole
from hipmdp.dynamics.model import Dynamics, new_dynamics
from hipmdp.dynamics.oracle import OracleLatents
from hipmdp.dynamics.reward_head import RewardHead, new_reward_head
from hipmdp.dynamics.scaling import Scaling
from hipmdp.families import FAMILIES
from hipmdp.families.checks import known_name
from hipmdp.families.specification import Specification
from hipmdp.transfer.methods import METHODS
from hipmdp.transfer.model import Model
from hipmdp.transfer.support import Support


def save_model(model: Model, path: Path) -> None:
    """Write everything that `load` needs."""
    dynamics, policy = model.dynamics, model.policy
    meta = {
        "method": model.method,
        "specification": model.specification.to_dict(),
        "centre": list(model.centre),
        "scale": list(model.scale),
        "low": list(model.low),
        "high": list(model.high),
        "report": model.report,
        "dynamics": None
        if dynamics is None
        else {"config": dataclasses.asdict(dynamics.config), "instances": dynamics.latents.shape[0]},
        "reward_head": None if model.reward_head is None else model.reward_head.latent_size,
        "oracle": None if model.oracle is None else model.oracle._asdict(),
        "policy": None if policy is None else [layer.out_features for layer in policy.layers],
        "policy_inputs": None if policy is None else policy.centre.shape[0],
        "names": list(model.names),
        "support": None if model.support is None else model.support.action.shape[0],
        "about": model.about,
    }
    save_checkpoint(path, "model", (dynamics, policy, model.reward_head, model.support), meta)


def load(path: str | Path) -> Model:
    """Read a model that `Model.save` wrote. Nothing in the file is run; a bad file is one clear `ValueError`.

    "grid", "acrobot" and "hiv" stand for the models that come with hipmdp, unless there is a file of that name.
    """
    if str(path) in FAMILIES and not Path(path).exists():
        with resources.as_file(resources.files("hipmdp").joinpath("models", f"{path}.hipmdp")) as shipped:
            return load(shipped)
    (dynamics, policy, head, support), meta = load_checkpoint(Path(path), "model", _template)
    try:
        return _from_header(meta, dynamics, policy, head, support)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"The header of {str(path)!r} is damaged ({error}).") from None


def _from_header(meta: dict[str, Any], dynamics: Any, policy: Any, head: Any, support: Any) -> Model:
    specification = Specification.from_dict(meta["specification"])
    size = specification.state_size
    ranges = [tuple(float(x) for x in meta[name]) for name in ("centre", "scale", "low", "high")]
    if any(len(values) not in (size, 0) for values in ranges) or len(ranges[0]) != size:
        raise ValueError("centre, scale, low and high must have a number per state dimension")
    oracle = None
    if meta["oracle"] is not None:
        oracle = OracleLatents(*(tuple(meta["oracle"][f]) for f in OracleLatents._fields))
    return Model(
        known_name("method", meta["method"], METHODS),
        specification,
        ranges[0],
        ranges[1],
        ranges[2],
        ranges[3],
        dynamics,
        policy,
        head,
        oracle,
        {str(name): float(value) for name, value in meta["report"].items()},
        tuple(str(name) for name in meta.get("names", ())),
        support,
        dict(meta.get("about", {})),
    )


def _template(meta: dict[str, Any]) -> Any:
    """The shapes of a model, without its arrays: a header that promises terabytes must not make us ask for them."""
    return eqx.filter_eval_shape(lambda: _blank(meta))


def _blank(meta: dict[str, Any]) -> tuple[Dynamics | None, QNetwork | None, RewardHead | None, Support | None]:
    """A model of the same shapes; what the header says about a policy or a network must fit the arrays behind it."""
    specification = Specification.from_dict(meta["specification"])
    size, key = specification.state_size, jax.random.key(0)
    zeros = jnp.zeros(size, jnp.float32)
    dynamics, policy, head = None, None, None
    scaling = Scaling(zeros, zeros, zeros, zeros)
    if meta["dynamics"] is not None:
        values = dict(meta["dynamics"]["config"])
        values["role"], values["hidden"] = LatentRole(values["role"]), tuple(values["hidden"])
        config = DynamicsConfig(**values)
        dynamics = new_dynamics(config, specification, scaling, int(meta["dynamics"]["instances"]), key=key)
    if meta["policy"] is not None:
        *hidden, actions = meta["policy"]
        # A Q(s, w) takes the latent too.
        inputs = jnp.zeros(int(meta.get("policy_inputs", size)), jnp.float32)
        policy = QNetwork(inputs, inputs, actions, tuple(hidden), key=key)
    if meta["reward_head"] is not None:
        head = new_reward_head(specification, scaling, int(meta["reward_head"]), key=key)
    support = None
    if meta.get("support") is not None:
        rows = int(meta["support"])
        support = Support(jnp.zeros((rows, size), jnp.float32), jnp.zeros(rows, jnp.int32))
    return dynamics, policy, head, support
