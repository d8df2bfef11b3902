"""Small logs that are made in a moment."""

import jax
import numpy as np

from hipmdp.control.policies import repeat_theta
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.families.rollout import rollouts
from hipmdp.families.scripted import random_policy
from hipmdp.families.specification import Specification


def random_batch(family, classes, episodes, steps=None, seed=0):
    """Random episodes on grid's classes (or whatever `classes` name), cut after `steps` steps."""
    batch = None
    for number, value in enumerate(classes):
        theta = family.theta({"theta": value} if family.name == "grid" else value)
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), number), episodes)
        log = episodes_to_transitions(
            family, rollouts(family, random_policy(family), keys, repeat_theta(theta, episodes)), theta
        )
        if steps is not None:
            log = log.select(log.time < steps)
        log = log.renumbered(number)
        batch = log if batch is None else batch.extended(log)
    return batch


def toy_specification(states=1, actions=1):
    return Specification(
        family="toy",
        state_names=tuple(f"x{i}" for i in range(states)),
        state_low=(-10.0,) * states,
        state_high=(10.0,) * states,
        state_centre=(0.0,) * states,
        state_scale=(1.0,) * states,
        angles=(False,) * states,
        action_names=tuple(f"a{i}" for i in range(actions)),
        horizon=100,
        discount=0.99,
    )


def toy_log(state, change, instance=None, action=None, specification=None):
    """A log of independent rows: every row is an episode of its own."""
    state = np.asarray(state, np.float32)
    count = len(state)
    columns = {
        "state": state,
        "action": np.zeros(count) if action is None else action,
        "reward": np.arange(count) % 2.0,
        "next_state": state + np.asarray(change, np.float32),
        "terminated": np.zeros(count, bool),
        "truncated": np.zeros(count, bool),
        "instance": np.zeros(count) if instance is None else instance,
        "episode": np.arange(count),
        "time": np.zeros(count),
    }
    return Transitions(specification or toy_specification(state.shape[1]), columns)
