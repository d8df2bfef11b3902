"""`train_blind`: one policy for all instances, trained across the training instances: what transfer has to beat."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._progress import Progress
from hipmdp._random import root_key, stream
from hipmdp.control.policies import greedy_episodes
from hipmdp.control.q_network import copy_network
from hipmdp.control.selection import by_rank
from hipmdp.control.train import new_dqn, train_in_stages
from hipmdp.families.instances import resolve_instances, stack_thetas
from hipmdp.families.protocol import BaseFamily
from hipmdp.pretraining.model import Model
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.presets import dqn_preset

VALIDATIONS = 20
"""How often the policy is evaluated on the way."""


def train_blind(
    family: BaseFamily,
    instances: Any = "train",
    episodes: int = 2000,
    seed: int = 0,
    preset: str = "default",
    config: DDQNConfig | None = None,
    quiet: bool = False,
) -> Model:
    """DDQN on the true dynamics, episode i on training instance i mod n, without any sign of which one it is.

    The network that is kept is the one whose greedy policy had the best mean rank on the *training* instances,
    evaluated 20 times on the way: late DDQN policies are not always the best ones.
    """
    config = config or dqn_preset(preset, family.specification, episodes)
    return train_blind_policy(family, instances, episodes, key=root_key(seed), config=config, quiet=quiet)


def train_blind_policy(
    family: BaseFamily, instances: Any, episodes: int, *, key: PRNGKeyArray, config: DDQNConfig, quiet: bool = True
) -> Model:
    """`train_blind` with settings and a key of the caller's."""
    if episodes < VALIDATIONS:
        raise ValueError(f"episodes must be at least {VALIDATIONS}, got {episodes}.")
    thetas = resolve_instances(family, instances, stream(key, "blind/instances"))
    stacked = stack_thetas(thetas)
    spec = family.specification
    state = new_dqn(spec, config, episodes, stream(key, "blind/dqn"))
    count = family.evaluation_episodes
    lanes = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0), stacked)
    keys = jax.random.split(stream(key, "blind/validation"), len(thetas) * count)
    stages = [episodes * (number + 1) // VALIDATIONS for number in range(VALIDATIONS)]
    progress = Progress("blind, episode", episodes, quiet=quiet)
    networks, table = [], []
    for stage, chunk in zip(stages, train_in_stages(config, family, stacked, state, stages), strict=True):
        greedy = greedy_episodes(family, chunk.state.online, lanes, keys)
        returns = np.asarray(greedy.undiscounted_return, np.float64).reshape(len(thetas), count).mean(axis=1)
        networks.append(copy_network(chunk.state.online))
        table.append(returns)
        progress.show(stage, f"(median greedy return {np.median(returns):.4g})")
    progress.close()
    best = networks[by_rank(np.asarray(table))]
    return Model("blind", spec, centre=spec.state_centre, scale=spec.state_scale, policy=best)
