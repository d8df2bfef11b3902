"""The models that come with the package get their policies Q(s, w).

    python benchmarks/ship_models.py [grid acrobot]

T̂ stays as it is in `src/hipmdp/models`; Q(s, w) is learned inside it with the preset, seed 0. HIV's is the study's
model of seed 1, the first that was made: `hipmdp compare hiv --methods amortised --instances 10 --first-seed 1`.
"""

import argparse
from pathlib import Path

import jax

import hipmdp
from hipmdp.control.evaluate import repeat_theta
from hipmdp.data.episodes import episodes_to_transitions
from hipmdp.families.rollout import rollouts
from hipmdp.families.scripted import random_policy

MODELS = Path(hipmdp.__file__).parent / "models"
STARTS = 64

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=["grid", "acrobot"])
    for name in parser.parse_args().families:
        family = hipmdp.make(name)
        theta = family.theta({})
        keys = jax.random.split(jax.random.key(0), STARTS)
        # Amortise wants to know where episodes begin; nothing else of these is used.
        lived = rollouts(family, random_policy(family), keys, repeat_theta(theta, STARTS))
        starts = episodes_to_transitions(family, lived, theta)
        model = hipmdp.amortise(hipmdp.load(MODELS / f"{name}.hipmdp"), starts, family=family)
        model.save(MODELS / f"{name}.hipmdp")
        print(name, f"{(MODELS / f'{name}.hipmdp').stat().st_size / 1e3:.0f} kB")
