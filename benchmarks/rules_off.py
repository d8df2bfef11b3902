"""Each rule of the recipe switched off alone, its old constant in its place: what that costs on validation members.

    python benchmarks/rules_off.py                        # everything: about an hour of two cores
    python benchmarks/rules_off.py hiv --seeds 0          # some of it
    python benchmarks/rules_off.py --table                # the table of what is there

`embedded` and `refined` after one episode, on validation:0 to validation:3. Only what a rule touches is made anew: T̂
and Q(s, w), Q(s, w) alone, or nothing but the run. A seed has a batch of its own (32 members, 150 episodes on each).

Random actions are single on these two families, by the rule as without it; it is not in the table.

Rows are written to results/rules_off.json one by one (by one process); those that are there are not measured again.
Batches and models are kept in benchmarks/batches.
"""

import argparse
import hashlib
import json
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, cached_batch, save

import hipmdp
from hipmdp.pretraining.pretrain import ROLES
from hipmdp.settings import SETTINGS_VERSION, recipe
from hipmdp.study.statistics import estimate, mean, paired_difference

FAMILIES, METHODS = ("compass", "hiv"), ("embedded", "refined")
MEMBERS = tuple(f"validation:{number}" for number in range(4))
INSTANCES, EPISODES = 32, 150
BATCHES = Path(__file__).parent / "batches"


@dataclass(frozen=True)
class Rule:
    """What stands in a rule's place: changes of the settings."""

    dynamics: dict[str, Any] = field(default_factory=dict)
    amortise: dict[str, Any] = field(default_factory=dict)
    adaptation: dict[str, Any] = field(default_factory=dict)
    pqn: dict[str, Any] = field(default_factory=dict)
    """Of every learner in imagination."""
    methods: tuple[str, ...] = METHODS


RULES = {
    "the recipe": Rule(),
    "five latents (paper)": Rule(dynamics={"latent_size": 5}),
    "T̂ of three layers of 64, without products or correction": Rule(
        dynamics={"hidden": (64, 64, 64), "correction": (), "bilinear": False}
    ),
    "rewards as they are": Rule(pqn={"reward_unit": 1.0}),
    "members of Q(s, w) only around known ones": Rule(amortise={"latent_reach": 0.0, "latent_spread": 0.35}),
    "always one round of imagination": Rule(adaptation={"imagined_rounds": 1}),
    "no doubt about w_b (paper)": Rule(adaptation={"latent_temperature": 0.0}),
    "doubt from the Laplace covariance at 100": Rule(adaptation={"latent_temperature": 100.0}),
    "a random first episode (paper)": Rule(adaptation={"first_policy": False}, methods=("embedded",)),
    "no steps ahead": Rule(adaptation={"steps_ahead": 0}),
    "information weighs 0.1": Rule(adaptation={"information_weight": 0.1}),
    "W is always tuned (paper)": Rule(adaptation={"keep_accurate_weights": False}),
}


class Prepared:
    """A family and a seed: the batch, and the models, each made when it is first needed."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed, self.family = name, seed, hipmdp.make(name)
        self._batch: Any = None

    @property
    def batch(self) -> hipmdp.Transitions:
        if self._batch is None:
            self._batch = cached_batch(self.name, {}, INSTANCES, EPISODES, self.seed)
        return self._batch

    def model(self, label: str) -> hipmdp.Model:
        """The recipe's, or with what the rule touches made anew."""
        rule, specification = RULES[label], self.family.specification
        amortise = recipe.amortise(specification)
        amortise = replace(amortise, pqn=replace(amortise.pqn, **rule.pqn), **rule.amortise)
        if rule.dynamics or label == "the recipe":
            config = replace(recipe.dynamics(INSTANCES), role=ROLES["embedded"], **rule.dynamics)
            return self._kept(
                label, lambda: hipmdp.pretrain(self.batch, seed=self.seed, config=config, policy=amortise, quiet=True)
            )
        whole = self.model("the recipe")
        if not rule.amortise and not rule.pqn:
            return whole

        def learned() -> hipmdp.Model:
            # As `pretrain` does, with its streams.
            return replace(hipmdp.amortise(whole, self.batch, self.seed, amortise, quiet=True), method="embedded")

        return self._kept(label, learned)

    def _kept(self, label: str, make: Any) -> hipmdp.Model:
        rule = hashlib.sha256(repr((SETTINGS_VERSION, RULES[label])).encode()).hexdigest()[:12]
        path = BATCHES / f"rules-off-{self.name}-{rule}-{self.seed}.hipmdp"
        if not path.exists():
            make().save(path)
        return hipmdp.load(path)


def measured(prepared: Prepared, label: str, method: str, member: str) -> dict[str, Any]:
    """One run."""
    rule, specification = RULES[label], prepared.family.specification
    config = recipe.adaptation(specification)
    assert config.pqn is not None
    config = replace(config, pqn=replace(config.pqn, **rule.pqn), **rule.adaptation)
    model, began = prepared.model(label), time.perf_counter()
    run = hipmdp.learn_policy(
        model, prepared.family, member, 1, prepared.seed, method=method, config=config, quiet=True
    )  # fmt: skip
    instance = next(i for i in prepared.family.instances("validation") if i.label == member)
    return {
        "score": instance.score(float(run.returns[0])),
        "first_episode": instance.score(float(run.learning_returns[0])),
        "success": float(run.success[0]),
        "seconds": time.perf_counter() - began,
    }


def kept() -> list[dict[str, Any]]:
    path = RESULTS / "rules_off.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """Scores of each rule's place-holder, and the paired difference to the recipe, with 95 % intervals."""
    found = {(row["family"], row["method"], row["rule"], row["seed"], row["member"]): row["score"] for row in rows}
    lines = ["| family | method | in the rule's place | after one | minus the recipe | runs |", "|---" * 6 + "|"]
    for family in FAMILIES:
        for method in METHODS:
            for label in RULES:
                seeds = sorted({row["seed"] for row in rows})
                seeds = [s for s in seeds if all((family, method, r, s, m) in found for r in (label, "the recipe")
                                                 for m in MEMBERS)]  # fmt: skip
                if not seeds:
                    continue
                own, whole = (
                    np.array([[found[family, method, r, s, m] for m in MEMBERS] for s in seeds])
                    for r in (label, "the recipe")
                )
                lost = "" if label == "the recipe" else str(paired_difference(own, whole))
                cells = [family, method, label, str(estimate(mean, own)), lost, str(own.size)]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    for seed in () if asked.table else asked.seeds:
        for name in asked.families:
            prepared = Prepared(name, seed)
            for label, rule in RULES.items():
                for method in rule.methods:
                    for member in MEMBERS:
                        place = {"family": name, "seed": seed, "rule": label, "method": method, "member": member}
                        if any(all(row[k] == v for k, v in place.items()) for row in kept()):
                            continue
                        row = {**place, **measured(prepared, label, method, member)}
                        save("rules_off", "python benchmarks/rules_off.py", [*kept(), row])
                        print(*place.values(), f"{row['score']:.3f}", file=sys.stderr, flush=True)
    print(table(kept()))


if __name__ == "__main__":
    main()
