"""Online from nothing: ten instances one after the other with no batch; is the tenth met better than the first?

    python benchmarks/online.py                         # acrobot and grid, two seeds each: 45 minutes of one core
    python benchmarks/online.py grid --seeds 0 1 2      # some of it

Every run is kept in benchmarks/batches/online, instance by instance, so that it can be stopped and started again; the
tables come from all runs that are there and finished, and are written to results/online.json. Acrobot meets test:0 to
test:9, grid its two classes in turn. The score of an instance is that of the one episode lived before anything was
learned from it. Acrobot's reward and goal are learned from what was paid (R needs l1 and l2, which nobody knows);
grid's R is given. The scripted rule of the family needs to know nothing.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from common import save

import hipmdp
from hipmdp._files import atomic_write
from hipmdp.cli.online import facts
from hipmdp.families.instances import frozen_instance
from hipmdp.online.loop import online

WORK = Path(__file__).parent / "batches" / "online"
FAMILIES = ("acrobot", "grid")
INSTANCES, EPISODES = 10, 5


def run_one(name: str, seed: int) -> None:
    """One run, unless it is there."""
    path = WORK / f"{name}-{seed}.json"
    if path.exists():
        return
    family = hipmdp.make(name)
    run = online(family, INSTANCES, EPISODES, seed, WORK / f"{name}-{seed}")
    told = facts(run, name, seed)
    for row in told["instances"]:
        known = frozen_instance(family, row["instance"])
        row["scripted"] = known.score(known.scripted)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(told))


def finished() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(WORK.glob("*-*.json"))]


def tell(runs: list[dict[str, Any]]) -> None:
    """Markdown: first-episode scores, and the sizes in use after each instance."""
    for name in sorted({run["family"] for run in runs}):
        mine = [run for run in runs if run["family"] == name]
        numbers = range(1, INSTANCES + 1)
        print(f"\n| {name}: first-episode score, instance | " + " | ".join(map(str, numbers)) + " |")
        print("|---" * (INSTANCES + 1) + "|")
        for run in mine:
            first = [row["scores"][0] for row in run["instances"]]
            print(f"| seed {run['seed']} | " + " | ".join(f"{v:.2f}" for v in first) + " |")
        scripted = [row["scripted"] for row in mine[0]["instances"]]
        print("| a scripted rule | " + " | ".join(f"{v:.2f}" for v in scripted) + " |")
        for run in mine:
            sizes = ["×".join(map(str, row["size"])) for row in run["instances"]]
            print(f"| size after it, seed {run['seed']} | " + " | ".join(sizes) + " |")
        first, tenth = (np.mean([run["instances"][i]["scores"][0] for run in mine]) for i in (0, -1))
        last = np.mean([[row["scores"][0] for row in run["instances"][-5:]] for run in mine])
        seconds = np.mean([[row["seconds"] for row in run["instances"]] for run in mine])
        print(f"\nFirst instance {first:.2f}, tenth {tenth:.2f}, mean of the last five {last:.2f}; "
              f"{seconds:.0f} s per instance.")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        for name in options.families:
            run_one(name, seed)
            save("online", "python benchmarks/online.py", finished())
    tell(finished())


if __name__ == "__main__":
    main()
