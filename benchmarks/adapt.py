"""Algorithm 1 on the test instances: how good is the policy after one and after two episodes, and what it costs.

    python benchmarks/adapt.py                          # everything: hours
    python benchmarks/adapt.py hiv grid --jobs 2        # some settings
    python benchmarks/adapt.py hiv --parts all dynamics # only some rows of the diagnosis

Every (setting, part, instance, seed) is one small file in benchmarks/batches/adapt, so that it can be stopped and
started again; the table is written to results/adapt.json from all that are there. Parts: `all` (everything learned),
`latent` (the true θ as the latent), `dynamics` (imagining in the true dynamics), `reward` (grid: the true reward;
acrobot: the learned one, where `all` is given R).
"""

import argparse
import json
import os
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
import numpy as np
from common import RESULTS, cached_batch, cached_model, iqm_and_interval, keep_better, mean_and_interval, save

import hipmdp
from hipmdp._files import atomic_write
from hipmdp.control.policies import Greedy
from hipmdp.families.instances import frozen_instance
from hipmdp.families.navigation import in_goal
from hipmdp.families.rollout import rollout
from hipmdp.study.instance_search.search import measured

WORK = Path(__file__).parent / "batches" / "adapt"


@dataclass(frozen=True)
class Setting:
    """A family, what it is trained on, and whom it meets."""

    name: str
    options: dict[str, Any]
    training: Any
    episodes: int
    """Training episodes per instance."""
    seeds: tuple[int, ...]
    """Each with its own batch and models on grid; elsewhere one batch and model."""
    instances: tuple[Any, ...]
    parts: tuple[str, ...]


TEST = tuple(f"test:{i}" for i in range(20))
EVERYTHING = ("all", "latent", "dynamics")
SETTINGS = {
    "grid": Setting("grid", {}, "train", 500, tuple(range(10)), ("test:0", "test:1"), (*EVERYTHING, "reward")),
    "acrobot": Setting("acrobot", {}, "train", 500, (0,), TEST, (*EVERYTHING, "reward")),
    "acrobot-wide": Setting("acrobot", {"sd": 0.25}, "train32", 150, (0,), TEST, (*EVERYTHING, "reward")),
    "hiv": Setting("hiv", {}, "train32", 150, (0,), (*TEST, "baseline"), EVERYTHING),
    "hiv-5": Setting("hiv", {}, 5, 500, (0,), (*TEST, "baseline"), ("all",)),
}


def model_for(setting: Setting, seed: int, part: str) -> Any:
    """The pre-trained model; every part but `latent` shares it."""
    own = seed if setting.name == "grid" else 0
    batch = cached_batch(setting.name, setting.options, setting.training, setting.episodes, own)
    label = "-".join(map(str, (setting.name, *setting.options.values(), setting.training, setting.episodes)))
    return cached_model(batch, label, "embedded", own, latents="true" if part == "latent" else "learned")


def path_of(label: str, part: str, instance: str, seed: int, preset: str) -> Path:
    return WORK / f"{label}-{part}-{instance.replace(':', '')}-{seed}-{preset}.json"


def run_one(label: str, part: str, instance: str, seed: int, preset: str) -> None:
    """One run of two episodes, and what its imagination is like on grid."""
    setting = SETTINGS[label]
    family = hipmdp.make(setting.name, **setting.options)
    model = model_for(setting, seed, part)
    reward = {"grid": "true", "acrobot": "learned"}.get(setting.name, "given") if part == "reward" else "given"
    imagine_in = "environment" if part == "dynamics" else "model"
    theta = {} if instance == "baseline" else instance
    run = hipmdp.learn_policy(model, family, theta, 2, seed, None, reward, preset, imagine_in=imagine_in, quiet=True)
    record: dict[str, Any] = {
        "instance": instance, "seed": seed, "returns": run.returns.tolist(), "success": run.success.tolist(),
        "learning_returns": run.learning_returns.tolist(), "seconds": run.seconds.tolist(),
        "model_error": run.model_error.tolist(),
        "error_on_held_out_episodes": model.metrics["error_on_held_out_episodes"],
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }  # fmt: skip
    if instance != "baseline":
        # On the starts on which all stored returns are measured: should it be the best one known.
        assert run.network is not None
        record["measured"] = measured(family, run.theta, Greedy(run.network))
    if setting.name == "grid" and part in ("all", "latent"):
        record["imagination"] = through_the_wall(family, run)
    WORK.mkdir(exist_ok=True, parents=True)
    with atomic_write(path_of(label, part, instance, seed, preset)) as temporary:
        temporary.write_text(json.dumps(record))


def through_the_wall(family: Any, run: Any) -> dict[str, float]:
    """Imagined episodes of the learned policy, a fifth of its actions random: what does imagination get wrong?"""
    environment, contexts = run.imagination
    count = jax.tree.leaves(contexts)[0].shape[0]

    def policy(key: Any, state: Any, time: Any) -> Any:
        explore, which = jax.random.split(key)
        random = jax.random.randint(which, (), 0, 4, "int32")
        return jax.numpy.where(jax.random.uniform(explore) < 0.2, random, Greedy(run.network)(key, state, time))

    def one(key: Any, row: Any) -> Any:
        episode = rollout(environment, policy, key, jax.tree.map(lambda leaf: leaf[row], contexts))
        true = jax.vmap(lambda s, a: family.step(key, s, a, run.theta))(episode.steps.state, episode.steps.action)
        return episode, true.reward, true.state

    keys = jax.random.split(jax.random.key(0), 200)
    episode, reward, state = jax.jit(jax.vmap(one))(keys, jax.numpy.arange(200) % count)
    valid, imagined = np.asarray(episode.valid), np.asarray(episode.steps.reward)
    entered = valid & (imagined > 0)
    really = np.asarray(jax.vmap(jax.vmap(in_goal))(state))
    still, truly_still = (np.asarray(r) < -1 for r in (imagined, reward))
    return {
        "goals_imagined": int(entered.sum()),
        "goals_that_are_walls": float(np.mean(~really[entered])) if entered.any() else float("nan"),
        "still_imagined_wrongly": float(np.mean((still & ~truly_still)[valid])),
        "still_not_imagined": float(np.mean((~still & truly_still)[valid])),
    }


def summary(label: str, preset: str) -> list[dict[str, Any]]:
    """One row per part, from all files that are there."""
    rows = []
    setting = SETTINGS[label]
    family = hipmdp.make(setting.name, **setting.options)
    for part in setting.parts:
        wanted = [path_of(label, part, i, s, preset) for s in setting.seeds for i in setting.instances]
        found = [json.loads(path.read_text()) for path in wanted if path.exists()]
        known = [r for r in found if r["instance"] != "baseline"]
        if not known:
            continue
        for record in known:
            instance = frozen_instance(family, record["instance"])
            record["scores"] = [instance.score(value) for value in record["returns"]]
            source = {"method": f"adapt-{part}", "seed": record["seed"], "training": setting.training}
            keep_better(family, instance, {**record["measured"], **source})
        row: dict[str, Any] = {"setting": label, "part": part, "preset": preset, "runs": len(known)}
        for episode in (0, 1):
            after = {
                "return": mean_and_interval([r["returns"][episode] for r in known]),
                "success": mean_and_interval([r["success"][episode] for r in known]),
                "score": mean_and_interval([r["scores"][episode] for r in known]),
                "score_iqm": iqm_and_interval([[r["scores"][episode] for r in known]])["iqm"],
            }
            row[f"after_{episode + 1}"] = after
        row["seconds"] = float(np.median([r["seconds"][0] for r in known]))
        row["seconds_most"] = float(np.max([r["seconds"][0] for r in known]))
        row["peak_gb"] = float(np.max([r["peak_gb"] for r in known]))
        row["baseline"] = [r for r in found if r["instance"] == "baseline"]
        row["imagination"] = [r["imagination"] for r in found if "imagination" in r]
        row["each"] = known
        rows.append(row)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        for name in ("after_1", "after_2"):
            a = row[name]
            print(
                f"{row['setting']:13}{row['part']:9}{row['preset']:8}{name:8} n {row['runs']:3}  "
                f"return {a['return']['mean']:10.4g}  success {a['success']['mean']:.3f}  "
                f"score {a['score']['mean']:.3f} [{a['score']['low']:.3f}, {a['score']['high']:.3f}] "
                f"IQM {a['score_iqm']:.3f}  "
                f"{row['seconds']:.0f} s (most {row['seconds_most']:.0f})",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--parts", nargs="*")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--instances", type=int, help="only the first so many")
    parser.add_argument("--seeds", type=int, help="likewise")
    given = parser.parse_args()
    tasks = [
        (label, part, instance, seed, given.preset)
        for label in given.settings
        for part in given.parts or SETTINGS[label].parts
        for seed in SETTINGS[label].seeds[: given.seeds]
        for instance in SETTINGS[label].instances[: given.instances]
    ]
    missing = [task for task in tasks if not path_of(*task).exists()]
    # Models first: two processes would fit the same one twice.
    for label, seed, part in sorted({(t[0], t[3], "latent" if t[1] == "latent" else "all") for t in missing}):
        model_for(SETTINGS[label], seed, part)
    begin = time.perf_counter()
    if given.jobs == 1:
        for done, task in enumerate(missing, 1):
            run_one(*task)
            print(f"{done}/{len(missing)} {task} {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    else:
        threads = " --xla_cpu_multi_thread_eigen=false"
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + threads
        with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(run_one, *task): task for task in missing}
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                text = f"{done}/{len(missing)} {futures[future]} {time.perf_counter() - begin:.0f} s"
                print(text, file=sys.stderr, flush=True)
    rows = [row for label in SETTINGS for preset in ("default", "paper") for row in summary(label, preset)]
    show(rows)
    save("adapt", "python benchmarks/adapt.py", rows)
    print(f"{RESULTS / 'adapt.json'}")


if __name__ == "__main__":
    main()
