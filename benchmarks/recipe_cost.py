"""What the recipe costs on HIV: against commit BASE, and in all. `python benchmarks/recipe_cost.py [BASE]`

Against BASE, both trees in turn, each the shortest of three after a first call that compiles: seconds of `collect` per
real step, and of the fit of T̂ per gradient step, with the settings that each tree has for HIV (32 members).
In all: `pretrain` on 32 × 150 episodes on all cores, compilation included, with the fit of T̂ and Q(s, w) told apart
(latents and widths need no choice: they cost nothing); from the start of the first episode to the policy, with the
model that comes along, in a process of its own; and its peak memory. Run it on a quiet machine. BASE is 7c8cf2e by
default: the last commit with settings by name.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import save
from golden import ROOT, checked_out

RATIOS = """
import inspect, json, time
from dataclasses import replace
import hipmdp
from hipmdp.settings.presets import dynamics_preset

family, rounds = hipmdp.make("hiv"), 1500
given = {"preset": "default", "specification": family.specification, "instances": 32, "name": "hiv"}
names = list(inspect.signature(dynamics_preset).parameters)
config = dynamics_preset("default", *(given[n] if n in given else "hiv" for n in names[1:]))
config = replace(config, rounds=rounds)
policy = {"policy": False} if "policy" in inspect.signature(hipmdp.pretrain).parameters else {}

def shortest(work):
    times = []
    for turn in range(4):
        begin = time.perf_counter()
        result = work(turn)
        times.append(time.perf_counter() - begin)
    return min(times[1:]), result

collect, batch = shortest(lambda seed: hipmdp.collect(family, 2, 60, seed, quiet=True, jobs=1))
few = replace(config, rounds=500)
short = shortest(lambda seed: hipmdp.pretrain(batch, seed=seed, quiet=True, config=few, **policy))[0]
long = shortest(lambda seed: hipmdp.pretrain(batch, seed=seed, quiet=True, config=config, **policy))[0]
steps = config.weight_steps + config.latent_steps
print(json.dumps({"collect, µs per step": 1e6 * collect / len(batch),
                  "fit, ms per gradient step": 1e3 * (long - short) / ((rounds - 500) * steps),
                  "settings": repr(config)}))
"""
WHOLE = """
import json, sys, time
import hipmdp
from common import cached_batch

batch, begin = cached_batch("hiv", {}, 32, 150, 0), time.perf_counter()
model = hipmdp.pretrain(batch, seed=0, quiet=True, policy=False)
fitted = time.perf_counter()
hipmdp.amortise(model, batch, seed=0, quiet=True)
print(json.dumps({"fit of T̂": fitted - begin, "Q(s, w)": time.perf_counter() - fitted}))
"""
FIRST = """
import json, resource
import hipmdp

run = hipmdp.learn_policy(hipmdp.load("hiv"), hipmdp.make("hiv"), "validation:0", 1, 0, quiet=True)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"method": run.method, "seconds": float(run.seconds[0]), "peak GB": peak}))
"""
REPEATS = 2


def said(program: str, tree: Path) -> Any:
    """What the last line of a program says, run with the sources of `tree`."""
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{ROOT / 'benchmarks'}"}
    command = [sys.executable, "-c", program]
    out = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=tree).stdout
    return json.loads(out.splitlines()[-1])


def main() -> None:
    commit = sys.argv[1] if len(sys.argv) > 1 else "7c8cf2e"
    rows: dict[str, Any] = {"base": commit}
    with tempfile.TemporaryDirectory() as name:
        base = checked_out(commit, Path(name))
        found: dict[Path, list[dict[str, Any]]] = {base: [], ROOT: []}
        for _ in range(REPEATS):
            for tree, told in found.items():
                told.append(said(RATIOS, tree))
    for work in ("collect, µs per step", "fit, ms per gradient step"):
        before, after = (min(row[work] for row in found[tree]) for tree in (base, ROOT))
        rows[work] = {"base": before, "now": after, "ratio of times": after / before}
        print(f"{work}: {before:.4g} → {after:.4g}, {after / before:.2f} times", flush=True)
    rows["settings"] = {"base": found[base][0]["settings"], "now": found[ROOT][0]["settings"]}
    rows["first episode and its policy"] = said(FIRST, ROOT)
    print(rows["first episode and its policy"], flush=True)
    rows["pretrain, seconds"] = said(WHOLE, ROOT)
    print(rows["pretrain, seconds"], flush=True)
    save("recipe_cost", f"python benchmarks/recipe_cost.py {commit}", rows)


if __name__ == "__main__":
    main()
