"""How good is a policy, from logs alone: estimates of `hipmdp.evaluate` beside what policies really earn.

    python benchmarks/evaluate.py                      # HIV and wide acrobot, 30 members each: some hours of one core
    python benchmarks/evaluate.py hiv --members 6      # some of it
    python benchmarks/evaluate.py --validation         # on validation members, by which settings may be chosen
    python benchmarks/evaluate.py --tiny               # a minute: does it run? the numbers mean nothing
    python benchmarks/evaluate.py --d3rlpy 10          # afterwards: d3rlpy's FQE on the first ten members of each

A model of 32 training members (150 episodes of `collect` on each). Members are drawn anew from the family's prior. Of
each there are five logged episodes under one policy for all, Q(·, w̄) at the mean latent, with 30 % random actions; they
are all that an estimate knows of the member. Three policies are estimated, all deterministic:

    good      Q(s, w) under the belief after these episodes: the model's own (`amortised`)
    mediocre  Q(·, w) of a training member, drawn at random: the policy for somebody else
    bad       always the first action: no drug, or torque −1

The truth is the mean discounted return of 100 real episodes, or of one where nothing is random; a verdict is right if
the policy is better (worse) than 100 episodes of the logging policy. Rewards are those of the log: R itself is not
given to anybody. Rows are written to results/evaluate.json one by one; those that are there are not measured again.
"""

import argparse
import dataclasses
import functools
import json
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import RESULTS, cached_batch, cached_model, save
from evaluate_d3rlpy import d3rlpy_values

import hipmdp
from hipmdp._random import root_key, stream
from hipmdp.control.policies import EpsilonGreedy, Greedy, repeat_theta
from hipmdp.control.policy import Constant, Policy
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.from_logs.evaluation.named_policy import AMORTISED, named_policy
from hipmdp.from_logs.system import known_system
from hipmdp.settings.presets import adaptation_preset

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {"hiv": ("hiv", {}), "acrobot-wide": ("acrobot", {"sd": 0.25})}
POLICIES = ("good", "mediocre", "bad")
DRAWN, SEED = 1000, 0
"""Seed of the members that are drawn, which is that of no training; seed of the batch, the model and the estimates."""
RECOMMENDED = "recommended"


@dataclasses.dataclass(frozen=True)
class Size:
    """How much is learned and measured; a setting that is None is the recipe's."""

    result: str = "evaluate"
    instances: Any = "train32"
    episodes: int = 150
    """Of the batch: training members, and episodes on each."""
    logged: int = 5
    epsilon: float = 0.3
    truths: int = 100
    dynamics: hipmdp.DynamicsConfig | None = None
    amortise: hipmdp.AmortiseConfig | None = None


_PQN = hipmdp.PQNConfig(hidden=(8,), groups=2, members=2, steps_per_phase=4, minibatches=2)
TINY = Size(
    result="evaluate-tiny",
    instances=2,
    episodes=2,
    truths=2,
    dynamics=hipmdp.DynamicsConfig(hidden=(8,), latent_size=2, rounds=20, tune_rounds=2, infer_steps=5),
    amortise=hipmdp.AmortiseConfig(_PQN, steps=64, pools=1),
)


class Prepared:
    """One family: the batch and the model, each made when it is first needed, and its members."""

    def __init__(self, label: str, size: Size, members: int, *, validation: bool) -> None:
        self.label, self.size = label, size
        self.name, self.options = FAMILIES[label]
        self.family: Any = hipmdp.make(self.name, **self.options)
        if validation:
            self.thetas = [instance.theta for instance in self.family.instances("validation")[:members]]
        else:
            drawn = self.family.draw_instances(stream(root_key(DRAWN), "adaptation/instance"), members)
            self.thetas = [jax.tree.map(lambda leaf, i=i: leaf[i], drawn) for i in range(members)]

    @functools.cached_property
    def model(self) -> hipmdp.Model:
        size = self.size
        batch = cached_batch(self.name, self.options, size.instances, size.episodes, SEED)
        return cached_model(
            batch, f"{size.result}-{self.label}", "embedded", SEED, config=size.dynamics, family=self.family,
            policy=size.amortise or True,
        )  # fmt: skip


class Case:
    """One member: its log, and the policies."""

    def __init__(self, prepared: Prepared, member: int) -> None:
        self.prepared, self.theta = prepared, prepared.thetas[member]
        model, family, size = prepared.model, prepared.family, prepared.size
        assert model.latent_policy is not None
        assert model.dynamics is not None
        self.key = stream(root_key(DRAWN), "adaptation/episode", member)
        blind = model.latent_policy.at(model.dynamics.latent_prior.mean)
        self.logging = EpsilonGreedy(blind, jnp.asarray(size.epsilon, jnp.float32))
        keys = jax.random.split(self.key, size.logged)
        episodes = family.rollouts(self.logging, keys, repeat_theta(self.theta, size.logged))
        self.log = episodes_to_transitions(family, episodes, self.theta)
        config = adaptation_preset("default", model.specification)
        known = known_system(model, self.log, config, key=root_key(SEED))
        other = np.random.default_rng([DRAWN, member]).integers(len(model.dynamics.latents))
        specification = model.specification
        self.policies = {
            "good": named_policy(AMORTISED, model, known.belief),
            "mediocre": Policy(specification, Greedy(model.latent_policy.at(model.dynamics.latents[other]))),
            "bad": Policy(specification, Constant(0)),
        }

    def truth(self, rule: Any, *, random: bool = False) -> dict[str, float]:
        """What it really earns."""
        family, discount = self.prepared.family, self.prepared.family.discount
        count = 1 if family.fixed_start and not random else self.prepared.size.truths
        keys = jax.random.split(stream(self.key, "adaptation/evaluation"), count)
        rewards = np.asarray(family.rollouts(rule, keys, repeat_theta(self.theta, count)).steps.reward, np.float64)
        returns = rewards @ discount ** np.arange(rewards.shape[1])
        return {
            "truth": float(returns.mean()),
            "truth_undiscounted": float(rewards.sum(axis=1).mean()),
            "truth_error": float(returns.std() / np.sqrt(count)),
        }


def measured(case: Case, policy: str) -> dict[str, Any]:
    """One row: the truth and the estimates of one policy."""
    begin = time.perf_counter()
    found = hipmdp.evaluate(case.prepared.model, case.log, case.policies[policy], seed=SEED)
    seconds = time.perf_counter() - begin
    estimates = {RECOMMENDED: found.value, **found.estimates}
    return {
        **case.truth(case.policies[policy].rule),
        "truth_of_logging": case.truth(case.logging, random=True)["truth"],
        "logged": found.logged,
        "earned": found.earned,
        "repeated": found.repeated,
        "undiscounted": found.undiscounted,
        "estimates": {name: list(e) if e.is_finite else None for name, e in estimates.items()},
        "verdict": found.verdict,
        "reasons": found.reasons,
        "unsupported": found.unsupported,
        "effective_episodes": found.effective_episodes,
        "seconds": seconds,
    }


def kept(name: str) -> list[dict[str, Any]]:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def place(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["family"], row["member"], row["policy"]


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values))


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1]) if len(a) > 2 else float("nan")


def summary(rows: list[dict[str, Any]]) -> str:
    """A table per family: each estimator's intervals, ranks and bias; and what the verdicts were worth."""
    lines = []
    for family in dict.fromkeys(row["family"] for row in rows):
        mine = [row for row in rows if row["family"] == family]
        lines += ["", f"**{family}**, {len({row['member'] for row in mine})} members", ""]
        within = " | ".join(f"ρ {policy}" for policy in POLICIES)
        bias = " | ".join(f"bias {policy}" for policy in POLICIES)
        lines.append(f"| estimator | estimates | 90 % intervals hold | Spearman ρ | {within} | {bias} |")
        lines.append("|---" * (4 + 2 * len(POLICIES)) + "|")
        for name in dict.fromkeys(name for row in mine for name in row["estimates"]):
            lines.append(_estimator_line(name, [row for row in mine if row["estimates"].get(name)]))
        lines += ["", _undiscounted(mine), _verdicts(mine)]
    return "\n".join(lines)


def _estimator_line(name: str, rows: list[dict[str, Any]]) -> str:
    if not rows:
        return f"| {name} | 0 |" + " |" * (2 + 2 * len(POLICIES))
    truth, found = np.asarray([row["truth"] for row in rows]), np.asarray([row["estimates"][name] for row in rows])
    held = np.mean((found[:, 1] <= truth) & (truth <= found[:, 2]))
    cells = [f"{held:.0%}" if np.isfinite(found[:, 1:]).all() else "", f"{spearman(found[:, 0], truth):.2f}"]
    groups = [np.asarray([row["policy"] == policy for row in rows]) for policy in POLICIES]
    cells += [f"{spearman(found[g, 0], truth[g]):.2f}" for g in groups]
    # Beside the mean size of what these policies earn.
    cells += [f"{np.mean(found[g, 0] - truth[g]) / np.mean(np.abs(truth[g])):+.0%}" if g.any() else "" for g in groups]
    return f"| {name} | {len(rows)} | " + " | ".join(cells) + " |"


def _undiscounted(rows: list[dict[str, Any]]) -> str:
    held = np.mean([row["undiscounted"][1] <= row["truth_undiscounted"] <= row["undiscounted"][2] for row in rows])
    return f"Undiscounted, the recommended intervals hold {held:.0%}."


def _verdicts(rows: list[dict[str, Any]]) -> str:
    told = [row for row in rows if row["verdict"] in ("better", "worse")]
    right = sum((row["truth"] > row["truth_of_logging"]) == (row["verdict"] == "better") for row in told)
    return (
        f"Verdicts: {len(told)} of {len(rows)} are better or worse, {right} of these right; the others cannot be told."
    )


def measure(label: str, size: Size, members: int, *, validation: bool) -> None:
    prepared = Prepared(label, size, members, validation=validation)
    for member in range(members):
        case = None
        for policy in POLICIES:
            row: dict[str, Any] = {"family": label, "member": member, "policy": policy}
            if any(place(row) == place(other) for other in kept(size.result)):
                continue
            case = case or Case(prepared, member)
            row |= measured(case, policy)
            # Read again: another process may have measured something meanwhile.
            save(size.result, "python benchmarks/evaluate.py", [*kept(size.result), row])
            value = row["estimates"][RECOMMENDED]
            told = f"{row['truth']:.4g} {value[0]:.4g} [{value[1]:.4g}, {value[2]:.4g}] {row['verdict']}"
            print(label, member, policy, told, f"{row['seconds']:.0f} s", file=sys.stderr, flush=True)


def add_d3rlpy(label: str, size: Size, members: int, *, validation: bool, python: str | None) -> None:
    """d3rlpy's FQE beside the others, in an environment of its own."""
    prepared = Prepared(label, size, members, validation=validation)
    for member in range(members):
        rows = [row for row in kept(size.result) if (row["family"], row["member"]) == (label, member)]
        missing = [row["policy"] for row in rows if "d3rlpy_fqe" not in row["estimates"]]
        if not missing:
            continue
        case = Case(prepared, member)
        found = d3rlpy_values(
            case.log, {name: case.policies[name] for name in missing}, SEED, python, tiny=size is TINY
        )
        stored = kept(size.result)
        for row in stored:
            if place(row)[:2] == (label, member) and row["policy"] in found:
                row["estimates"]["d3rlpy_fqe"] = [found[row["policy"]], None, None]
        save(size.result, "python benchmarks/evaluate.py", stored)
        print(label, member, "d3rlpy", found, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--d3rlpy", type=int, default=0, metavar="MEMBERS")
    parser.add_argument("--python", help="of an environment with d3rlpy; by default one is made in benchmarks/batches")
    asked = parser.parse_args()
    size = TINY if asked.tiny else Size(result="evaluate-validation") if asked.validation else Size()
    members = 1 if asked.tiny else asked.members
    for label in asked.families:
        measure(label, size, members, validation=asked.validation)
    for label in asked.families if asked.d3rlpy else ():
        add_d3rlpy(label, size, min(members, asked.d3rlpy), validation=asked.validation, python=asked.python)
    print(summary([row for row in kept(size.result) if row["family"] in asked.families]))


if __name__ == "__main__":
    main()
