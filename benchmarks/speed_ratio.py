"""Is this tree as fast as commit BASE? `python benchmarks/speed_ratio.py BASE [--repeats 2]`

BASE is checked out beside the present tree, and both run the same work on HIV in turn, one process after the other:
`collect`; `pretrain` on the collected batch; `learn_policy` after one real episode, imagining in the true environment,
whose episodes are never cut, so that both trees do the same number of steps. Each is done twice in a process: the
first time compiles. The ratio is the time of BASE over that of this tree, each the shortest of the repeats: above 1,
this tree is faster. Run it on a quiet machine.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import save
from golden import ROOT, checked_out

PROBE = """
import inspect, json, sys, time
from dataclasses import replace
import hipmdp

family = hipmdp.make("hiv")
seconds = {}

def timed(name, work):
    for turn in ("first", "again"):
        begin = time.perf_counter()
        result = work(0 if turn == "first" else 1)
        seconds[f"{name}, {turn}"] = time.perf_counter() - begin
    return result

batch = timed("collect", lambda seed: hipmdp.collect(family, 2, 60, seed, quiet=True, jobs=1))
timed("pretrain", lambda seed: hipmdp.pretrain(batch, seed=seed, quiet=True, config=hipmdp.DynamicsConfig(rounds=3000)))
model = hipmdp.pretrain(batch, "scratch", quiet=True)
old = "dynamics" in inspect.signature(hipmdp.learn_policy).parameters
true = {"dynamics": "true"} if old else {"imagine_in": "environment"}
timed("adapt", lambda i: hipmdp.learn_policy(model, family, f"test:{i}", 1, 0, quiet=True, **true))
print(json.dumps(seconds))
"""


def measure(tree: Path) -> dict[str, float]:
    """Seconds of every piece of work with the sources of `tree`."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, "-c", PROBE]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=tree).stdout
    return json.loads(said.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        base = checked_out(given.base, Path(name))
        found: dict[Path, list[dict[str, float]]] = {base: [], ROOT: []}
        for _ in range(given.repeats):
            for tree, rows in found.items():
                rows.append(measure(tree))
    table: list[dict[str, Any]] = []
    for work in found[ROOT][0]:
        before, after = (min(row[work] for row in found[tree]) for tree in (base, ROOT))
        table.append({"work": work, "before": before, "after": after, "ratio": before / after})
        print(f"{work:16} {before:7.2f} s → {after:7.2f} s, ratio {before / after:.2f}", flush=True)
    save(f"speed_ratio-{given.base}", f"python benchmarks/speed_ratio.py {given.base}", table)


if __name__ == "__main__":
    main()
