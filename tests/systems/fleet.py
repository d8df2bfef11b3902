"""A fleet whose machines differ in one hidden number: x' = 0.9 x + 0.3 g (a − 1), a ∈ {0, 1, 2}."""

import csv

import numpy as np

from hipmdp.data.logs.columns import LogColumns
from hipmdp.data.logs.read import read_logs
from hipmdp.settings.dynamics import DynamicsConfig

GAINS = (-2.0, -1.6, -1.2, -0.8, -0.4, 0.4, 0.8, 1.2, 1.6, 2.0)
PUSHES = ("left", "none", "right")
COLUMNS = LogColumns(state=("x",), action="push", instance="machine", episode="run", reward="gain")
SMALL = DynamicsConfig(hidden=(32,), latent_size=2, rounds=1500, batch_size=128, tune_rounds=50)


def step(x, action, gain):
    return 0.9 * x + 0.3 * gain * (action - 1)


def write_fleet(path, gains, runs=4, moments=31, seed=0):
    """A CSV of random pushes; a machine is called after its number and gain."""
    generator = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["machine", "run", "x", "push", "gain"])
        for number, gain in enumerate(gains):
            for run in range(runs):
                x = generator.uniform(-2, 2)
                for _ in range(moments):
                    action = int(generator.integers(3))
                    after = step(x, action, gain)
                    writer.writerow([f"m{number}({gain:g})", run, f"{x:.6f}", PUSHES[action], f"{-(after**2):.6f}"])
                    x = after
    return path


def fleet(directory, gains=GAINS, like=None, **options):
    columns = COLUMNS if like is None else LogColumns(state=("x",), action="push", instance="machine", episode="run")
    return read_logs(write_fleet(directory / "fleet.csv", gains, **options), columns, like=like)
