"""`simulate_episodes`: Double DQN inside imagination, and the best of the policies it goes through.

Late DDQN policies are not always the best ones, so the greedy policy is looked at on the way, in imagination: on the
same contexts, none of it real. The one with the highest imagined return is kept. It is the target network's, the slow
average of the online one: where the model is a little wrong it does better.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from hipmdp.control import learner
from hipmdp.control.config import DDQNConfig
from hipmdp.control.evaluate import Greedy
from hipmdp.control.learner import LearnerState
from hipmdp.control.network import QNetwork
from hipmdp.control.train import copied, finished
from hipmdp.data import replay as replays
from hipmdp.families.rollout import Environment, total_reward


class Student(NamedTuple):
    """The learner in imagination and the best policy so far."""

    learner: LearnerState
    best: QNetwork
    best_return: Float[Array, ""]
    """Its imagined return; −∞ before the first look, and whenever the model has changed."""


def new_student(network: QNetwork, config: DDQNConfig, capacity: int, key: PRNGKeyArray) -> Student:
    """A student that has imagined nothing yet."""
    best = copied(network)
    return Student(learner.init(network, config, capacity, key), best, jnp.asarray(-jnp.inf, jnp.float32))


def warm_started(student: Student, network: QNetwork) -> Student:
    """The student with another network to go on from; what Adam remembers of the old one is forgotten."""
    state = student.learner._replace(online=copied(network), target=copied(network))
    optimizer = jax.tree.map(jnp.zeros_like, state.optimizer)
    return student._replace(learner=state._replace(optimizer=optimizer), best=copied(network))


def emptied(student: Student) -> Student:
    """The student without what the replay holds."""
    return student._replace(learner=student.learner._replace(replay=replays.cleared(student.learner.replay)))


def begun_anew(student: Student, network: QNetwork, config: DDQNConfig, key: PRNGKeyArray) -> Student:
    """The student with a mind and a memory like new; the policy it had found is kept."""
    state = learner.init(network, config, 1, key)
    return student._replace(learner=state._replace(replay=replays.cleared(student.learner.replay)))


def simulate_episodes(
    config: DDQNConfig,
    environment: Environment,
    contexts: Any,
    student: Student,
    episodes: int,
    keys: Key[Array, " looks"],
    report: Callable[[Student], None] = lambda student: None,
) -> Student:
    """Imagine until `episodes` episodes (counted from the student's first) are done, learning from all of them.

    Episode i runs in context i mod n. `keys` are those of the greedy episodes by which policies are compared; without
    any, the last online network is used (paper). `student` is donated: use what is returned. `report` is called at
    chunk edges.
    """
    # As many ticks as the longest episode has: half a second, and the only length that is compiled.
    ticks = -(-environment.horizon // config.steps_per_phase)
    while not finished(student.learner, episodes):
        state = learner.learn_only(config, environment, contexts, student.learner, episodes, ticks)
        student = student._replace(learner=state)
        if len(keys) == 0:
            student = student._replace(best=copied(state.online))
        elif (value := float(np.mean(look(environment, contexts, state.target, keys)))) > float(student.best_return):
            student = Student(state, copied(state.target), jnp.asarray(value, jnp.float32))
        report(student)
    return student


def look(environment: Environment, contexts: Any, network: QNetwork, keys: Key[Array, " looks"]) -> np.ndarray:
    """Imagined undiscounted returns of the greedy policy, each in its own context and from its own start."""
    return np.asarray(_look(environment, contexts, network, keys), np.float64)


@eqx.filter_jit
def _look(environment: Any, contexts: Any, network: QNetwork, keys: Array) -> Float[Array, " episodes"]:
    count = jax.tree.leaves(contexts)[0].shape[0]
    rows = jnp.arange(keys.shape[0], dtype=jnp.int32) % count
    own = jax.tree.map(lambda leaf: leaf[rows], contexts)
    return jax.vmap(lambda key, context: total_reward(environment, Greedy(network), key, context))(keys, own)
