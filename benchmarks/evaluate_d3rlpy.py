"""d3rlpy's fitted Q evaluation of the policies of evaluate.py, in an environment of its own: nothing here needs hipmdp.

    python benchmarks/evaluate.py --d3rlpy 10      # makes the environment in benchmarks/batches, and runs this in it

Log and policies come as an NPZ file: standardised states, actions, rewards in units of their root mean square, where
episodes end, and what each policy does in every logged state. d3rlpy knows no time limit: its values are for ever.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

ENVIRONMENT = Path(__file__).parent / "batches" / "d3rlpy"
NEEDED = ("d3rlpy==2.8.1", os.environ.get("D3RLPY_TORCH", "torch"))
"""D3RLPY_TORCH names another build of torch, such as one without CUDA."""
STEPS, TINY_STEPS = 20_000, 200
"""Gradient steps; everything else is d3rlpy's default."""


def d3rlpy_values(log: Any, policies: dict[str, Any], seed: int, python: str | None, *, tiny: bool) -> dict[str, float]:
    """The value of each policy from the logged first states, discounted."""
    states = log.specification.from_origin(log.state).astype(np.float64)
    unit = float(np.sqrt(np.mean(log.reward**2))) or 1.0
    columns = {
        "state": (states - states.mean(axis=0)) / np.maximum(states.std(axis=0), 1e-12),
        "action": log.action,
        "reward": log.reward / unit,
        "terminated": log.terminated,
        "last": np.append(log.episode[1:] != log.episode[:-1], True),
        "first": log.time == 0,
        **{f"policy.{name}": policy(log.state) for name, policy in policies.items()},
    }
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.npz"
        np.savez(path, **columns)
        words = [str(path), str(log.specification.discount), str(seed), str(TINY_STEPS if tiny else STEPS)]
        # Logs of d3rlpy go into the temporary directory.
        done = subprocess.run(
            [python or _environment(), Path(__file__).resolve(), *words], cwd=directory, check=True, capture_output=True
        )
    found = json.loads(done.stdout.decode().splitlines()[-1])
    return {name: unit * value for name, value in found.items()}


def _environment() -> str:
    """Its Python; made where it is missing."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *NEEDED], check=True)
    return str(python)


class Table:
    """A policy as d3rlpy wants it: the action that was told for the nearest logged state."""

    def __init__(self, states: Any, actions: Any) -> None:
        self.states, self.actions = states, actions

    def predict_best_action(self, states: Any) -> Any:
        import torch

        return self.actions[torch.cdist(states, self.states).argmin(dim=1)]


def evaluated(path: str, discount: float, seed: int, steps: int) -> dict[str, float]:
    import d3rlpy
    import torch

    d3rlpy.seed(seed)
    with np.load(path) as file:
        columns = {name: file[name] for name in file.files}
    state, terminated = columns["state"].astype(np.float32), columns["terminated"].astype(np.float32)
    dataset = d3rlpy.dataset.MDPDataset(
        observations=state,
        actions=columns["action"].astype(np.int64)[:, None],
        rewards=columns["reward"].astype(np.float32)[:, None],
        terminals=terminated,
        timeouts=columns["last"].astype(np.float32) * (1 - terminated),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=int(max(columns["action"].max(), *(v.max() for k, v in columns.items() if "policy." in k))) + 1,
    )
    found = {}
    for name, told in columns.items():
        if not name.startswith("policy."):
            continue
        table = Table(torch.tensor(state), torch.tensor(told.astype(np.int64)))
        fqe = d3rlpy.ope.DiscreteFQE(SimpleNamespace(impl=table), d3rlpy.ope.FQEConfig(gamma=discount))
        fqe.fit(dataset, n_steps=steps, n_steps_per_epoch=steps, show_progress=False, save_interval=2)
        first = columns["first"]
        values = fqe.predict_value(state[first], told[first].astype(np.int64))
        found[name.removeprefix("policy.")] = float(np.mean(values))
    return found


if __name__ == "__main__":
    print(json.dumps(evaluated(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
