"""One valid file of every kind that we write, and how it is read: what a reader returns, as comparable bytes."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import hipmdp
from hipmdp._files import claim_directory, read_json
from hipmdp.control.q_network import QNetwork
from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from hipmdp.data.transitions import COLUMNS
from hipmdp.dynamics.model import new_dynamics
from hipmdp.dynamics.reward_head import new_reward_head
from hipmdp.settings.dynamics import DynamicsConfig
from hipmdp.study.cells.files import read_records, write_records
from hipmdp.study.cells.record import METRICS, CellRecord
from tests.dynamics.toys import random_batch
from tests.systems.corridor import BOTH, CORRIDOR


class Kind(NamedTuple):
    """A kind of file."""

    name: str
    file: str
    write: Callable[[Path], None]
    read: Callable[[Path], Any]
    """What the file says, as comparable values; a bad file is a `ValueError`."""


def batch():
    """Two corridors, two short episodes each."""
    return random_batch(CORRIDOR, BOTH, episodes=2, steps=6)


def model():
    """Everything that a model can have, untrained."""
    log, key = batch(), jax.random.key(0)
    plain = hipmdp.pretrain(log, "scratch", config=DynamicsConfig(hidden=(4,), latent_size=2), quiet=True)
    dynamics = plain.need_dynamics("fuzz")
    config = dataclasses.replace(dynamics.config, role=hipmdp.LatentRole.EMBEDDED)
    dynamics = new_dynamics(config, log.specification, dynamics.scaling, 2, key=key)
    networks = [QNetwork(jnp.zeros(n, jnp.float32), jnp.ones(n, jnp.float32), 2, (3,), key=key) for n in (1, 3)]
    return dataclasses.replace(
        plain,
        method="amortised",
        dynamics=dynamics,
        policy=networks[0],
        latent_policy=networks[1],
        reward_head=new_reward_head(log.specification, dynamics.scaling, 2, key=key),
        metrics={"error_on_held_out_episodes": 0.5},
        metadata={"seed": 0, "preset": "default", "episodes": 4},
    )


def record(seed):
    """A cell of two episodes."""
    key = {"family": "corridor", "method": "embedded", "variant": "plain", "instance": "test:0", "seed": seed}
    metadata = {
        "family": dataclasses.asdict(CORRIDOR.facts()), "reference": {"random": 0.0, "best_known": 2.0},
        "theta": {"direction": 1.0}, "settings": {"setup": {"family": "corridor"}}, "model_metrics": {},
        "versions": {"hipmdp": "0.1.0"}, "peak_gb": 0.5,
    }  # fmt: skip
    metrics = {name: np.asarray([0.25, 0.75 + seed]) for name in METRICS}
    latents = [np.asarray([0.5, 1.0], np.float32), None]
    states, actions = np.zeros((4, 1), np.float32), np.asarray([0, 1, 1], np.int32)
    return CellRecord(key, metrics, latents, states, actions, metadata)


def tree():
    """The arrays of a checkpoint."""
    return {
        "weights": jnp.arange(6, dtype=jnp.float32).reshape(2, 3),
        "key": jax.random.key(3),
        "count": jnp.asarray(7),
    }


def bits(value):
    """Arrays as dtype, shape and bytes; everything else as it is."""
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(value)
        return (array.dtype.str, array.shape, array.tobytes())
    return value


def leaves(value):
    """The leaves of a pytree, comparable."""
    return [bits(leaf) for leaf in jax.tree.leaves(value)]


def read_batch(path):
    """All of a batch."""
    log = hipmdp.load_transitions(path)
    columns = [bits(getattr(log, name)) for name in COLUMNS]
    return log.specification, log.thetas, log.names, columns


def read_model(path):
    """All of a model."""
    found = hipmdp.load(path)
    values = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    parts = {name: values.pop(name) for name in ("dynamics", "policy", "latent_policy", "reward_head", "support")}
    config = found.dynamics.config if found.dynamics is not None else None
    return repr(values), config, leaves(parts)


def read_cells(path):
    """All of its records."""
    return [
        (r.name, [bits(r.metrics[name]) for name in METRICS], [bits(w) for w in r.latents], bits(r.states),
         bits(r.actions), json.dumps(r.metadata, sort_keys=True))
        for r in read_records(path)
    ]  # fmt: skip


def read_state(path):
    """Arrays and values of a checkpoint."""
    parts, meta = load_checkpoint(path, "run", lambda meta: tree())
    return leaves(parts), json.dumps(meta, sort_keys=True)


def read_description(path):
    """The description of a study."""
    return json.dumps(read_json(path), sort_keys=True)


STUDY = {"preset": "default", "streams": 2, "settings": 2}
KINDS = (
    Kind("batch", "batch.parquet", lambda path: hipmdp.save_transitions(batch(), path), read_batch),
    Kind("cell", "cell.parquet", lambda path: write_records(path, [record(0)]), read_cells),
    Kind("packed", "packed.parquet", lambda path: write_records(path, [record(i) for i in range(5)]), read_cells),
    Kind("model", "model.hipmdp", lambda path: model().save(path), read_model),
    Kind("checkpoint", "run.checkpoint",
         lambda path: save_checkpoint(path, "run", tree(), {"state": {"rows": 3}, "record": [0.5]}), read_state),
    Kind("description", "study.json", lambda path: claim_directory(path, STUDY, "study"), read_description),
)  # fmt: skip
