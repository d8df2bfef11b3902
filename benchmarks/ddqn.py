"""Does the Double DQN solve the true dynamics? `python benchmarks/ddqn.py [grid acrobot hiv] [--fresh]`

One lane, as in a real system. Greedy returns (20 evaluation episodes on grid and acrobot, 1 on HIV) are taken every
50 episodes; reported are the best and the last, per preset, variant and seed. Runs that are stored are not run again,
unless --fresh asks for it.
"""

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from common import RESULTS, save

# (family, θ, label, preset or changes to the default, episodes, seeds)
CASES: list[tuple[str, dict[str, float], str, Any, int, int]] = [
    ("grid", {"theta": 0}, "default", {}, 1000, 10),
    ("grid", {"theta": 1}, "default", {}, 1000, 10),
    ("grid", {"theta": 0}, "paper", "paper", 1000, 3),
    ("grid", {"theta": 0}, "ε floor 0.1", {"epsilon_floor": 0.1}, 1000, 3),
    ("grid", {"theta": 0}, "ε decay 0.99", {"epsilon_decay": 0.99}, 1000, 3),
    ("grid", {"theta": 0}, "2 mini-batches", {"minibatches": 2}, 1000, 3),
    ("grid", {"theta": 0}, "restarts 0.5", {"restart_share": 0.5}, 1000, 3),
    ("grid", {"theta": 0}, "2 mini-batches, restarts 0.5", {"minibatches": 2, "restart_share": 0.5}, 1000, 3),
    ("acrobot", {}, "default", {}, 1000, 3),
    ("acrobot", {}, "paper", "paper", 1000, 1),
    ("hiv", {}, "default", {}, 2000, 2),
    ("hiv", {}, "paper", "paper", 2000, 1),
]
GOAL = {"grid": 980.0, "acrobot": -12.0, "hiv": 1e10}


def one(case: tuple[str, dict[str, float], str, Any, int, int], seed: int) -> dict[str, Any]:
    import hipmdp
    from hipmdp._random import root_key
    from hipmdp.adaptation.evaluate import evaluate
    from hipmdp.control.policies import Greedy, repeat_theta
    from hipmdp.control.train import new_dqn, train_in_stages
    from hipmdp.settings.presets import dqn_preset

    name, values, label, changes, episodes, _ = case
    family: Any = hipmdp.make(name)
    theta = family.theta(values)
    specification = family.specification
    if changes == "paper":
        config = dqn_preset("paper", specification, episodes)
    else:
        config = replace(dqn_preset("default", specification, episodes), **changes)
    state = new_dqn(family.specification, config, episodes, root_key(seed))
    stages, curve = range(50, episodes + 1, 50), []
    for chunk in train_in_stages(config, family, repeat_theta(theta, 1), state, stages):
        greedy = evaluate(family, Greedy(chunk.state.online), theta, root_key(seed))
        curve.append((int(chunk.state.started), float(greedy.undiscounted_return.mean())))
    reached = next((episode for episode, value in curve if value >= GOAL[name]), None)
    return {
        "family": name, "theta": values, "variant": label, "seed": seed, "episodes": episodes,
        "best": max(value for _, value in curve), "last": curve[-1][1], "goal": GOAL[name], "goal_reached_at": reached,
        "curve": curve,
    }  # fmt: skip


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    fresh = "--fresh" in sys.argv
    families = [word for word in sys.argv[1:] if word != "--fresh"] or list(GOAL)
    path = RESULTS / "ddqn.json"
    stored = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = [row for row in stored if not (fresh and row["family"] in families)]
    done = {(row["family"], str(row["theta"]), row["variant"], row["seed"]) for row in rows}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        jobs = [
            (case, seed, pool.submit(one, case, seed))
            for case in CASES
            if case[0] in families
            for seed in range(case[5])
            if (case[0], str(case[1]), case[2], seed) not in done
        ]
        for _case, seed, future in jobs:
            rows.append(future.result())
            r = rows[-1]
            print(
                f"{r['family']:8} {r['theta']!s:14} {r['variant']:14} seed {seed}: best {r['best']:.5g}, "
                f"last {r['last']:.5g}, goal {r['goal']:g} reached at episode {r['goal_reached_at']}",
                flush=True,
            )
            save("ddqn", "python benchmarks/ddqn.py", rows)
