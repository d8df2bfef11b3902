"""Pre-training on the paper's batch (5 HIV patients × 500 episodes × 200 steps): `python benchmarks/hiv_pretrain.py`

Time on all cores with compilation, peak memory, error and coverage on unseen patients (test:0 … 11): w_b inferred from
one random episode, measured on another; and the bound, with the true θ (12 varied rates, standardised) as the latent.
"""

import resource
import time
from dataclasses import replace
from typing import Any

import jax
from common import PAPER_SIZED, cached_batch, mean_and_interval, save

import hipmdp
from hipmdp.control.policies import repeat_theta
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.dynamics.fit_family import fit_dynamics
from hipmdp.dynamics.infer import infer_latent, tune_model
from hipmdp.dynamics.oracle import oracle_latents, training_latents
from hipmdp.dynamics.quality import quality
from hipmdp.families.scripted import random_policy

PATIENTS = 12


def random_episodes(family: Any, theta: Any) -> list[hipmdp.Transitions]:
    keys = jax.random.split(jax.random.key(7), 2)
    log = episodes_to_transitions(family, family.rollouts(random_policy(family), keys, repeat_theta(theta, 2)), theta)
    return [log.select(log.episode == i) for i in (0, 1)]


def unseen(dynamics: Any, family: Any, oracle: Any = None) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for instance in family.instances("test")[:PATIENTS]:
        first, second = random_episodes(family, instance.theta)
        latent_key, tune_key, quality_key = jax.random.split(jax.random.key(0), 3)
        if oracle is not None:
            measured = quality(dynamics, second, oracle(instance.theta), key=quality_key)
            found.setdefault("true θ as latent", []).append(measured)
            continue
        latent = infer_latent(dynamics, first, key=latent_key).value
        tuned = tune_model(dynamics, first, key=tune_key, latent=latent)
        for name, model, w in (
            ("mean latent", dynamics, dynamics.latent_prior.mean),
            ("inferred latent", dynamics, latent),
            ("tuned", tuned.dynamics, tuned.latent),
        ):
            found.setdefault(name, []).append(quality(model, second, w, key=quality_key))
    return {
        name: {
            "error": mean_and_interval([q.error for q in values]),
            "log_likelihood": mean_and_interval([q.log_likelihood for q in values]),
            **{
                f"coverage{level}": mean_and_interval([q.coverage[i] for q in values])
                for i, level in enumerate((50, 80, 95))
            },
        }
        for name, values in found.items()
    }


if __name__ == "__main__":
    family = hipmdp.make("hiv")
    results = []
    for label, instances, episodes in (("5 patients x 500", 5, 500), ("train32 x 150", "train32", 150)):
        batch = cached_batch("hiv", {}, instances, episodes, 0)
        begin = time.perf_counter()
        config = hipmdp.DynamicsConfig(**PAPER_SIZED["hiv"])
        model = hipmdp.pretrain(batch, seed=0, config=config)
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        row: dict[str, Any] = {
            "training": label,
            "transitions": len(batch),
            "seconds": seconds,
            "peak_gb": peak,
            **model.metrics,
        }
        print(f"{label}: {seconds:.0f} s, {peak:.2f} GB at most so far, {model}", flush=True)
        row["unseen"] = unseen(model.dynamics, family)
        oracle = oracle_latents(batch.thetas)
        wide = replace(config, latent_size=len(oracle.names))
        bound = fit_dynamics(batch, wide, key=jax.random.key(3), latents=training_latents(oracle, batch.thetas))
        row["unseen"] |= unseen(bound, family, oracle.latent)
        for name, facts in row["unseen"].items():
            print(f"  {name:18}" + "  ".join(f"{k} {v['mean']:.3f}" for k, v in facts.items()), flush=True)
        results.append(row)
        save("hiv_pretrain", "python benchmarks/hiv_pretrain.py", results)
