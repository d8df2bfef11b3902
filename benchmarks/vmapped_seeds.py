"""Would seeds be faster side by side in one program than one after the other?

    python benchmarks/vmapped_seeds.py

What takes the time of a cell is the Double DQN inside imagination. Four DQNs that differ by their seed run the same
number of ticks in the shipped model of each family: one after the other (compiled once), and as one `vmap`. Seconds
after compilation, and seconds to compile; two cores.
"""

import dataclasses
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from common import save

import hipmdp
from hipmdp._random import root_key
from hipmdp.control import dqn
from hipmdp.settings.presets import adaptation_preset

SEEDS, TICKS = 4, 100


def imagined(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """The imagination of a new instance, and an untrained DQN."""
    model, family = hipmdp.load(name), hipmdp.make(name)
    config = adaptation_preset("default", family.specification)
    quick = dataclasses.replace(config, imagined_episodes=config.dqn.lanes, imagined_warm_up=False)
    run = hipmdp.learn_policy(model, family, "test:0", 1, seed, config=quick, method="embedded", quiet=True)
    assert run.imagination is not None
    environment, contexts = run.imagination
    network = model.new_network(config.dqn, root_key(seed))
    state = dqn.init(network, config.dqn, TICKS * 200, root_key(seed + SEEDS))
    return config.dqn, environment, contexts, state


def timed(run: Any, states: Any) -> tuple[float, float, Any]:
    """Seconds of the second call, and by how much the first one was longer (it compiles)."""
    begin = time.perf_counter()
    states = jax.block_until_ready(run(states))
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    states = jax.block_until_ready(run(states))
    second = time.perf_counter() - begin
    return second, first - second, states


def measure(name: str) -> dict[str, Any]:
    config, environment, contexts, _ = imagined(name, 0)

    def ticks(state: Any) -> Any:
        return dqn.run_ticks(config, environment, contexts, state, 100_000, TICKS)[0]

    def one_by_one(states: list[Any]) -> list[Any]:
        return [ticks(state) for state in states]

    fresh = [imagined(name, seed)[3] for seed in range(SEEDS)]
    alone, alone_compile, _ = timed(one_by_one, fresh)
    stacked = jax.tree.map(
        lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0],
        *[imagined(name, seed)[3] for seed in range(SEEDS)],
    )
    together, together_compile, _ = timed(eqx.filter_jit(eqx.filter_vmap(ticks)), stacked)
    return {
        "family": name, "seeds": SEEDS, "ticks": TICKS, "one_by_one": alone, "vmapped": together,
        "ratio": alone / together, "compile_one": alone_compile, "compile_vmapped": together_compile,
    }  # fmt: skip


if __name__ == "__main__":
    rows = []
    for name in ("grid", "acrobot", "hiv"):
        rows.append(measure(name))
        print({k: round(v, 2) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
        save("vmapped_seeds", "python benchmarks/vmapped_seeds.py", rows)
