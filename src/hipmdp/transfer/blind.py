"""`train_blind`: one policy for all instances, trained across the training instances: what transfer has to beat."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.control.config import DDQNConfig
from hipmdp.control.evaluate import greedy_episodes
from hipmdp.control.presets import preset as control_preset
from hipmdp.control.train import copied, new_learner, train_in_stages
from hipmdp.families.family import AbstractFamily
from hipmdp.families.instance_sets import resolve_instances, stack_thetas
from hipmdp.transfer.model import Model
from hipmdp.transfer.progress import Progress

LOOKS = 20
"""How often the policy is looked at on the way."""


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
    if episodes < LOOKS:
        raise ValueError(f"episodes must be at least {LOOKS}, got {episodes}.")
    key = jax.random.key(seed)
    thetas = resolve_instances(family, instances, jax.random.fold_in(key, 3_000_001))
    stacked = stack_thetas(thetas)
    config = config or control_preset(preset, family.specification)
    spec = family.specification
    state = new_learner(spec, config, episodes, key)
    count = family.evaluation_episodes
    lanes = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0), stacked)
    keys = jax.random.split(jax.random.fold_in(key, 3_000_002), len(thetas) * count)
    stages = [episodes * (look + 1) // LOOKS for look in range(LOOKS)]
    progress = Progress("blind, episode", episodes, quiet=quiet)
    networks, scores = [], []
    for stage, chunk in zip(stages, train_in_stages(config, family, stacked, state, stages), strict=True):
        greedy = greedy_episodes(family, chunk.state.online, lanes, keys)
        returns = np.sum(np.asarray(greedy.rewards, np.float64), axis=-1).reshape(len(thetas), count).mean(axis=1)
        networks.append(copied(chunk.state.online))
        scores.append(returns)
        progress.show(stage, f"(median greedy return {np.median(returns):.4g})")
    progress.close()
    return Model("blind", spec, spec.state_centre, spec.state_scale, policy=networks[best_by_rank(np.asarray(scores))])


def best_by_rank(returns: np.ndarray) -> int:
    """The row of (policies, systems) with the best mean rank: returns of different systems differ by powers of ten."""
    beaten = (returns[:, None, :] > returns[None, :, :]).mean(axis=(1, 2))
    return int(np.argmax(beaten))
