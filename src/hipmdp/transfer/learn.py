"""`learn_policy`: meet one instance, episode by episode."""

import time
from typing import Any

import jax
import numpy as np

from hipmdp.control import learner
from hipmdp.control.evaluate import greedy_episodes, repeat_theta
from hipmdp.control.network import QNetwork
from hipmdp.control.presets import preset as control_preset
from hipmdp.control.train import train_in_stages
from hipmdp.data.episodes import episodes_to_transitions
from hipmdp.families.checks import known_name
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.instance_sets import resolve_instance
from hipmdp.families.rollout import Episode, mean_return, success_rate
from hipmdp.transfer.collect import rows_to_transitions
from hipmdp.transfer.model import Model
from hipmdp.transfer.progress import Progress
from hipmdp.transfer.run import Run

METHODS = ("model_free", "blind")
"""The methods that `learn_policy` knows so far."""
MEETING_STREAM, EVALUATION_STREAM, LIVING_STREAM = 2_000_001, 2_000_002, 2_000_003
"""Key streams of the drawn instance, of evaluation (which learning must not see), and of a fixed policy's episodes."""


def evaluate(family: AbstractFamily, network: QNetwork, theta: Theta, seed: int) -> Episode:
    """Greedy evaluation episodes in the real environment (20 on grid and acrobot, 1 on HIV)."""
    count = family.evaluation_episodes
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), EVALUATION_STREAM), count)
    return greedy_episodes(family, network, repeat_theta(theta, count), keys)


def learn_policy(
    model: Model,
    family: AbstractFamily,
    instance: Any = None,
    episodes: int = 10,
    seed: int = 0,
    preset: str = "default",
    quiet: bool = False,
) -> Run:
    """Learn to control `instance` (θ, a dict by name, "test:3", or None: drawn) over `episodes` real episodes.

    `model` says with which method; it is never changed.
    """
    if model.specification != family.specification:
        raise ValueError(
            f"The model is for {model.specification.family!r}, not for {family.name!r}: use a model of this family."
        )
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}.")
    theta = resolve_instance(family, instance, jax.random.fold_in(jax.random.key(seed), MEETING_STREAM))
    known_name("method of learn_policy", model.method, METHODS)
    if model.method == "blind":
        return _follow_blind(model, family, theta, episodes, seed)
    return _learn_model_free(model, family, theta, episodes, seed, preset, quiet)


def _learn_model_free(
    model: Model, family: AbstractFamily, theta: Theta, episodes: int, seed: int, preset: str, quiet: bool
) -> Run:
    """DDQN directly on the instance, as the paper's model-free baseline: one lane, one episode after the other."""
    config = control_preset(preset, family.specification)
    network_key, learner_key = jax.random.split(jax.random.key(seed))
    network = model.new_network(config, network_key)
    state = learner.init(network, config, episodes * family.horizon, learner_key)
    progress = Progress("model-free, episode", episodes, quiet=quiet)
    returns, successes, learning, seconds, rows = [], [], [], [], []
    begin = time.perf_counter()
    for chunk in train_in_stages(config, family, repeat_theta(theta, 1), state, range(1, episodes + 1)):
        state = chunk.state
        rows.append(chunk.rows)
        learning.append(float(np.sum(chunk.rows.experience.reward, dtype=np.float64)))
        seconds.append(time.perf_counter() - begin)
        greedy = evaluate(family, state.online, theta, seed)
        returns.append(mean_return(greedy))
        successes.append(success_rate(family, greedy))
        progress.show(len(returns), f"(greedy return {returns[-1]:.4g})")
        begin = time.perf_counter()
    progress.close()
    lived = rows_to_transitions(family, rows, 0, theta)
    return Run(
        "model_free", theta, np.asarray(returns), np.asarray(successes), np.asarray(learning),
        np.full(episodes, np.nan), np.asarray(seconds), lived, model, state.online,
    )  # fmt: skip


def _follow_blind(model: Model, family: AbstractFamily, theta: Theta, episodes: int, seed: int) -> Run:
    """One policy for all: nothing is learned on the instance."""
    assert model.policy is not None
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), LIVING_STREAM), episodes)
    begin = time.perf_counter()
    lived = greedy_episodes(family, model.policy, repeat_theta(theta, episodes), keys)
    learning = np.sum(np.asarray(lived.rewards, np.float64), axis=-1)
    spent = time.perf_counter() - begin
    greedy = evaluate(family, model.policy, theta, seed)
    returns, successes = np.full(episodes, mean_return(greedy)), np.full(episodes, success_rate(family, greedy))
    return Run(
        "blind", theta, returns, successes, learning,
        np.full(episodes, np.nan), np.full(episodes, spent / episodes), episodes_to_transitions(family, lived, theta),
        model, model.policy,
    )  # fmt: skip
