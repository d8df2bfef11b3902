"""How large should the steps of Q-learning in imagination be, and how many episodes does it take?

    python benchmarks/acrobot_steps.py [--instances 5] [--seed 0]

`embedded` on the wide acrobot after one real episode, with the study's model: the paper's learning rate and τ, and
twice these, for N_f imagined episodes and for more. Scores of 200 greedy episodes in reality, and seconds.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import jax
import numpy as np
from common import mean_and_interval, save

import hipmdp
from hipmdp.control.policies import greedy_episodes, repeat_theta
from hipmdp.families.rollout import mean_return
from hipmdp.settings.presets import adaptation_preset

MODELS = Path(__file__).parent / "study" / "models"
PAPER, LARGER = (5e-4, 0.005), (1e-3, 0.01)
TRIALS = ((PAPER, 800), (PAPER, 2400), (LARGER, 800), (LARGER, 1600))
EPISODES = 200

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    family = hipmdp.make("acrobot", sd=0.25)
    model = hipmdp.load(MODELS / f"acrobot-sd0.25-train32-150-embedded-seed{asked.seed}.hipmdp")
    plain, keys = adaptation_preset("default", family.specification), jax.random.split(jax.random.key(0), EPISODES)
    rows = []
    for (rate, tau), episodes in TRIALS:
        dqn = dataclasses.replace(plain.dqn, learning_rate=rate, target_rate=tau)
        config = dataclasses.replace(plain, dqn=dqn, imagined_episodes=episodes)
        scores, seconds = [], []
        for instance in family.instances("test")[: asked.instances]:
            begin = time.perf_counter()
            run = hipmdp.learn_policy(model, family, instance.theta, 1, asked.seed, config=config, quiet=True)
            seconds.append(time.perf_counter() - begin)
            assert run.network is not None
            greedy = greedy_episodes(family, run.network, repeat_theta(instance.theta, EPISODES), keys)
            scores.append(instance.score(mean_return(greedy)))
        row = {"learning_rate": rate, "target_rate": tau, "imagined": episodes, "scores": scores}
        rows.append({**row, **mean_and_interval(scores), "median_seconds": float(np.median(seconds))})
        print(rows[-1], flush=True)
    command = f"python benchmarks/acrobot_steps.py --instances {asked.instances} --seed {asked.seed}"
    save("acrobot_steps", command, rows)
