"""The models that come with the package: made as in a study, seed 0, with Q(s, w).

    python benchmarks/ship_models.py [grid acrobot hiv] [--work DIR]

Batch, embedded model and Q(s, w) are those of `hipmdp compare FAMILY --methods amortised --seeds 1 --out DIR`; what is
in DIR already is used. Half an hour for all three on two cores.
"""

import argparse
import shutil
from pathlib import Path

import hipmdp
from hipmdp.study.compare import compare
from hipmdp.study.setup import parse_setup
from hipmdp.study.tasks import ModelTask, plan, training_only

SHIPPED = Path(hipmdp.__file__).parent / "pretraining" / "shipped"

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=["grid", "acrobot", "hiv"])
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "batches" / "shipped")
    given = parser.parse_args()
    for name in given.families:
        setup = parse_setup(name)
        cells = plan([setup], ["amortised"], {setup.family_label: ["test:0"]}, [0])
        failed = compare(cells, given.work)
        assert not failed, failed
        task = ModelTask(training_only(setup, setup.variant), 0, "amortised")
        shutil.copy(given.work / task.path, SHIPPED / f"{name}.hipmdp")
        print(name, f"{(SHIPPED / f'{name}.hipmdp').stat().st_size / 1e3:.0f} kB")
