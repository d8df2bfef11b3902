"""Figure 6 of the paper: the error of T̂ over the first ten episodes of a new instance.

    python benchmarks/prediction_error.py [grid hiv hiv-controlled]

All four models see the same ten episodes of each instance: those of a model-free learner (ε-greedy from 1, decay
0.995), nearly all random; in `hiv-controlled` only the first is, and the others follow the patient's best known
treatment with 20 % random actions, as under an agent that has learned from the first episode. After episodes 0, 1, 2, 4
and 7 the model is updated on all episodes so far (infer w_b, then tune W and w_b; `average` and `scratch` tune W); the
error is the mean length of the error vector on an episode, before it enters an update, in standardised units.
`unadapted` is the pre-trained model on the same episodes. grid: 2 seeds (batch of 2 × 500 episodes) × both classes.
hiv: 10 unseen test patients, trained on train32 × 150 episodes.
"""

import json
import sys
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from common import PAPER_SIZED, RESULTS, cached_batch, cached_model, mean_and_interval, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import hipmdp
from hipmdp._random import root_key, stream
from hipmdp.control.policies import repeat_theta
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.dynamics.quality import quality
from hipmdp.families.drawing import BLUE, FAINT, GREEN, ORANGE, PURPLE
from hipmdp.from_logs.tune import tune_model

METHODS = {"embedded": BLUE, "linear": ORANGE, "average": GREEN, "scratch": PURPLE}
EPISODES = 10
UPDATES = (0, 1, 2, 4, 7)
"""The episodes after which the models are updated."""
# (family, training set, episodes per training instance, seeds, test instances)
CASES: dict[str, tuple[str, Any, int, int, int]] = {
    "grid": ("grid", "train", 500, 2, 2),
    "hiv": ("hiv", "train32", 150, 1, 10),
    "hiv-controlled": ("hiv", "train32", 150, 1, 10),
}


class Treatment(eqx.Module):
    """A schedule with 20 % random actions."""

    actions: Any
    count: int

    def __call__(self, key: Any, state: Any, time: Any) -> Any:
        chance, choice = jax.random.split(key)
        other = jax.random.randint(choice, (), 0, self.count, jnp.int32)
        return jnp.where(jax.random.uniform(chance) < 0.2, other, self.actions[time])


def lived(family: Any, instance: hipmdp.Instance, seed: int, controlled: bool) -> hipmdp.Transitions:
    """The ten episodes that all models see."""
    log = hipmdp.collect(family, [instance.theta], episodes=EPISODES, seed=1000 + seed, quiet=True)
    if not controlled:
        return log
    actions = jnp.asarray([int(a) for a in instance.source["actions"]], jnp.int32)
    policy = Treatment(actions, family.specification.action_count)
    keys = jax.random.split(jax.random.key(seed), EPISODES)
    treated = family.rollouts(policy, keys, repeat_theta(instance.theta, EPISODES))
    later = episodes_to_transitions(family, treated, instance.theta)
    return log.select(log.episode == 0).extended(later.select(later.episode > 0))


def errors_on(model: hipmdp.Model, log: hipmdp.Transitions, seed: int) -> tuple[list[float], list[float], float]:
    """(error on each episode after updates on those before it, of the unadapted model, coverage of 95 % intervals)."""
    dynamics = model.need_dynamics("This benchmark")
    mean_latent = dynamics.latent_prior.mean
    adapted, unadapted, coverage = [], [], []
    current, latent = dynamics, mean_latent
    for i in range(EPISODES):
        episode = log.select(log.episode == i)
        key = stream(root_key(seed), "adaptation/model_error", i)
        measured = quality(current, episode, latent, key=key)
        adapted.append(measured.error)
        coverage.append(measured.coverage[-1])
        unadapted.append(quality(dynamics, episode, mean_latent, key=key).error)
        if i in UPDATES:
            tuned, latent = tune_model(model, log.select(log.episode <= i), seed)
            current = tuned.need_dynamics("This benchmark")
    return adapted, unadapted, float(np.mean(coverage[1:]))


def measure(label: str) -> list[dict[str, Any]]:
    name, training, per_instance, seeds, tests = CASES[label]
    family = hipmdp.make(name)
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        batch = cached_batch(name, {}, training, per_instance, seed)
        cache, config = f"small-{name}-{training}-{per_instance}", hipmdp.DynamicsConfig(**PAPER_SIZED[name])
        models = {method: cached_model(batch, cache, method, seed, config=config) for method in METHODS}
        for instance in family.instances("test")[:tests]:
            log = lived(family, instance, seed, label == "hiv-controlled")
            for method, model in models.items():
                begin = time.perf_counter()
                adapted, unadapted, coverage = errors_on(model, log, seed)
                rows.append(
                    {
                        "case": label, "seed": seed, "instance": instance.label, "method": method, "error": adapted,
                        "unadapted": unadapted, "coverage95": coverage,
                        "seconds_per_update": (time.perf_counter() - begin) / EPISODES,
                    }
                )  # fmt: skip
            print(
                label, seed, instance.label, {r["method"]: round(float(np.mean(r["error"][1:])), 3) for r in rows[-4:]}
            )
            sys.stdout.flush()
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means with 95 % intervals over instances and seeds: before and after the first update, and over the run."""
    result: dict[str, Any] = {}
    for method in METHODS:
        own = [r for r in rows if r["method"] == method]
        table, before = np.asarray([r["error"] for r in own]), np.asarray([r["unadapted"] for r in own])
        result[method] = {
            "before_first_update": mean_and_interval(before[:, 1]),
            "after_first_update": mean_and_interval(table[:, 1]),
            "episodes_1_to_9": mean_and_interval(table[:, 1:].mean(axis=1)),
            "coverage95": mean_and_interval([r["coverage95"] for r in own]),
        }
    embedded = {(r["seed"], r["instance"]): np.mean(r["error"][1:]) for r in rows if r["method"] == "embedded"}
    for method in ("linear", "average", "scratch"):
        others = {(r["seed"], r["instance"]): np.mean(r["error"][1:]) for r in rows if r["method"] == method}
        result[method]["minus_embedded"] = mean_and_interval([others[k] - embedded[k] for k in embedded])
    return result


def draw(label: str, rows: list[dict[str, Any]]) -> None:
    figure = Figure(figsize=(4.6, 3.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for method, colour in METHODS.items():
        table = np.asarray([r["error"] for r in rows if r["method"] == method])
        stats = [mean_and_interval(table[:, i]) for i in range(EPISODES)]
        x = np.arange(EPISODES)
        axes.plot(x, [s["mean"] for s in stats], "o-", color=colour, ms=3.5, lw=1.4, label=method)
        axes.fill_between(x, [s["low"] for s in stats], [s["high"] for s in stats], color=colour, alpha=0.18, lw=0)
    axes.set(yscale="log", xlabel="episode", ylabel="error before its update", title=label)
    axes.grid(color=FAINT, lw=0.4, alpha=0.6)
    axes.legend(fontsize=8, frameon=False)
    figure.savefig(RESULTS / f"prediction_error_{label}.png")


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(CASES)
    path = RESULTS / "prediction_error.json"
    for label in chosen:
        rows = measure(label)
        stored = json.loads(path.read_text())["rows"] if path.exists() else {"runs": [], "summary": {}}
        stored["runs"] = [r for r in stored["runs"] if r["case"] != label] + rows
        stored["summary"][label] = summary(rows)
        for method, facts in stored["summary"][label].items():
            print(
                f"{label:16}{method:10}"
                + "  ".join(f"{k} {v['mean']:.3f} [{v['low']:.3f}, {v['high']:.3f}]" for k, v in facts.items())
            )
        draw(label, rows)
        save("prediction_error", "python benchmarks/prediction_error.py", stored)
