"""Seconds from the start of the first real episode to the policy, and how good that policy is.

    python benchmarks/adapt_speed.py [grid acrobot hiv] [--presets default paper]

One process per family and preset; the first instance pays for compilation, the second does not. The real episode itself
is a few milliseconds of it. Run it on a quiet machine. The default preset uses the models that come with the package,
as `embedded` (HIV's first episode is rehearsed, which counts); `paper` is to the letter from the start, with a model
pre-trained by that preset on the paper's number of instances.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from common import RESULTS, save

RELEASED = {"grid": 1100, "acrobot": 1900, "hiv": 1400}
"""Seconds of one core that the authors' released code needs (grid measured, the others estimated)."""
INSTANCES = {"grid": "train", "acrobot": "train", "hiv": "5"}
RUN = """
import json, resource, sys
import hipmdp
from common import cached_batch
name, preset, instances = sys.argv[1:]
family = hipmdp.make(name)
if preset == "default":
    model = hipmdp.load(name)
else:
    batch = cached_batch(name, {}, int(instances) if instances.isdigit() else instances, 500, 0)
    model = hipmdp.pretrain(batch, preset=preset, quiet=True)
settings = dict(episodes=1, seed=0, preset=preset, method="embedded", quiet=True)
runs = [hipmdp.learn_policy(model, family, f"test:{i}", **settings) for i in (0, 1)]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
returns = [float(run.returns[0]) for run in runs]
print(json.dumps({"first": runs[0].seconds[0], "second": runs[1].seconds[0], "peak_gb": peak, "returns": returns}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=list(RELEASED))
    parser.add_argument("--presets", nargs="*", default=["default", "paper"])
    given = parser.parse_args()
    path = RESULTS / "adapt_speed.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    for preset in given.presets:
        for name in given.families:
            told = subprocess.run(
                [sys.executable, "-c", RUN, name, preset, INSTANCES[name]],
                capture_output=True, text=True, check=True, cwd=Path(__file__).parent,
            ).stdout  # fmt: skip
            row = {"family": name, "preset": preset, **json.loads(told), "released": RELEASED[name]}
            rows = [r for r in rows if (r["family"], r["preset"]) != (name, preset)] + [row]
            print(
                f"{name:8} {preset:8} first {row['first']:.1f} s, second {row['second']:.1f} s, "
                f"{row['peak_gb']:.2f} GB, returns {row['returns'][0]:.4g}, {row['returns'][1]:.4g}; "
                f"released code {row['released']} s",
                flush=True,
            )
            save("adapt_speed", "python benchmarks/adapt_speed.py", rows)


if __name__ == "__main__":
    main()
