"""Milliseconds per gradient step on one core: `python benchmarks/dynamics_speed.py`

The work of the released code's step: 50 weight draws × 32 transitions, HIV's network (2×32, five latents): sampling
from the replay, energy, gradient and Adam, in one jitted loop. Normals come from the pool (hipmdp.dynamics.noise);
beside it, what fresh ones (threefry) cost. Does the pool change what is learned? The gradient's mean and spread.
"""

import time
from dataclasses import replace
from typing import Any

from common import PAPER_SIZED, best_seconds, cached_batch, pin_to_one_core, save

STEPS = 500


def step_seconds(dynamics: Any, prior: Any, schedule: Any, state: Any) -> float:
    import jax
    import jax.numpy as jnp

    from hipmdp.dynamics import fit

    # The state is donated to each run, so that each needs a copy, whose time does not count.
    copying = best_seconds(lambda: jax.tree.map(jnp.copy, state))

    def run() -> Any:
        copy = jax.tree.map(jnp.copy, state)
        return fit.run_rounds(dynamics, copy, latent_prior=prior, schedule=schedule, chunk=STEPS)

    whole = best_seconds(run)
    return (whole - copying) / STEPS


def main() -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np

    import hipmdp
    from hipmdp.dynamics import fit
    from hipmdp.dynamics.model import instance_rows, new_dynamics
    from hipmdp.dynamics.network import Gaussian
    from hipmdp.dynamics.noise import from_pool, make_pool
    from hipmdp.dynamics.standardise import scaling_of

    batch = cached_batch("hiv", {}, 5, 500, 0)
    rows = []
    base = hipmdp.DynamicsConfig(**PAPER_SIZED["hiv"])
    unit = Gaussian.unit(5)
    few = batch.select(batch.episode % 25 == 0)
    for log, draws, size in ((few, 50, 32), (batch, 50, 32), (batch, 10, 256)):
        for part, steps in (("W", (1, 0)), ("w_b", (0, 1))):
            config = replace(
                base, weight_draws=draws, batch_size=size, weight_steps=steps[0], latent_steps=steps[1], rounds=10**6
            )
            dynamics = new_dynamics(config, batch.specification, scaling_of(batch), 5, key=jax.random.key(0))
            data = dynamics.rows(log, instance_rows(log, log.instances))
            schedule = fit.Schedule(1e-4, 1e-4, config.rounds)
            state = fit.init(dynamics, data, jax.random.key(1))
            seconds = step_seconds(dynamics, unit, schedule, state)
            facts = {"draws": draws, "rows": size, "transitions": len(log), "ms": 1e3 * seconds}
            rows.append({"what": f"step on {part}", **facts})
            print(f"step on {part:4} {facts}", flush=True)
    # Normals alone, and what they do to the gradient.
    count = dynamics.posterior.mean.shape[0]
    pool = make_pool(jax.random.key(2), 50, count)

    def many(source: Any) -> float:
        def body(total: Any, key: Any) -> Any:
            return total + jnp.sum(source(key)[:, ::97]), None

        keys = jax.random.split(jax.random.key(3), 200)
        loop = jax.jit(lambda keys: jax.lax.scan(body, jnp.zeros((), jnp.float32), keys)[0])
        return best_seconds(lambda: loop(keys)) / 200

    sources = {
        "fresh (threefry)": lambda key: jax.random.normal(key, (50, count), jnp.float32),
        "pool": lambda key: from_pool(pool, key, 50, count),
    }
    sample = jax.tree.map(lambda leaf: leaf[:32], data)
    parameters = fit.Parameters((dynamics.posterior, dynamics.log_noise), dynamics.latents)

    def gradient(normals: Any) -> Any:
        def loss(posterior: Any) -> Any:
            part = parameters._replace(network=(posterior, dynamics.log_noise))
            mini_batch = fit.MiniBatch(sample, jnp.ones(32), normals, jnp.zeros((50, 32, 0)))
            return fit.batch_energy(dynamics, part, mini_batch, latent_prior=unit, count=jnp.asarray(5e5))[0]

        return jax.grad(loss)(dynamics.posterior).mean[:200]

    stats = {}
    for name, source in sources.items():
        ms = 1e3 * many(source)
        draws_ = jax.jit(jax.vmap(lambda key, source=source: gradient(source(key))))(
            jax.random.split(jax.random.key(4), 400)
        )
        stats[name] = (np.asarray(draws_.mean(0)), np.asarray(draws_.std(0)))
        rows.append({"what": f"normals, {name}", "ms": ms})
        print(f"normals for 50 draws, {name}: {ms:.3f} ms", flush=True)
    (mean_f, std_f), (mean_p, std_p) = stats.values()
    z = np.abs(mean_f - mean_p) / np.sqrt((std_f**2 + std_p**2) / 400 + 1e-30)
    rows.append(
        {
            "what": "gradient over 400 steps, pool against fresh",
            "share_of_means_within_2_standard_errors": float(np.mean(z < 2)),
            "median_ratio_of_spreads": float(np.median(std_p / (std_f + 1e-30))),
        }
    )
    print(rows[-1])
    model = hipmdp.pretrain(batch, seed=0, config=replace(base, rounds=500), quiet=True)
    episode = batch.select((batch.instance == 0) & (batch.episode == 0))
    jax.block_until_ready(hipmdp.infer_latent(model, episode).value)
    begin = time.perf_counter()
    jax.block_until_ready(hipmdp.infer_latent(model, episode, seed=1).value)
    rows.append({"what": "infer_latent from one episode", "seconds": time.perf_counter() - begin})
    print(f"infer_latent from one episode: {rows[-1]['seconds']:.2f} s")
    save("dynamics_speed", "python benchmarks/dynamics_speed.py", rows)


if __name__ == "__main__":
    pin_to_one_core()
    main()
