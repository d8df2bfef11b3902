"""The whole pipeline on thirty families that nobody tuned anything for (`synthetic_families.py`).

    python benchmarks/synthetic.py --small              # short fits: about a minute for each family on one core
    python benchmarks/synthetic.py                      # the recipe as it is
    python benchmarks/synthetic.py --seeds 3 17         # some of them

`collect`, `pretrain` and one episode of `learn_policy` with `embedded` and `average`, against random actions. Every
family is a row of results/synthetic.json, written when it is done; rows that are there are not made again. What raises
is a row too.
"""

import argparse
import json
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import RESULTS, save
from synthetic_families import Synthetic

import hipmdp
from hipmdp._random import root_key, stream
from hipmdp.control.policies import repeat_theta
from hipmdp.families.instances import frozen_instance
from hipmdp.families.scripted import random_policy
from hipmdp.settings import recipe
from hipmdp.settings.presets import adaptation_preset, dynamics_preset

FAMILIES = 30
METHODS = ("embedded", "average")
MEMBERS = ("test:0", "test:1")
COLLECTED, RANDOM_EPISODES = 20, 50
"""Episodes of `collect` on each training instance, and of random actions on each test member."""
SMALL_ROUNDS, SMALL_STEPS = 2500, 150_000
"""`--small`: rounds of `pretrain`; imagined steps of a round of `learn_policy`."""
SMALL_POLICY_STEPS = 250_000
"""`--small`: imagined steps behind Q(s, w)."""
INTERVAL = 1.96
"""A 95 % interval, in standard errors."""


# One family.


def measured(seed: int, small: bool) -> dict[str, Any]:
    """The row of one family."""
    family, began = Synthetic(seed), time.perf_counter()
    row: dict[str, Any] = {"family": family.name, "small": small, "draw": asdict(family.draw)}
    row |= {"errors": [], "not_finite": [], "warnings": []}
    with _recorded(row, "random"):
        row["random"] = random_returns(family)
    batch = None
    with _recorded(row, "collect"):
        batch = hipmdp.collect(family, family.draw.instances, COLLECTED, seed, quiet=True)
        _note_not_finite(row, "batch", batch.state, batch.next_state, batch.reward)
    for method in METHODS:
        with _recorded(row, method):
            if batch is not None:
                row[method] = learned(row, family, batch, method, seed, small)
    return row | {"seconds": time.perf_counter() - began}


def random_returns(family: Synthetic) -> dict[str, Any]:
    """Mean and standard error of the return of random actions, over all members."""
    found = []
    for number, member in enumerate(MEMBERS):
        keys = jax.random.split(stream(root_key(family.seed), "study/measured", number), RANDOM_EPISODES)
        thetas = repeat_theta(frozen_instance(family, member).theta, RANDOM_EPISODES)
        found.append(episode_returns(family.rollouts(random_policy(family), keys, thetas)))
    return {"members": [float(np.mean(values)) for values in found], **over_members(found)}


def learned(row: dict[str, Any], family: Synthetic, batch: Any, method: str, seed: int, small: bool) -> dict[str, Any]:
    """Greedy returns after one episode on each member; what is not finite is noted in the row."""
    dynamics, policy, adaptation = small_settings(family, batch) if small else (None, True, None)
    began = time.perf_counter()
    model = hipmdp.pretrain(batch, method, seed, config=dynamics, policy=policy, quiet=True)
    pretrained = time.perf_counter()
    _note_not_finite(row, f"{method} model", model.dynamics, list(model.metrics.values()))
    _note_not_finite(row, f"{method} reward head", model.reward_head)
    _note_not_finite(row, f"{method} first policy", model.latent_policy)
    found = []
    for member in MEMBERS:
        run = hipmdp.learn_policy(model, family, member, 1, seed, config=adaptation, quiet=True)
        _note_not_finite(row, f"{method} {member} returns", run.returns, run.learning_returns)
        _note_not_finite(row, f"{method} {member} policy", run.network)
        _note_not_finite(row, f"{method} {member} model", run.model.dynamics, run.model_error, run.latents)
        found.append((float(run.returns[0]), float(run.learning_returns[0]), episode_returns(run.evaluation)))
    returns, learning, evaluated = zip(*found, strict=True)
    return {
        "members": list(returns),
        **over_members(list(evaluated)),
        "learning_returns": list(learning),
        "model_error": {name: float(value) for name, value in model.metrics.items()},
        "pretrain_seconds": pretrained - began,
        "learn_policy_seconds": (time.perf_counter() - pretrained) / len(MEMBERS),
    }


def small_settings(
    family: Synthetic, batch: Any
) -> tuple[hipmdp.DynamicsConfig, hipmdp.AmortiseConfig, hipmdp.AdaptationConfig]:
    """The recipe's with shorter fits and fewer imagined steps."""
    specification = family.specification
    dynamics = replace(dynamics_preset("default", specification, len(batch.instances)), rounds=SMALL_ROUNDS)
    policy = recipe.amortise(specification, SMALL_POLICY_STEPS)
    adaptation = replace(adaptation_preset("default", specification), imagined_steps=SMALL_STEPS, imagined_rounds=2)
    return dynamics, policy, adaptation


def episode_returns(episodes: Any) -> np.ndarray:
    """Undiscounted returns, summed in float64."""
    return np.sum(np.asarray(episodes.steps.reward, np.float64), axis=-1)


def over_members(returns: list[np.ndarray]) -> dict[str, float]:
    """The mean over members, with the standard error that their episodes leave: the members are given."""
    variances = [np.var(values, ddof=1) / len(values) for values in returns]
    mean, error = np.mean([np.mean(values) for values in returns]), np.sqrt(np.sum(variances)) / len(returns)
    return {"mean": float(mean), "standard_error": float(error)}


@contextmanager
def _recorded(row: dict[str, Any], stage: str) -> Iterator[None]:
    """What a stage warns of and raises stands in the row."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{frame.filename.rpartition('site-packages/')[2].rpartition('src/')[2]}:{frame.lineno}"
            row["errors"].append({"stage": stage, "error": f"{type(error).__name__}: {error}"[:500], "where": where})
    texts = [f"{stage}: {found.category.__name__}: {found.message}" for found in caught]
    row["warnings"] += list(dict.fromkeys(texts))


def _note_not_finite(row: dict[str, Any], what: str, *values: Any) -> None:
    """Note `what` in the row if a number in any of these trees is NaN or infinite."""
    leaves = [leaf for leaf in jax.tree.leaves(values) if isinstance(leaf, (float, np.ndarray, jax.Array))]
    numbers = [np.asarray(leaf) for leaf in leaves if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]
    if not all(np.isfinite(leaf).all() for leaf in numbers):
        row["not_finite"].append(what)


# All of them.


def summary(rows: list[dict[str, Any]]) -> str:
    """How many failed, how many are worse than random actions, and whether the latent helps."""
    failed = [row for row in rows if row["errors"] or row["not_finite"]]
    lines = [f"{len(rows)} families; {len(failed)} ended in NaN or an exception{_names(failed)}"]
    for method in METHODS:
        known = [row for row in rows if method in row and "random" in row]
        below = [row for row in known if advantage(row, method) < -INTERVAL * row["random"]["standard_error"]]
        clearly = [row for row in known if advantage(row, method) < -INTERVAL * both_errors(row, method)]
        above = [row for row in known if advantage(row, method) > INTERVAL * both_errors(row, method)]
        lines.append(
            f"{method}: below random by more than its 95 % interval {len(below)} of {len(known)}{_names(below)}; by "
            f"more than that of the difference {len(clearly)}{_names(clearly)}; above by more than that {len(above)}"
        )
    both = [row for row in rows if all(method in row for method in METHODS)]
    first, second = METHODS
    better = [row for row in both if row[first]["mean"] > row[second]["mean"]]
    if both:
        lines.append(f"{first} above {second}: {len(better)} of {len(both)} ({len(better) / len(both):.0%})")
    return "\n".join(lines)


def advantage(row: dict[str, Any], method: str) -> float:
    """By how much a method's mean return is above that of random actions."""
    return float(row[method]["mean"] - row["random"]["mean"])


def both_errors(row: dict[str, Any], method: str) -> float:
    """The standard error of that difference."""
    return float(np.hypot(row[method]["standard_error"], row["random"]["standard_error"]))


def _names(rows: list[dict[str, Any]]) -> str:
    return f" ({', '.join(row['family'] for row in rows)})" if rows else ""


def line(row: dict[str, Any]) -> str:
    """One row for people."""
    draw = row["draw"]
    sizes = f"{draw['states']} states, {draw['actions']} actions, {draw['horizon']} steps"
    kind = f"{draw['dynamics']}, {draw['reward']} ({draw['sign']}) × {draw['scale']:.1e}"
    returns = [f"{name} {row[name]['mean']:.4g} ± {row[name]['standard_error']:.1g}" for name in ("random", *METHODS)
               if name in row]  # fmt: skip
    faults = [f"{error['stage']} raised {error['error']} at {error['where']}" for error in row["errors"]]
    faults += [f"not finite: {what}" for what in row["not_finite"]] + row["warnings"]
    return "; ".join([row["family"], sizes, kind, *returns, f"{row['seconds']:.0f} s", *faults])


def stored() -> list[dict[str, Any]]:
    """Rows of earlier calls."""
    path = RESULTS / "synthetic.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=range(FAMILIES), help="which families")
    parser.add_argument("--small", action="store_true", help="shorter fits and fewer imagined episodes")
    asked = parser.parse_args()
    command = "python benchmarks/synthetic.py" + (" --small" if asked.small else "")
    rows = stored()
    for seed in asked.seeds:
        if any(row["draw"]["seed"] == seed and row["small"] is asked.small for row in rows):
            continue
        row = measured(seed, asked.small)
        rows = sorted([*rows, row], key=lambda row: (row["small"], row["draw"]["seed"]))
        save("synthetic", command, rows)
        print(line(row), flush=True)
        # Every family has programs of its own.
        jax.clear_caches()
    print(summary([row for row in rows if row["small"] is asked.small]))


if __name__ == "__main__":
    main()
