"""How fast is a new instance known, how honest is the belief, and what does a step cost?

    python benchmarks/identification.py [grid acrobot acrobot-wide hiv] [--seed 0]

With the study's amortised models (`hipmdp compare … --methods amortised`) of one seed, for acrobot with the model that
comes with the package, on test:0 to test:9 (grid: both classes, five starts each). Three ways to act in the first
episode: at random; informed (the action that is expected to tell most about w_b); amortised (value and curiosity). The
belief follows each. Errors are of T̂ with the belief's w on rows of two other episodes, one random and one lived by the
amortised policy.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from common import RESULTS, pin_to_one_core, save

import hipmdp
from hipmdp.control.policies import BeliefActor, repeat_theta
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief, Filter, new_filter
from hipmdp.dynamics.standardise import state_changes
from hipmdp.families.protocol import BaseFamily, Theta
from hipmdp.settings.presets import adaptation_preset
from hipmdp.study.setup import parse_setup

STUDY = Path(__file__).parent / "study" / "models"
FAMILIES: dict[str, tuple[str, str | None]] = {
    "grid": ("grid", "grid-train-500"),
    "acrobot": ("acrobot", None),
    "acrobot-wide": ("acrobot:sd=0.25", "acrobot-sd0.25-train32-150"),
    "hiv": ("hiv", "hiv-train32-150"),
}
STRANGE: dict[str, dict[str, float]] = {
    # Far outside the priors: masses and lengths of 2 where they are 1 ± 0.1 or 1 ± 0.25; rates far off together.
    "acrobot": {"l1": 2.0, "m2": 2.0},
    "acrobot-wide": {"l1": 2.0, "m2": 2.0},
    "hiv": {"lambda1": 3e4, "k1": 2.4e-6, "bE": 0.6, "m1": 5e-5},
}
"""Systems unlike all that were seen."""
INSTANCES, WAYS = 10, ("random", "informed", "amortised")
INFORMED = 1e9
"""Curiosity beside which values do not count."""
HOLDS = 1.96
MARGIN = 1.1


class Random(eqx.Module):
    """Any action; the belief is followed all the same."""

    actor: BeliefActor

    def act(self, key: Any, state: Any, time: Any, memory: Belief) -> Any:
        count = self.actor.filter.dynamics.specification.action_count
        return jax.random.randint(key, (), 0, count, jnp.int32)

    def observe(self, memory: Belief, state: Any, action: Any, next_state: Any) -> Belief:
        return self.actor.observe(memory, state, action, next_state)


@eqx.filter_jit
def follow(told: Filter, state: Any, action: Any, change: Any) -> tuple[Belief, Any]:
    """The belief after every row, and |error| / sd of each row as it was foretold."""

    def body(belief: Belief, row: Any) -> tuple[Belief, tuple[Belief, Any]]:
        foretold = told.predict(belief, row[0], row[1])
        gap = jnp.abs(told.dynamics.scaling.standardised(row[2]) - foretold.mean) / jnp.sqrt(foretold.variance)
        belief = told.update(belief, *row)
        return belief, (belief, gap)

    return jax.lax.scan(body, told.start, (state, action, change))[1]


@eqx.filter_jit
def errors(told: Filter, latents: Any, features: Any, target: Any) -> Any:
    """Mean L2 error of the mean prediction for every latent."""
    weights = told.dynamics.posterior.mean

    def one(latent: Any) -> Any:
        means = jax.vmap(told.dynamics.change, in_axes=(None, 0, None))(weights, features, latent)
        return jnp.mean(jnp.sqrt(jnp.sum((means - target) ** 2, axis=-1)))

    return jax.lax.map(one, latents)


def episode(family: BaseFamily, actor: Any, theta: Theta, seed: int) -> Transitions:
    start = actor.filter.start if isinstance(actor, BeliefActor) else actor.actor.filter.start
    lived, _ = family.rollout_actors(actor, start, jax.random.key(seed)[None], repeat_theta(theta, 1))
    return episodes_to_transitions(family, lived, theta)


def rows_of(log: Transitions) -> tuple[Any, Any, Any]:
    return jnp.asarray(log.state), jnp.asarray(log.action), jnp.asarray(state_changes(log), jnp.float32)


def one_instance(family: BaseFamily, actors: dict[str, Any], theta: Theta, seed: int) -> dict[str, Any]:
    told: Filter = actors["amortised"].filter
    others = [episode(family, actors[way], theta, seed + 500) for way in ("random", "amortised")]
    held = [told.dynamics.rows(log) for log in others]
    features, target = (jnp.concatenate([getattr(h, name) for h in held]) for name in ("features", "target"))
    result: dict[str, Any] = {}
    for way, actor in actors.items():
        log = episode(family, actor, theta, seed)
        beliefs, foretold = follow(told, *rows_of(log))
        latents = jax.vmap(lambda b: b.best)(beliefs)
        along = np.asarray(errors(told, latents, features, target), np.float64)
        last = jax.tree.map(lambda leaf: leaf[-1], beliefs)
        later = [_holds(told, last, other) for other in others]
        result[way] = {
            "rows": len(log),
            "final_error": float(along[-1]),
            "transitions": int(np.max(np.flatnonzero(along > MARGIN * along[-1]), initial=-1)) + 2,
            "foretold": float(np.mean(np.asarray(foretold) < HOLDS)),
            "later": float(np.mean(np.concatenate(later))),
            "misfit": float(jnp.mean(last.misfit)),
            "spread": [float(jnp.mean(jax.tree.map(lambda leaf, t=t: leaf[t], beliefs).spread)) for t in (0, -1)],
        }  # fmt: skip
    return result


def _holds(told: Filter, belief: Belief, log: Transitions) -> np.ndarray:
    state, action, change = rows_of(log)
    foretold = _predict(told, belief, state, action)
    target = np.asarray(jax.vmap(told.dynamics.scaling.standardised)(change))
    return np.abs(target - np.asarray(foretold.mean)) / np.sqrt(np.asarray(foretold.variance)) < HOLDS


@eqx.filter_jit
def _predict(told: Filter, belief: Belief, state: Any, action: Any) -> Any:
    return jax.vmap(lambda s, a: told.predict(belief, s, a))(state, action)


def step_milliseconds(actor: BeliefActor, theta: Theta, family: BaseFamily) -> float:
    """Act, and learn from what came: as a caller in real life does, one step at a time."""
    act = eqx.filter_jit(
        lambda actor, state, belief: actor.act(jax.random.key(0), state, jnp.zeros((), jnp.int32), belief)
    )
    observe = eqx.filter_jit(lambda actor, belief, *row: actor.observe(belief, *row))
    state, belief = family.first_states(jax.random.key(0)[None], theta)[0], actor.filter.start
    times = []
    for _ in range(200):
        begin = time.perf_counter()
        action = act(actor, state, belief)
        belief = observe(actor, belief, state, action, state)
        jax.block_until_ready(belief)
        times.append(time.perf_counter() - begin)
    return float(np.median(times) * 1e3)


def measure(name: str, seed: int) -> dict[str, Any]:
    text, label = FAMILIES[name]
    family = parse_setup(text).make()
    model = hipmdp.load(text if label is None else STUDY / f"{label}-amortised-seed{seed}.hipmdp")
    assert model.dynamics is not None
    assert model.latent_policy is not None
    told = new_filter(model.dynamics, jax.random.key(0))
    information_weight = adaptation_preset("default", family.specification).information_weight
    by_value, informed = (
        BeliefActor(told, model.latent_policy, jnp.asarray(c, jnp.float32)) for c in (information_weight, INFORMED)
    )
    actors = {"random": Random(by_value), "informed": informed, "amortised": by_value}
    instances = family.instances("test")[:INSTANCES]
    repeats = 5 if len(instances) < INSTANCES else 1
    runs = [one_instance(family, actors, i.theta, 7 * r + 11) for i in instances for r in range(repeats)]
    strange = None
    if name in STRANGE:
        strange = one_instance(family, actors, family.theta(STRANGE[name]), 11)
    return {
        "seed": seed,
        "runs": runs,
        "strange": strange,
        "step_milliseconds": step_milliseconds(by_value, instances[0].theta, family),
    }


def table(results: dict[str, Any]) -> str:
    lines = [
        "| family | way | transitions needed | ratio | final error | 95 % intervals hold: on the way | later |",
        "|---" * 7 + "|",
    ]
    for name, told in results.items():
        for way in WAYS:
            mine = [run[way] for run in told["runs"]]
            need = np.mean([m["transitions"] for m in mine])
            ratio = np.mean([run["random"]["transitions"] for run in told["runs"]]) / need
            cells = [np.mean([m[key] for m in mine]) for key in ("final_error", "foretold", "later")]
            numbers = f"{cells[0]:.3f} | {cells[1]:.3f} | {cells[2]:.3f}"
            lines.append(f"| {name} | {way} | {need:.1f} | {ratio:.2f} | {numbers} |")
    lines += [
        "",
        "| family | spread of w after 1 row | at the end | misfit | of a strange system: at the end | misfit |",
    ]
    lines.append("|---" * 6 + "|")
    for name, told in results.items():
        mine = [run["random"] for run in told["runs"]]
        cells = [np.mean([m["spread"][0] for m in mine]), np.mean([m["spread"][1] for m in mine])]
        cells.append(np.mean([m["misfit"] for m in mine]))
        odd = told["strange"]
        more = "| |" if odd is None else f"| {odd['random']['spread'][1]:.3f} | {odd['random']['misfit']:.2f} |"
        lines.append(f"| {name} | " + " | ".join(f"{c:.3f}" for c in cells) + f" {more}")
    costs = ", ".join(f"{name} {told['step_milliseconds']:.2f} ms" for name, told in results.items())
    return "\n".join([*lines, "", f"A step, inference included, on one core: {costs}."])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    pin_to_one_core()
    path = RESULTS / "identification.json"
    results = json.loads(path.read_text())["rows"] if path.exists() else {}
    for name in asked.families:
        results[name] = measure(name, asked.seed)
        save("identification", "python benchmarks/identification.py", results)
    print(table(results))
