"""Is T̂ as sure as it should be on members that it has never seen?

    python benchmarks/calibration.py [acrobot acrobot-wide hiv compass] [--set validation] [--seeds 0 1] [--members 5]
    python benchmarks/calibration.py --table

A seed has a batch of its own (32 members × 150 episodes; acrobot 8 × 500) and an embedded model of it. A new member
has one episode: of `random` actions, of the family's policy without a belief (`warm-up`: Q(s, w) under the prior), or
of Q(s, w) under the belief (`amortised`). The belief about w_b after it predicts two other episodes, one random, one
amortised. By draws of w_b, W and the noise:

one step     share of numbers within 95 % intervals, log-likelihood per row, joint log-likelihood of pairs of rows (per
             row; rows of one pair share the draw of w_b and W), error of the mean (standardised state differences)
20 steps     the same intervals for open-loop rollouts with the real actions from every 20th state
50, 200      root mean squared error of the mean of such rollouts, in spreads of the states

Rows are written to results/calibration.json one by one; those that are there are not measured again.
"""

import argparse
import json
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from common import RESULTS, cached_batch, cached_model, save

from hipmdp.control.policies import BeliefActor, BeliefPolicy, repeat_theta
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief, Filter, new_filter
from hipmdp.dynamics.smooth import smoothed
from hipmdp.families.rollout import Memoryless
from hipmdp.families.scripted import random_policy
from hipmdp.imagination.contexts import Context
from hipmdp.imagination.environment import imagined_state
from hipmdp.settings.presets import adaptation_preset
from hipmdp.study.setup import parse_setup

FAMILIES: dict[str, tuple[str, Any, int]] = {
    "acrobot": ("acrobot", "train", 500),
    "acrobot-wide": ("acrobot:sd=0.25", 32, 150),
    "hiv": ("hiv", 32, 150),
    "compass": ("compass", 32, 150),
}
FIRST = ("random", "warm-up", "amortised")
OTHERS = ("random", "amortised")
DRAWS, WINDOW, LONG, PAIRS = 200, 20, (50, 200), 400
Z = 1.96


class Predictive(eqx.Module):
    """Draws of what is not known of a member after its first episode."""

    dynamics: Any
    contexts: Context
    noise: Any
    """Standard deviation of a step, standardised."""


def predictive(chosen: Filter, belief: Belief, key: Any) -> Predictive:
    """As evaluate and advise have it: the tempered belief, W from its posterior, the noise times the misfit."""
    weight_key, latent_key = jax.random.split(key)
    dynamics = chosen.dynamics
    contexts = Context(dynamics.draw_weights(weight_key, DRAWS)[:, None], belief.draw(latent_key, DRAWS))
    return Predictive(dynamics, contexts, jnp.sqrt(belief.misfit * dynamics.noise_variance()))


@eqx.filter_jit
def one_step(known: Predictive, features: Any) -> Any:
    """[draw, row, dimension]: predicted means."""

    def one(context: Context) -> Any:
        over_rows = jax.vmap(known.dynamics.change, in_axes=(None, 0, None))
        return over_rows(context.weights[0], features, context.latent)

    return jax.lax.map(one, known.contexts)


@eqx.filter_jit
def open_loop(known: Predictive, first: Any, actions: Any, key: Any) -> Any:
    """[draw, window, time, dimension]: states of rollouts with given actions; noise is drawn for every step."""

    def one(context: Context, key: Any) -> Any:
        def step(carry: Any, action: Any) -> Any:
            state, key = carry
            key, noise_key = jax.random.split(key)
            noise = known.noise * jax.random.normal(noise_key, known.noise.shape, jnp.float32)
            after = imagined_state(known.dynamics, context, state, action, jnp.zeros(0, jnp.float32), noise)
            return (after, key), after

        def window(state: Any, actions: Any, key: Any) -> Any:
            return jax.lax.scan(step, (state, key), actions)[1]

        return jax.vmap(window)(first, actions, jax.random.split(key, first.shape[0]))

    keys = jax.random.split(key, DRAWS)
    return jax.lax.map(lambda row: one(*row), (known.contexts, keys))


def judged_steps(known: Predictive, log: Transitions, rng: np.random.Generator) -> dict[str, float]:
    rows = known.dynamics.rows(log)
    means, target = np.asarray(one_step(known, rows.features), np.float64), np.asarray(rows.target, np.float64)
    noise = np.asarray(known.noise, np.float64)
    spread = np.sqrt(means.var(axis=0) + noise**2)
    gap = np.abs(target - means.mean(axis=0))
    fits = -0.5 * np.sum(((target - means) / noise) ** 2 + 2 * np.log(noise) + np.log(2 * np.pi), axis=-1)
    pairs = rng.integers(len(target), size=(PAIRS, 2))
    return {
        "holds": float(np.mean(gap < Z * spread)),
        "likelihood": float(np.mean(_log_mean(fits))),
        "pairs": float(np.mean(_log_mean(fits[:, pairs].sum(axis=-1))) / 2),
        "error": float(np.sqrt(np.mean(gap**2))),
    }


def _log_mean(fits: np.ndarray) -> np.ndarray:
    top = fits.max(axis=0)
    return top + np.log(np.mean(np.exp(fits - top), axis=0))


def windows(log: Transitions, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first states, actions, states after each step) of stretches of that length, one after the other."""
    count = len(log) // length
    rows = np.arange(count * length).reshape(count, length)
    return log.state[rows[:, 0]], log.action[rows], log.next_state[rows]


def judged_rollouts(known: Predictive, log: Transitions, key: Any) -> dict[str, float]:
    specification, found = known.dynamics.specification, {}
    scale = np.asarray(known.dynamics.scaling.state_scale)
    for length in (WINDOW, *LONG):
        first, actions, truth = windows(log, length)
        if len(first) == 0:
            continue
        arrays = jnp.asarray(specification.from_origin(first)), jnp.asarray(actions, jnp.int32)
        states = np.asarray(open_loop(known, *arrays, key), np.float64)
        # Angles are near the truth, whatever their turn.
        away = specification.wrap_angles(states - specification.from_origin(truth)[None])
        if length == WINDOW:
            low, high = np.quantile(away[:, :, -1], (0.025, 0.975), axis=0)
            tiny = 1e-6 * scale
            found["holds at 20"] = float(np.mean((low - tiny <= 0) & (high + tiny >= 0)))
        found[f"error at {length}"] = float(np.sqrt(np.mean((away[:, :, -1].mean(axis=0) / scale) ** 2)))
    return found


def measured(family: Any, model: Any, theta: Any, seed: int) -> dict[str, Any]:
    dynamics, key = model.dynamics, jax.random.key(seed)
    chosen = new_filter(dynamics, jax.random.key(1))
    weight = jnp.asarray(adaptation_preset("default", family.specification).information_weight, jnp.float32)
    acting = BeliefActor(chosen, model.latent_policy, weight)
    actors: dict[str, Any] = {
        "random": Memoryless(random_policy(family)),
        "warm-up": Memoryless(BeliefPolicy(model.latent_policy, chosen.start)),
        "amortised": acting,
    }

    def episode(way: str, number: int) -> Transitions:
        memory = chosen.start if way == "amortised" else None
        keys = jax.random.fold_in(key, number)[None]
        steps, _ = family.rollout_actors(actors[way], memory, keys, repeat_theta(theta, 1))
        return episodes_to_transitions(family, steps, theta)

    others = [episode(way, 100 + i) for i, way in enumerate(OTHERS)]
    result = {}
    for number, way in enumerate(FIRST):
        log = episode(way, number)
        known = predictive(chosen, smoothed(chosen, log), jax.random.fold_in(key, 50 + number))
        rng = np.random.default_rng(seed)
        result[way] = {
            name: {**judged_steps(known, other, rng), **judged_rollouts(known, other, jax.random.fold_in(key, 70))}
            for name, other in zip(OTHERS, others, strict=True)
        }
    return result


def kept() -> list[dict[str, Any]]:
    path = RESULTS / "calibration.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """Means over members, seeds and the two other episodes."""
    columns = ("holds", "holds at 20", "likelihood", "pairs", "error", *(f"error at {n}" for n in (WINDOW, *LONG)))
    lines = ["| family | first episode | " + " | ".join(columns) + " | runs |", "|---" * (3 + len(columns)) + "|"]
    for name in dict.fromkeys(row["family"] for row in rows):
        mine = [row for row in rows if row["family"] == name]
        for way in FIRST:
            parts = [part for row in mine for part in row[way].values()]
            cells = [np.mean([part[c] for part in parts if c in part] or [np.nan]) for c in columns]
            lines.append(f"| {name} | {way} | " + " | ".join(f"{c:.3f}" for c in cells) + f" | {len(mine)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--set", default="validation")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    for seed in () if asked.table else asked.seeds:
        for name in asked.families:
            text, instances, episodes = FAMILIES[name]
            setup = parse_setup(text)
            family = setup.make()
            batch = cached_batch(setup.family, dict(setup.options), instances, episodes, seed)
            model = cached_model(batch, f"calibration-{name}", "embedded", seed, policy=True)
            for instance in family.instances(asked.set)[: asked.members]:
                place = {"family": name, "seed": seed, "member": instance.label}
                if any(all(row[k] == v for k, v in place.items()) for row in kept()):
                    continue
                row = {**place, **measured(family, model, instance.theta, seed)}
                save("calibration", "python benchmarks/calibration.py", [*kept(), row])
                print(*place.values(), file=sys.stderr, flush=True)
    print(table([row for row in kept() if row["member"].startswith(asked.set)]))


if __name__ == "__main__":
    main()
