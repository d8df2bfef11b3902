"""What share of the raw prior is well-behaved, part by part? `python benchmarks/instance_prior.py`"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from common import save

import hipmdp

DRAWS, CHUNK = 4000, 500


@eqx.filter_jit
def test_parts(family: Any, keys: Any) -> Any:
    return jax.vmap(lambda key: family.well_behaved_parts(family.sample_instance(key)))(keys)


if __name__ == "__main__":
    rows = []
    for label, family in (
        ("grid", hipmdp.make("grid")),
        ("acrobot (sd 0.10)", hipmdp.make("acrobot")),
        ("acrobot (sd 0.25, wide)", hipmdp.make("acrobot", sd=0.25)),
        ("hiv (twelve parameters)", hipmdp.make("hiv")),
        ("hiv (all 22 parameters)", hipmdp.make("hiv", vary="all")),
    ):
        keys = jax.random.split(jax.random.key(0), DRAWS)
        chunks = [test_parts(family, keys[i : i + CHUNK]) for i in range(0, DRAWS, CHUNK)]
        parts = {name: np.concatenate([np.asarray(c[name]) for c in chunks]) for name in chunks[0]}
        shares = {name: float(mask.mean()) for name, mask in parts.items()}
        shares["all"] = float(np.all(np.stack(list(parts.values())), axis=0).mean())
        rows.append({"prior": label, "draws": DRAWS, **shares})
        print(f"{label}: " + ", ".join(f"{name} {share:.2%}" for name, share in shares.items()), flush=True)
    save("instance_prior", "python benchmarks/instance_prior.py", rows)
