"""How long does `collect` take, and where does the time go? `python benchmarks/collect_speed.py`

The whole: 5 HIV patients × 500 episodes, all cores, compilation included. The parts, on one core: each part of a tick
alone in a jitted scan. The share of the machine's matrix throughput: what the Q update's multiplications would take at
the speed of one large float32 product.
"""

import time
from typing import Any

from common import best_seconds, save


def whole() -> dict[str, Any]:
    import hipmdp

    begin = time.perf_counter()
    batch = hipmdp.collect(hipmdp.make("hiv"), 5, episodes=500, seed=0)
    return {
        "part": "collect 5 x 500 HIV episodes, all cores",
        "seconds": time.perf_counter() - begin,
        "transitions": len(batch),
    }


def parts() -> list[dict[str, Any]]:
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import hipmdp
    from hipmdp.control import dqn as dqn
    from hipmdp.control.policies import repeat_theta
    from hipmdp.control.train import new_dqn
    from hipmdp.data import replay as replays
    from hipmdp.settings.presets import dqn_preset

    family: Any = hipmdp.make("hiv")
    config, contexts = dqn_preset("default", family.specification, 500), repeat_theta(family.theta(), 1)
    state = new_dqn(family.specification, config, 500, jax.random.key(0))
    state, _ = dqn.run_ticks(config, family, contexts, state, 500, 200)
    steps, count = config.steps_per_phase, 100
    network, replay = state.online, state.replay
    rows = jax.tree.map(lambda leaf: leaf[:steps], replay.items)
    batch = replays.sample(replay, jax.random.key(1), config.batch_size, config.importance_exponent)
    optimizer = dqn.make_optimizer(config)
    gradient = jax.tree.map(jnp.ones_like, network)

    def scanned(body: Any, carry: Any, length: int = count) -> float:
        run = eqx.filter_jit(lambda c: jax.lax.scan(lambda c, i: (body(c, i), None), c, jnp.arange(length))[0])
        return best_seconds(lambda: run(carry)) / length

    def environment(carry: Any, i: Any) -> Any:
        s, theta = carry
        return family.step(jax.random.key(0), s, i % 4, theta).state, theta

    def forward(s: Any, i: Any) -> Any:
        return s + 1e-9 * jnp.sum(network(s))

    def add(r: Any, i: Any) -> Any:
        return replays.add(r._replace(size=i * steps), rows, jnp.ones(steps, bool))

    def sample_and_set(r: Any, i: Any) -> Any:
        drawn = replays.sample(
            r, jax.random.fold_in(jax.random.key(0), i), config.batch_size, config.importance_exponent
        )
        return replays.set_priorities(r, drawn.indices, drawn.weights, config.priority_exponent)

    def values(s: Any, i: Any) -> Any:
        online, target = (jax.vmap(net)(batch.items.next_state + s) for net in (network, state.target))
        return s + 1e-9 * jnp.sum(online + target)

    def backward(s: Any, i: Any) -> Any:
        grads = eqx.filter_grad(lambda net: jnp.mean(jax.vmap(net)(batch.items.state + s)[:, 0] ** 2))(network)
        return s + 1e-9 * sum(jnp.sum(leaf) for leaf in jax.tree.leaves(grads))

    def optimise(carry: Any, i: Any) -> Any:
        net, target, opt = carry
        updates, opt = optimizer.update(gradient, opt)
        net = eqx.apply_updates(net, updates)
        return net, jax.tree.map(lambda slow, fast: slow + 0.005 * (fast - slow), target, net), opt

    zero = jnp.zeros(())
    per_tick = {
        "environment (10 steps)": steps * scanned(environment, (state.lanes.state[0], family.theta())),
        "Q forward for acting (10 states)": steps * scanned(forward, state.lanes.state[0]),
        "replay: add 10": scanned(add, replay),
        "replay: sample 50, set priorities": config.minibatches * scanned(sample_and_set, replay),
        "Q forward for targets (2 x 50)": config.minibatches * scanned(values, zero),
        "Q forward and backward (50)": config.minibatches * scanned(backward, zero),
        "optimizer and target network": config.minibatches
        * scanned(optimise, (network, state.target, state.optimizer)),
    }
    begin = time.perf_counter()
    state, out = dqn.run_ticks(config, family, contexts, state, 500, 200)
    jax.block_until_ready(out)
    begin = time.perf_counter()
    state, out = dqn.run_ticks(config, family, contexts, state, 500, 200)
    jax.block_until_ready(out)
    total = (time.perf_counter() - begin) / 200
    size = 1024
    matrix = jnp.ones((size, size), jnp.float32)
    multiply = jax.jit(lambda m: m @ m)
    throughput = 2 * size**3 / best_seconds(lambda: multiply(matrix))
    sizes = [(6, 256), (256, 512), (512, 4)]
    # Two forward passes for the targets, one for the loss, and two products per layer backward (one on the first).
    flops = 2 * config.batch_size * (3 * sum(a * b for a, b in sizes) + 2 * sum(a * b for a, b in sizes) - 6 * 256)
    spent = per_tick["Q forward for targets (2 x 50)"] + per_tick["Q forward and backward (50)"]
    rows_out = [{"part": name, "ms_per_tick": 1e3 * s, "share": s / total} for name, s in per_tick.items()]
    rows_out.append({"part": "a whole tick (10 steps, 1 mini-batch)", "ms_per_tick": 1e3 * total, "share": 1.0})
    share = config.minibatches * flops / throughput / spent
    rows_out.append(
        {"part": "matrix throughput", "gflops": throughput / 1e9, "q_update_gflop": flops / 1e9, "share_reached": share}
    )
    return rows_out


if __name__ == "__main__":
    import sys

    if "--parts" in sys.argv:
        from common import pin_to_one_core

        pin_to_one_core()
        import json

        print(json.dumps(parts()))
    else:
        import json
        import subprocess

        rows = [whole()]
        print(f"{rows[0]['part']}: {rows[0]['seconds']:.0f} s, {rows[0]['transitions']} transitions")
        output = subprocess.run(
            [sys.executable, __file__, "--parts"], capture_output=True, text=True, check=True
        ).stdout
        for row in json.loads(output):
            rows.append(row)
            if "ms_per_tick" in row:
                print(f"{row['part']:40}{row['ms_per_tick']:9.3f} ms{row['share']:8.0%}")
            else:
                print(
                    f"large product {row['gflops']:.0f} GFLOP/s; the Q update reaches {row['share_reached']:.0%} of it"
                )
        save("collect_speed", "python benchmarks/collect_speed.py", rows)
