"""A small study with invented numbers: cells are written directly, so that every number and name can be chosen."""

import math
import re
from dataclasses import asdict

import numpy as np

import hipmdp
from hipmdp._files import save_json
from hipmdp.families.specification import FamilyFacts, Parameter
from hipmdp.study.cells.files import write_records
from hipmdp.study.cells.record import METRICS, CellRecord

HOSTILE = '</script><b>own & "it\'s"'
"""A name that must do no harm wherever it stands."""
GRID, ACROBOT, HIV = hipmdp.make("grid"), hipmdp.make("acrobot", sd=0.25), hipmdp.make("hiv")
FAMILIES = {"grid": GRID, "acrobot-sd0.25": ACROBOT, "hiv": HIV}
OWN = FamilyFacts((HOSTILE, "v", "w"), tuple("01234"), (Parameter(HOSTILE, 1.0),), 8, HOSTILE)


def write_cell(
    directory, family, method, instance, seed, scores, *, states, actions, theta, latent=None, error=None, facts=OWN
):
    """One cell. `scores` become returns; a family that has no best returns takes them as returns."""
    scores = np.asarray(scores, np.float64)
    returns, reference = scores, None
    if family in FAMILIES:
        facts = FAMILIES[family].facts()
        member = FAMILIES[family].instances("test")[int(instance.partition(":")[2])]
        returns = member.random + scores * (member.best_known - member.random)
        reference = {"random": member.random, "best_known": member.best_known}
    count = len(scores)
    metrics = dict.fromkeys(METRICS, np.ones(count))
    metrics |= {"returns": returns, "learning_returns": returns - 1}
    metrics["model_error"] = np.full(count, math.nan if error is None else error)
    metadata = {
        "family": asdict(facts), "reference": reference, "theta": theta, "settings": {"setup": {"family": family}},
        "report": {}, "versions": {"hipmdp": "0.1.0"}, "peak_gb": 1.5,
    }  # fmt: skip
    key = {"family": family, "method": method, "variant": "plain", "instance": instance, "seed": seed}
    latents = [None if latent is None else np.asarray(latent, np.float32)] * count
    record = CellRecord(key, metrics, latents, np.asarray(states, np.float32), np.asarray(actions, np.int32), metadata)
    # The folders have plain names: what a cell is called stands inside its file.
    folder = directory / "cells" / re.sub(r"[^\w.-]", "", family) / method
    folder.mkdir(parents=True, exist_ok=True)
    number = int("".join(c for c in instance if c.isdigit()) or 0)
    write_records(folder / f"test{number}-seed{seed}.parquet", [record])


def grid_cell(directory, method, instance, seed, scores, **rest):
    """A walk of three steps: East, North, North."""
    states = [[-1.5, -1.5], [-1.2, -1.5], [-1.2, -1.2], [-1.2, -0.9]]
    theta = {"theta": float(GRID.instances("test")[instance].theta.theta)}
    label = f"test:{instance}"
    write_cell(directory, "grid", method, label, seed, scores, states=states, actions=[2, 1, 1], theta=theta, **rest)


def full_study(directory):
    """All that the page can show: grid, acrobot, a patient, a family of the user's own, and the map of uncertainty."""
    for seed in (0, 1):
        for instance in (0, 1):
            latent = [float(instance), float(seed), 0.5]
            grid_cell(directory, "embedded", instance, seed, [0.8, 0.9, 1.0], latent=latent, error=0.1)
            grid_cell(directory, "model_free", instance, seed, [0.1, 0.2, 0.3])
    for instance in range(5):
        time = np.arange(13)
        swing = np.stack([np.sin(time), np.cos(time), np.cos(time), -np.sin(time)], axis=1)
        theta = {"l1": 1.0 + instance / 10, "l2": 1.0, "m1": 0.5, "m2": 1.5 - instance / 10}
        write_cell(
            directory, "acrobot-sd0.25", "embedded", f"test:{instance}", 0, [0.5, 0.6], states=swing,
            actions=[i % 3 for i in range(12)], theta=theta, latent=[instance, 2 * instance, 2 * instance], error=0.2,
        )  # fmt: skip
    patient = np.linspace([5, 1.5, 3, 1, 4, 2], [6, 2.5, 1, 0, 2, 6], 201)
    theta = {name: float(getattr(HIV.baseline, name)) for name in HIV.parameter_names}
    drugs = [i // 30 % 4 for i in range(200)]
    write_cell(directory, "hiv", "embedded", "test:0", 0, [0.5, 0.6], states=patient, actions=drugs, theta=theta)
    own = np.linspace([0, 0, 0], [1, 2, -3], 9)
    write_cell(
        directory, HOSTILE, "embedded", HOSTILE, 0, [10, 20], states=own, actions=[0, 1, 2, 3, 4, 0, 0, 1],
        theta={HOSTILE: 1.0}, latent=[1.0, 2.0],
    )  # fmt: skip
    (directory / "extras").mkdir()
    variance = np.linspace(0.001, 0.1, 400).reshape(20, 20).tolist()
    maps = {"seed": 0, "ratio_of_medians": 2.5, "cells_seen": 9, "cells_unseen": 4, "variance": variance}
    maps |= {"red": [[1] * 20] * 20, "blue": [[50] * 20] * 20}
    save_json(directory / "extras" / "uncertainty-seed0.json", maps)
    return directory
