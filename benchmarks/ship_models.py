"""The models that come with the package: made as in a study, seed 0.

    python benchmarks/ship_models.py [grid acrobot hiv compass] [--work DIR]

Batch and model are those of `hipmdp compare FAMILY --methods embedded --seeds 1 --out DIR`. What is in DIR already is
used.
"""

import argparse
from pathlib import Path

import hipmdp
from hipmdp.study.compare import compare
from hipmdp.study.setup import parse_setup
from hipmdp.study.tasks import ModelTask, plan, training_only

SHIPPED = Path(hipmdp.__file__).parent / "pretraining" / "shipped"

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=["grid", "acrobot", "hiv", "compass"])
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "batches" / "shipped")
    given = parser.parse_args()
    for name in given.families:
        setup = parse_setup(name)
        # Any cell whose model is to be made will do.
        member = setup.make().instances("train")[0].label
        cells = plan([setup], ["amortised"], {setup.family_label: [member]}, [0])
        failed = compare(cells, given.work)
        assert not failed, failed
        task = ModelTask(training_only(setup, setup.variant), 0, "embedded")
        hipmdp.load(given.work / task.path).save(SHIPPED / f"{name}.hipmdp")
        print(name, f"{(SHIPPED / f'{name}.hipmdp').stat().st_size / 1e3:.0f} kB")
