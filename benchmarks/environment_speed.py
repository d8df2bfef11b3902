"""Environment transitions per second and core, vmapped and single: `python benchmarks/environment_speed.py`.

Each transition is a whole step (dynamics, reward, termination) followed by a reset where the episode ended.
"Gymnasium" is the Python environment with one jitted call per step.
"""

import time
from typing import Any

from common import best_seconds, pin_to_one_core, save

pin_to_one_core()

import equinox as eqx  # noqa: E402
import gymnasium  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import hipmdp  # noqa: E402

RELEASED = {"grid": 9_000, "acrobot": 12_000, "hiv": 1_500}
"""The authors' released code on one core."""
LANES, STEPS = {"grid": 4096, "acrobot": 4096, "hiv": 1024}, {"grid": 200, "acrobot": 100, "hiv": 20}


@eqx.filter_jit
def walk(family: Any, states: Any, thetas: Any, starts: Any, actions: Any) -> Any:
    def one(state: Any, theta: Any, start: Any, lane_actions: Any) -> Any:
        def body(state: Any, action: Any) -> tuple[Any, Any]:
            outcome = family.step(jax.random.key(0), state, action, theta)
            return jnp.where(outcome.terminated, start, outcome.state), outcome.reward

        return jax.lax.scan(body, state, lane_actions)

    if states.ndim == 1:
        return one(states, thetas, starts, actions)
    return jax.vmap(one)(states, thetas, starts, actions)


def measure(name: str) -> dict[str, Any]:
    family = hipmdp.make(name).simulator("this benchmark")
    rates = {}
    for label, lanes in (("vmapped", LANES[name]), ("single", 1)):
        steps = STEPS[name] if lanes > 1 else 200
        thetas = jax.vmap(family.sample_instance)(jax.random.split(jax.random.key(0), lanes))
        starts = jax.vmap(family.reset)(jax.random.split(jax.random.key(1), lanes), thetas)
        count = family.specification.action_count
        actions = jax.random.randint(jax.random.key(2), (lanes, steps), 0, count)
        if lanes == 1:
            thetas, starts, actions = jax.tree.map(lambda leaf: leaf[0], (thetas, starts, actions))

        def run(thetas: Any = thetas, starts: Any = starts, actions: Any = actions) -> Any:
            return walk(family, starts, thetas, starts, actions)

        rates[label] = lanes * steps / best_seconds(run)
    env = gymnasium.make(f"hipmdp/{ {'grid': 'Grid', 'acrobot': 'Acrobot', 'hiv': 'HIV'}[name] }-v0").unwrapped
    env.reset(seed=0)
    env.step(0)
    begin, taken = time.perf_counter(), 0
    while time.perf_counter() - begin < 1:
        _, _, terminated, truncated, _ = env.step(taken % count)
        taken += 1
        if terminated or truncated:
            env.reset()
    rates["gymnasium"] = taken / (time.perf_counter() - begin)
    return {"family": name, "released": RELEASED[name], **{k: round(v) for k, v in rates.items()}}


if __name__ == "__main__":
    rows = [measure(name) for name in RELEASED]
    print("transitions per second on one core")
    print(f"{'family':9}{'vmapped':>14}{'single':>12}{'Gymnasium':>12}{'released':>12}{'vmapped/released':>18}")
    for r in rows:
        print(
            f"{r['family']:9}{r['vmapped']:14,}{r['single']:12,}{r['gymnasium']:12,}{r['released']:12,}"
            f"{r['vmapped'] / r['released']:17,.0f}x"
        )
    save("environment_speed", "python benchmarks/environment_speed.py", rows)
