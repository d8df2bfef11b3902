"""Systems from outside by the documented route: CartPole, MountainCar and LunarLander of examples/, unseen members.

    python benchmarks/outside.py                           # everything: several hours of one core
    python benchmarks/outside.py mountaincar --seeds 0     # some of it
    python benchmarks/outside.py --tiny                    # a few minutes: does it run? the numbers mean nothing

LunarLander needs Box2D: pip install 'hipmdp[examples]'. A seed has a batch of its own (five members, 150 episodes of
`collect` on each), and everything that is learned from it. Each is measured on test:0 to test:3 by 20 greedy episodes,
whose starts are the same for all methods of a seed: `random` actions, the best `constant` one (chosen on these
episodes), the `rule` of the example where it has one, `blind` with as many real steps as the batch has, `average` and
`embedded` after one and two episodes, `amortised` and `refined` after one. `blind` is the best of several policies by
greedy episodes on the training members: these real steps come on top, its rows have them as `validation_steps`. The
reward inside imagination is given, except where the example has none (LunarLander): there it is learned.

Rows are written to results/outside.json one by one; those that are there are not measured again. Batches and models are
kept in benchmarks/batches.
"""

import argparse
import dataclasses
import functools
import importlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import RESULTS, cached_batch, cached_model, save

import hipmdp
from hipmdp._random import root_key, stream
from hipmdp.control.policies import greedy_episodes, repeat_theta
from hipmdp.control.q_network import copy_network
from hipmdp.control.selection import by_rank
from hipmdp.control.train import new_dqn, train_in_stages
from hipmdp.families.instances import frozen_instance, stack_thetas
from hipmdp.families.rollout import Episode, mean_return, success_rate
from hipmdp.families.scripted import constant_policy, random_policy
from hipmdp.pretraining.blind import VALIDATIONS
from hipmdp.settings.presets import dqn_preset

FAMILIES = ("cartpole", "mountaincar", "lunarlander")
REFERENCES = ("random", "constant", "rule")
LEARNED = {"blind": 1, "average": 2, "embedded": 2, "amortised": 1, "refined": 1}
"""Real episodes with the new member."""
BATCHES = Path(__file__).parent / "batches"


@dataclasses.dataclass(frozen=True)
class Size:
    """How much is learned and measured; a setting that is None is the recipe's."""

    result: str = "outside"
    instances: int = 5
    episodes: int = 150
    """Of the batch: training members, and episodes on each."""
    members: int = 4
    evaluation_episodes: int = 20
    dynamics: hipmdp.DynamicsConfig | None = None
    amortise: hipmdp.AmortiseConfig | None = None
    adaptation: hipmdp.AdaptationConfig | None = None


_DQN = hipmdp.DDQNConfig(hidden=(8,), normalised=True, lanes=2)
_PQN = hipmdp.PQNConfig(hidden=(8,), groups=2, members=2, steps_per_phase=4, minibatches=2)
TINY = Size(
    result="outside-tiny",
    instances=2,
    episodes=2,
    members=1,
    evaluation_episodes=1,
    dynamics=hipmdp.DynamicsConfig(hidden=(8,), latent_size=2, rounds=20, tune_rounds=2, infer_steps=5),
    amortise=hipmdp.AmortiseConfig(_PQN, steps=64, pools=1),
    adaptation=hipmdp.AdaptationConfig(dqn=_DQN, imagined_episodes=4, weight_draws=2, validation_episodes=2),
)


class Prepared:
    """One family and seed: the batch and the models, each made when it is first needed."""

    def __init__(self, name: str, seed: int, size: Size) -> None:
        self.name, self.seed, self.size = name, seed, size
        self.rule: Callable[[Any], int] | None = getattr(importlib.import_module(name), "rule", None)
        found: Any = hipmdp.make(f"{name}:family")
        given = found.given._replace(evaluation_episodes=size.evaluation_episodes)
        self.family = dataclasses.replace(found, given=given)
        self.label = f"{size.result}-{name}-{size.instances}-{size.episodes}"

    @functools.cached_property
    def batch(self) -> hipmdp.Transitions:
        return cached_batch(f"{self.name}:family", {}, self.size.instances, self.size.episodes, self.seed)

    def model(self, method: str) -> Any:
        """What `learn_policy` starts from."""
        if method == "blind":
            return self._blind
        base = "average" if method == "average" else "embedded"
        return cached_model(
            self.batch, self.label, base, self.seed, config=self.size.dynamics, family=self.family,
            policy=self.size.amortise or True,
        )  # fmt: skip

    @functools.cached_property
    def _blind(self) -> hipmdp.Model:
        return self._kept("blind", lambda: train_blind_steps(self.family, self.batch, self.seed))

    def rule_policy(self, key: Any, state: Any, time: Any) -> Any:
        """The rule, a Python function, as a policy inside `rollouts`."""
        rule, action = self.rule, jax.ShapeDtypeStruct((), jnp.int32)
        assert rule is not None
        return jax.pure_callback(lambda s: np.int32(rule(np.asarray(s))), action, state, vmap_method="sequential")

    def _kept(self, method: str, learn: Callable[[], hipmdp.Model]) -> hipmdp.Model:
        path = BATCHES / f"{self.label}-{method}-{self.seed}.hipmdp"
        if not path.exists():
            learn().save(path)
        return hipmdp.load(path)


def train_blind_steps(family: Any, batch: hipmdp.Transitions, seed: int) -> hipmdp.Model:
    """`train_blind` on the batch's instances, but for as many steps as the batch has, not for a number of episodes."""
    key, spec, count = root_key(seed), family.specification, family.evaluation_episodes
    stacked = stack_thetas([family.theta(batch.thetas[instance]) for instance in batch.instances])
    lanes = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0), stacked)
    keys = jax.random.split(stream(key, "blind/validation"), len(batch.instances) * count)
    config = dqn_preset("default", spec, batch.episode_count)
    state = new_dqn(spec, config, batch.episode_count, stream(key, "blind/dqn"))
    every = max(1, batch.episode_count // VALIDATIONS)
    networks, table, trained = [], [], {"training_steps": 0, "training_episodes": 0, "validation_steps": 0}
    for chunk in train_in_stages(config, family, stacked, state, itertools.count(every, every)):
        greedy = greedy_episodes(family, chunk.state.online, lanes, keys)
        networks.append(copy_network(chunk.state.online))
        table.append(np.asarray(greedy.undiscounted_return, np.float64).reshape(-1, count).mean(axis=1))
        trained["training_steps"] += len(chunk.rows.episode)
        trained["training_episodes"] = int(chunk.state.started)
        trained["validation_steps"] += int(np.sum(greedy.length))
        if trained["training_steps"] >= len(batch):
            break
    best = networks[by_rank(np.asarray(table))]
    return hipmdp.Model("blind", spec, spec.state_centre, spec.state_scale, policy=best, metadata=trained)


def reference(prepared: Prepared, method: str, instance: str) -> dict[str, Any]:
    """What needs no learning."""
    family, theta = prepared.family, frozen_instance(prepared.family, instance).theta
    # As `learn_policy` evaluates: the same starts.
    keys = jax.random.split(stream(root_key(prepared.seed), "adaptation/evaluation"), family.evaluation_episodes)

    def episodes(policy: Any) -> Episode:
        return family.rollouts(policy, keys, repeat_theta(theta, len(keys)))

    if method == "rule":
        return judged(family, episodes(prepared.rule_policy))
    if method == "random":
        return judged(family, episodes(random_policy(family)))
    names = family.specification.action_names
    constant = [{**judged(family, episodes(constant_policy(a))), "action": name} for a, name in enumerate(names)]
    return max(constant, key=lambda found: found["returns"][0])


def judged(family: Any, episodes: Episode) -> dict[str, Any]:
    return {"returns": [mean_return(episodes)], "success": [success_rate(family, episodes)]}


def learned(prepared: Prepared, method: str, instance: str) -> dict[str, Any]:
    """`learn_policy` on the new member."""
    family, model = prepared.family, prepared.model(method)
    run = hipmdp.learn_policy(
        model, family, instance, LEARNED[method], prepared.seed, reward="given" if family.knows_reward else "learned",
        method=method, config=prepared.size.adaptation, quiet=True,
    )  # fmt: skip
    columns = ("returns", "success", "learning_returns", "model_error", "seconds")
    # JSON knows no NaN, which stands where a method has no model.
    found = {name: [None if np.isnan(v) else float(v) for v in getattr(run, name)] for name in columns}
    steps = {"steps_of_batch": len(prepared.batch)}
    if method == "blind":
        steps |= {name: model.metadata[name] for name in ("training_steps", "training_episodes", "validation_steps")}
    return {**found, **steps}


def tasks(prepared: Prepared) -> Iterator[tuple[str, str]]:
    """(method, instance), what needs no learning first."""
    for method in (*REFERENCES, *LEARNED):
        if method != "rule" or prepared.rule is not None:
            yield from ((method, f"test:{number}") for number in range(prepared.size.members))


def kept(size: Size) -> list[dict[str, Any]]:
    path = RESULTS / f"{size.result}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| family | method | runs | after 1 | after 2 | least after 1 |", "|---" * 6 + "|"]
    for name, method in dict.fromkeys((row["family"], row["method"]) for row in rows):
        mine = [row["returns"] for row in rows if (row["family"], row["method"]) == (name, method)]
        first, second = [r[0] for r in mine], [r[1] for r in mine if len(r) > 1]
        after = f"{np.mean(second):.1f}" if second else ""
        lines.append(f"| {name} | {method} | {len(mine)} | {np.mean(first):.1f} | {after} | {min(first):.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--tiny", action="store_true")
    asked = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    size = TINY if asked.tiny else Size()
    for seed in asked.seeds[:1] if asked.tiny else asked.seeds:
        for name in asked.families:
            prepared = Prepared(name, seed, size)
            for method, instance in tasks(prepared):
                place = {"family": name, "seed": seed, "method": method, "instance": instance}
                if any(all(row[k] == v for k, v in place.items()) for row in kept(size)):
                    continue
                begin = time.perf_counter()
                found = (reference if method in REFERENCES else learned)(prepared, method, instance)
                row = {**place, **found, "seconds_in_all": time.perf_counter() - begin}
                # Read again: another process may have measured something meanwhile.
                save(size.result, "python benchmarks/outside.py", [*kept(size), row])
                print(*place.values(), found["returns"], f"{row['seconds_in_all']:.0f} s", file=sys.stderr, flush=True)
    print(table(kept(size)))


if __name__ == "__main__":
    main()
