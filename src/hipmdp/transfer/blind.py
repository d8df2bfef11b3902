"""`train_blind`: one policy for all instances, trained across the training instances: what transfer has to beat."""

from typing import Any

import jax
import numpy as np

from hipmdp.control.config import DDQNConfig
from hipmdp.control.evaluate import greedy_episodes
from hipmdp.control.presets import preset as control_preset
from hipmdp.control.train import new_learner, train
from hipmdp.families.family import AbstractFamily
from hipmdp.families.instance_sets import resolve_instances, stack_thetas
from hipmdp.transfer.model import Model
from hipmdp.transfer.progress import Progress


def train_blind(
    family: AbstractFamily,
    instances: Any = "train",
    episodes: int = 2000,
    seed: int = 0,
    preset: str = "default",
    config: DDQNConfig | None = None,
    quiet: bool = False,
) -> Model:
    """DDQN on the true dynamics, episode i on training instance i mod n, without telling it which.

    The network that is kept is the one whose greedy policy had the best mean rank on the *training* instances, looked
    at 20 times on the way: late DDQN policies are not always the best ones.
    """
    thetas = resolve_instances(family, instances, seed)
    stacked = stack_thetas(thetas)
    config = config or control_preset(preset, family.name)
    spec = family.specification
    state = new_learner(spec, config, episodes, jax.random.key(seed))
    ticks = max(1, episodes * spec.horizon // (config.steps_per_phase * config.lanes * 20))
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 79), len(thetas))
    progress = Progress("blind, episode", episodes, quiet=quiet)
    networks, scores = [], []
    for chunk in train(config, family, stacked, state, episodes, ticks):
        greedy = greedy_episodes(family, chunk.state.online, stacked, keys)
        returns = np.sum(np.asarray(greedy.rewards, np.float64), axis=-1)
        networks.append(jax.tree.map(np.asarray, chunk.state.online))
        scores.append(returns)
        progress.show(min(int(chunk.state.started), episodes), f"(median greedy return {np.median(returns):.4g})")
    progress.close()
    # Ranks, because returns of different instances differ by powers of ten.
    ranks = np.argsort(np.argsort(np.asarray(scores), axis=0), axis=0).mean(axis=1)
    best = jax.tree.map(jax.numpy.asarray, networks[int(np.argmax(ranks))])
    return Model("blind", spec, spec.state_centre, spec.state_scale, best)
