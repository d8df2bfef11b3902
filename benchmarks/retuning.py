"""Who should learn in a model that has just been tuned again: the student there is, or a new one?

    python benchmarks/retuning.py [--methods linear average scratch embedded] [--instances 3] [--seed 0]

Algorithm 1 on HIV up to the second tuning of T̂, once per method and patient. From there on the same N_f imagined
episodes in the same model, by a student who goes on (as ε was, or exploring again from 1) and by one who knows nothing;
nobody takes the old replay along. For each: the best imagined return on the way and what that policy scores in reality;
beside them what the policy of the first tuning is worth in the new model.
"""

import argparse
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import cached_batch, cached_model, save

import hipmdp
from hipmdp.families.rollout import mean_return
from hipmdp.transfer.algorithm import LEARNER, LOOKING, NETWORK, Algorithm
from hipmdp.transfer.config import preset
from hipmdp.transfer.episodes import evaluate
from hipmdp.transfer.meeting import Meeting, Phase
from hipmdp.transfer.simulate import Student, begun_anew, emptied, look, simulate_episodes


def copied(tree: Any) -> Any:
    """Students are donated to whoever teaches them."""
    return jax.tree.map(jnp.copy, tree)


def students(algorithm: Algorithm, before: Student) -> dict[str, Student]:
    """All of them before their first lesson in the new model."""
    config, worst = algorithm.config.learner, jnp.asarray(-jnp.inf, jnp.float32)
    network = algorithm.model.new_network(config, algorithm.key(NETWORK, 1))
    goes_on = emptied(before)._replace(best_return=worst)
    explores = goes_on._replace(learner=goes_on.learner._replace(started=jnp.zeros((), jnp.int32)))
    new = begun_anew(before, network, config, algorithm.key(LEARNER, 1))._replace(best_return=worst)
    return {"goes on": copied(goes_on), "explores again": copied(explores), "new": copied(new)}


def second_tuning(algorithm: Algorithm) -> tuple[Meeting, Student]:
    """The meeting with its model tuned twice, and the student as it was before."""
    meeting = algorithm.begin()
    while (meeting.episode, meeting.phase) != (1, Phase.TUNE):
        algorithm.advance(meeting)
    before = copied(meeting.student)
    algorithm.advance(meeting)
    return meeting, before


def measure(model: Any, family: Any, instance: Any, seed: int) -> dict[str, Any]:
    """One method, one patient."""
    # First episodes are random, so that T̂ has to be tuned again.
    config = dataclasses.replace(preset("default", family.specification), rehearsal=False)
    algorithm = Algorithm(model, family, instance.theta, 2, seed, config, "given", "learned", lambda meeting: None)
    meeting, before = second_tuning(algorithm)
    told: dict[str, Any] = {"method": model.method, "instance": instance.label, "tuned": meeting.tunings == 2}
    if not told["tuned"]:
        return told
    imagination = algorithm.imagination(meeting)
    keys = jax.random.split(algorithm.key(LOOKING, meeting.tunings), config.look_episodes)
    told["first policy"] = {
        "imagined": instance.score(float(np.mean(look(*imagination, before.best, keys)))),
        "score": instance.score(mean_return(evaluate(family, before.best, instance.theta, seed))),
    }
    for name, student in students(algorithm, before).items():
        episodes = int(student.learner.started) + config.imagined_episodes
        taught = simulate_episodes(config.learner, *imagination, student, episodes, keys)
        told[name] = {
            "imagined": instance.score(float(taught.best_return)),
            "score": instance.score(mean_return(evaluate(family, taught.best, instance.theta, seed))),
        }
    return told


def summary(rows: list[dict[str, Any]]) -> dict[str, tuple[float, ...]]:
    """Mean score of each student's policy, and where it takes the place of the first only if it looks better.

    In use: the one who goes on, and only where nothing that looks better is found so, the new one.
    """
    tuned = [row for row in rows if row["tuned"]]
    means = {}
    for name in ("goes on", "explores again", "new"):
        kept = [max(row["first policy"], row[name], key=lambda policy: policy["imagined"]) for row in tuned]
        means[name] = tuple(float(np.mean([p["score"] for p in own])) for own in ([row[name] for row in tuned], kept))
    used = []
    for row in tuned:
        found = row["goes on"]["imagined"] > row["first policy"]["imagined"]
        tries = [row["goes on"]] if found else [row["first policy"], row["new"]]
        used.append(max(tries, key=lambda policy: policy["imagined"]))
    means["in use"] = (float(np.mean([policy["score"] for policy in used])),)
    return means


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", nargs="+", default=["linear", "average", "scratch", "embedded"])
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    family, batch = hipmdp.make("hiv"), cached_batch("hiv", {}, "train32", 150, asked.seed)
    rows = []
    for method in asked.methods:
        model = cached_model(batch, "hiv-train32-150", method, asked.seed)
        for instance in family.instances("test")[: asked.instances]:
            rows.append(measure(model, family, instance, asked.seed))
            print(rows[-1], flush=True)
    command = f"python benchmarks/retuning.py --instances {asked.instances} --seed {asked.seed}"
    print(summary(rows))
    save("retuning", f"{command} --methods {' '.join(asked.methods)}", rows)
