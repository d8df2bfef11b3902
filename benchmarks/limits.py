"""Limits and caution where a model's Q(s, w) acts under a belief: how often a limit is broken, and what it costs.

    python benchmarks/limits.py --members validation:0-9                # what settings were chosen by
    python benchmarks/limits.py --members test:0-4 final:0-4            # the claim
    python benchmarks/limits.py hiv --seeds 3 --members test:0-4        # more seeds: starts and draws anew
    python benchmarks/limits.py --acrobot-wide MODEL                    # a model file for the wide acrobot
    python benchmarks/limits.py --tables                                # the tables of what is there

Two episodes of `amortised` with each member, nothing is trained. Variants: free; within the limits of `LIMITS` (risk
0.05, 10 steps); the safest action always; caution 0.5 and 0.9; and, where --variants names it, "policy alone": limits
whose chances are those of the policy afterwards, without a way to give in.

A row is one member, seed and variant; rows are written to results/limits.json one by one, and those that are there for
the same model are not measured again. HIV's model comes with the package; that of the wide acrobot is made by
`hipmdp compare acrobot:sd=0.25 --out benchmarks/recipe`. `--tiny` runs one member of grid, into no file.

Broken: a limit is broken in any of the next 10 states after a decision. Intervals are of members drawn anew.
"""

import argparse
import json
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from common import RESULTS, save

import hipmdp
from hipmdp._random import root_key, stream
from hipmdp.adaptation.evaluate import interact
from hipmdp.adaptation.guarding import KEPT
from hipmdp.adaptation.latent_policy import Amortised
from hipmdp.adaptation.method import Setting
from hipmdp.control.caution import Chances
from hipmdp.control.guard import Guard, broken_within
from hipmdp.data.experience import steps_to_transitions
from hipmdp.families.instance import Instance
from hipmdp.families.instances import frozen_instance
from hipmdp.pretraining.resume import model_digest

EPISODES, REPEATS = 2, 2000
LIMITS = {
    "grid": hipmdp.Limits(("x>=-1.7",)),
    "hiv": hipmdp.Limits(("log10_V<=4.5",)),
    "acrobot-wide": hipmdp.Limits(("rate2<=5", "rate2>=-5")),
}
OPTIONS: dict[str, dict[str, Any]] = {"acrobot-wide": {"sd": 0.25}}
MODELS = {
    "grid": "grid",
    "hiv": "hiv",
    "acrobot-wide": str(Path(__file__).parent / "recipe/models/acrobot-sd0.25-train32-150-embedded-seed0.hipmdp"),
}
VARIANTS = ("free", "limits", "safest", "caution 0.5", "caution 0.9")
GUARDED = ("limits", "safest", "policy alone")


class PolicyAlone(Guard):
    """Chances as if nothing but the policy could act afterwards."""

    def chances(self, key: Any, state: Any, memory: Any, actions: int) -> Chances:
        """Of the first way alone."""
        return jax.tree.map(lambda part: part[0], self.ways(key, state, memory, actions))


class SafestAlways(Amortised):
    """No action is allowed at a risk below zero."""

    name = "safest_always"

    def initial(self, key: Any, model: hipmdp.Model) -> Any:
        """With such a guard."""
        state = super().initial(key, model)
        assert state.guard is not None
        return replace(state, guard=replace(state.guard, risk=-1.0))


class GuardedByPolicyAlone(Amortised):
    """Without a way to give in."""

    name = "policy_alone"

    def initial(self, key: Any, model: hipmdp.Model) -> Any:
        """With such a guard."""
        state = super().initial(key, model)
        own = {field.name: getattr(state.guard, field.name) for field in fields(Guard)}
        return replace(state, guard=PolicyAlone(**own))


METHODS = {"safest": SafestAlways, "policy alone": GuardedByPolicyAlone}


# One row.


def measured(
    family: Any, model: hipmdp.Model, instance: Instance, limits: hipmdp.Limits, variant: str, seed: int
) -> list[dict[str, Any]]:
    """The episodes of one variant with one member."""
    cautious = float(variant.split()[1]) if variant.startswith("caution") else 0.0
    guarded = limits if variant in GUARDED else None
    setting = Setting(family=family, theta=instance.theta, episodes=EPISODES, caution=cautious, limits=guarded)
    method = METHODS.get(variant, Amortised)(setting)
    key = root_key(seed)
    state = method.start(stream(key, "adaptation/start"), model, family.specification)
    found = []
    with family.interaction(instance.theta) as system:
        for number in range(EPISODES):
            begun = time.perf_counter()
            episode_key = stream(key, "adaptation/episode", number)
            state, steps = interact(method, state, system, family.horizon, episode_key)
            seconds = time.perf_counter() - begun
            state, info = method.after_episode(stream(key, "adaptation/after_episode", number), state)
            rows = steps_to_transitions(family.specification, steps, episode=number, thetas=state.instance_data.thetas)
            broken = broken_within(limits, family.specification, rows.next_state)
            value = float(np.sum(rows.reward, dtype=np.float64))
            row = {"score": instance.score(value), "decisions": len(broken), "broken": int(broken.sum())}
            row |= {"milliseconds": 1e3 * seconds / len(broken), **{name: info[name] for name in KEPT if name in info}}
            found.append(row)
    return found


# All rows.


def members(texts: list[str]) -> list[str]:
    """validation:0-2 test:4 as the labels of members."""
    labels = []
    for text in texts:
        name, _, numbers = text.partition(":")
        first, _, last = numbers.partition("-")
        labels += [f"{name}:{number}" for number in range(int(first), int(last or first) + 1)]
    return labels


def kept() -> dict[str, dict[str, Any]]:
    path = RESULTS / "limits.json"
    return json.loads(path.read_text())["rows"] if path.exists() else {}


def measure(name: str, path: str, labels: list[str], seeds: int, variants: list[str], *, store: bool) -> None:
    family, model = hipmdp.make(name.partition("-")[0], **OPTIONS.get(name, {})), hipmdp.load(path)
    limits, digest = LIMITS[name], model_digest(model)[:12]
    for seed in range(seeds):
        for label in labels:
            instance = frozen_instance(family, label)
            for variant in variants:
                row_name, rows = f"{name} {label} {seed} {variant}", kept() if store else {}
                known = rows.get(row_name, {})
                if (known.get("model"), known.get("limits")) == (digest, str(limits)):
                    continue
                episodes = measured(family, model, instance, limits, variant, seed)
                row = {"family": name, "member": label, "seed": seed, "variant": variant, "model": digest,
                       "limits": str(limits), "episodes": episodes}  # fmt: skip
                told = [
                    f"{e['score']:.2f} ({e['broken']}/{e['decisions']}, {e['milliseconds']:.0f} ms)" for e in episodes
                ]
                print(row_name, *told, file=sys.stderr, flush=True)
                if store:
                    save("limits", "python benchmarks/limits.py", {**kept(), row_name: row})


# The tables.


def interval(tops: list[float], bottoms: list[float]) -> str:
    """A share of all decisions, with its 95 % interval over members drawn anew."""
    rows = np.random.default_rng(0).integers(0, len(tops), (REPEATS, len(tops)))
    top, bottom = np.asarray(tops, float), np.asarray(bottoms, float)
    if bottom.sum() == 0:
        return "—"
    drawn = top[rows].sum(axis=1) / np.maximum(bottom[rows].sum(axis=1), 1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{top.sum() / bottom.sum():.1%} [{low:.1%}, {high:.1%}]"


def by_member(rows: list[dict[str, Any]], episode: int, name: str) -> list[float]:
    """A number of an episode, summed (scores: averaged) over the seeds of each member."""
    labels = sorted({row["member"] for row in rows})
    values = [[row["episodes"][episode].get(name, 0) for row in rows if row["member"] == label] for label in labels]
    return [float(np.mean(own) if name in ("score", "milliseconds") else np.sum(own)) for own in values]


def tables(rows: list[dict[str, Any]]) -> None:
    head = "family | members | variant | episode | broken after allowed | none allowed | broken after any | score"
    head += " | 10 % quantile of scores | ms per decision"
    print(f"| {head} |\n" + "|---" * 10 + "|")
    for name in sorted({row["family"] for row in rows}):
        for kind in ("validation", "test", "final"):
            for variant in (*VARIANTS, "policy alone"):
                own = [row for row in rows if (row["family"], row["variant"]) == (name, variant)]
                own = [row for row in own if row["member"].startswith(kind)]
                for episode in range(EPISODES) if own else ():
                    print("| " + " | ".join(line(name, kind, variant, own, episode)) + " |")


def line(name: str, kind: str, variant: str, rows: list[dict[str, Any]], episode: int) -> list[str]:
    decisions, allowed, broken, any_broken, scores, cost = (
        by_member(rows, episode, of) for of in ("decisions", *KEPT[1:], "broken", "score", "milliseconds")
    )
    has_guard = variant in GUARDED
    none = [all_ - some for all_, some in zip(decisions, allowed, strict=True)]
    return [
        name, kind, variant, str(episode + 1), interval(broken, allowed) if has_guard else "—",
        interval(none, decisions) if has_guard else "—", interval(any_broken, decisions),
        f"{np.mean(scores):.3f}", f"{np.quantile(scores, 0.1):.3f}", f"{np.median(cost):.0f}",
    ]  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=["hiv", "acrobot-wide"])
    parser.add_argument("--members", nargs="+", default=["validation:0-9"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--hiv", default=MODELS["hiv"])
    parser.add_argument("--acrobot-wide", default=MODELS["acrobot-wide"])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--tables", action="store_true")
    asked = parser.parse_args()
    if asked.tiny:
        measure("grid", "grid", ["test:0"], 1, list(VARIANTS), store=False)
    elif not asked.tables:
        models = {**MODELS, "hiv": asked.hiv, "acrobot-wide": asked.acrobot_wide}
        for chosen in asked.families:
            measure(chosen, models[chosen], members(asked.members), asked.seeds, asked.variants, store=True)
    if not asked.tiny:
        tables(list(kept().values()))
