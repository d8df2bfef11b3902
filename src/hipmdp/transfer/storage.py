"""A model as one file: arrays and a JSON header, no pickle."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from hipmdp.control.network import QNetwork
from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from hipmdp.dynamics.config import DynamicsConfig, LatentRole
from hipmdp.dynamics.model import Dynamics, new_dynamics
from hipmdp.dynamics.scaling import Scaling
from hipmdp.families.specification import Specification
from hipmdp.transfer.model import Model


def save_model(model: Model, path: Path) -> None:
    """Write everything that `load` needs."""
    dynamics, policy = model.dynamics, model.policy
    meta = {
        "method": model.method,
        "specification": model.specification.to_dict(),
        "centre": list(model.centre),
        "scale": list(model.scale),
        "report": model.report,
        "dynamics": None
        if dynamics is None
        else {"config": dataclasses.asdict(dynamics.config), "instances": dynamics.latents.shape[0]},
        "policy": None if policy is None else [layer.out_features for layer in policy.layers],
    }
    save_checkpoint(path, "model", (dynamics, policy), meta)


def load(path: str | Path) -> Model:
    """Read a model that `Model.save` wrote. Nothing in the file is run; a bad file is one clear `ValueError`."""
    (dynamics, policy), meta = load_checkpoint(Path(path), "model", _template)
    return Model(
        meta["method"],
        Specification.from_dict(meta["specification"]),
        tuple(meta["centre"]),
        tuple(meta["scale"]),
        dynamics,
        policy,
        meta["report"],
    )


def _template(meta: dict[str, Any]) -> tuple[Dynamics | None, QNetwork | None]:
    """A model of the same shapes; what the header says about a policy or a network must fit the arrays behind it."""
    specification = Specification.from_dict(meta["specification"])
    size, key = specification.state_size, jax.random.key(0)
    zeros = jnp.zeros(size, jnp.float32)
    dynamics, policy = None, None
    if meta["dynamics"] is not None:
        values = dict(meta["dynamics"]["config"])
        values["role"], values["hidden"] = LatentRole(values["role"]), tuple(values["hidden"])
        config = DynamicsConfig(**values)
        scaling = Scaling(zeros, zeros, zeros, zeros)
        dynamics = new_dynamics(config, specification, scaling, int(meta["dynamics"]["instances"]), key=key)
    if meta["policy"] is not None:
        *hidden, actions = meta["policy"]
        policy = QNetwork(zeros, zeros, actions, tuple(hidden), key=key)
    return dynamics, policy
