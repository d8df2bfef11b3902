"""Double DQN inside imagination, and the best of the policies it goes through.

Late DQN policies are not always the best ones, so the greedy policy is evaluated on the way, in imagination: on the
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

from hipmdp.control import dqn
from hipmdp.control.dqn import DQNState
from hipmdp.control.policies import Greedy
from hipmdp.control.q_network import QNetwork, copy_network
from hipmdp.control.selection import is_better
from hipmdp.data import replay as replays
from hipmdp.families.rollout import AbstractEnvironment, total_reward
from hipmdp.settings.dqn import DDQNConfig


class PolicyLearner(NamedTuple):
    """The DQN in imagination and the best policy so far."""

    dqn: DQNState
    best: QNetwork
    best_return: Float[Array, ""]
    """Its imagined return; −∞ before the first evaluation, and whenever the model has changed."""


def new_policy_learner(
    network: QNetwork, config: DDQNConfig, capacity: int, key: PRNGKeyArray, *, unit: float | None = None
) -> PolicyLearner:
    """A learner that has imagined nothing yet; `unit` as in `dqn.init`."""
    best = copy_network(network)
    state = dqn.init(network, config, capacity, key, unit=unit)
    return PolicyLearner(state, best, jnp.asarray(-jnp.inf, jnp.float32))


def with_network(learner: PolicyLearner, network: QNetwork) -> PolicyLearner:
    """The learner with another network to go on from; Adam's moments of the old one are dropped."""
    state = learner.dqn._replace(online=copy_network(network), target=copy_network(network))
    optimizer = jax.tree.map(jnp.zeros_like, state.optimizer)
    return learner._replace(dqn=state._replace(optimizer=optimizer), best=copy_network(network))


def with_empty_replay(learner: PolicyLearner) -> PolicyLearner:
    """The learner with nothing in its replay."""
    return learner._replace(dqn=learner.dqn._replace(replay=replays.cleared(learner.dqn.replay)))


def with_new_network(learner: PolicyLearner, network: QNetwork, config: DDQNConfig, key: PRNGKeyArray) -> PolicyLearner:
    """An untrained DQN with an empty replay; the best policy so far is kept."""
    state = dqn.init(network, config, 1, key)
    replay = replays.cleared(learner.dqn.replay)
    return learner._replace(dqn=state._replace(replay=replay, unit=learner.dqn.unit))


def learn_in_imagination(
    config: DDQNConfig,
    environment: AbstractEnvironment,
    contexts: Any,
    learner: PolicyLearner,
    episodes: int,
    validation_keys: Key[Array, " validation"],
    on_chunk: Callable[[PolicyLearner], None] = lambda learner: None,
) -> PolicyLearner:
    """Imagine until `episodes` episodes (counted from the DQN's first) are done, learning from all of them.

    Episode i runs in context i mod n. `validation_keys` are those of the greedy episodes by which policies are
    compared; without any, the last online network is used (paper).
    `on_chunk` is called at chunk edges.
    """
    # As many ticks as the longest episode has: half a second, and the only length that is compiled.
    ticks = -(-environment.horizon // config.steps_per_phase)
    # A copy: every chunk donates the DQN's arrays to the next one, and the caller's are not ours to give.
    learner = learner._replace(dqn=dqn.copy_state(learner.dqn))
    while not bool(dqn.is_finished(learner.dqn, episodes)):
        state = dqn.learn_only(config, environment, contexts, learner.dqn, episodes, ticks)
        learner = learner._replace(dqn=state)
        if len(validation_keys) == 0:
            learner = learner._replace(best=copy_network(state.online))
        else:
            # The same episodes every time, so that policies differ by nothing else.
            keys = jax.random.clone(validation_keys)
            # As it is stored: what is compared must not differ by rounding.
            value = float(np.float32(np.mean(evaluate_imagined(environment, contexts, state.target, keys))))
            if is_better(value, float(learner.best_return)):
                learner = PolicyLearner(state, copy_network(state.target), jnp.asarray(value, jnp.float32))
        on_chunk(learner)
    return learner


def evaluate_imagined(
    environment: AbstractEnvironment, contexts: Any, network: QNetwork, keys: Key[Array, " episodes"]
) -> np.ndarray:
    """Imagined undiscounted returns of the greedy policy, each in its own context and from its own start."""
    return np.asarray(_evaluate(environment, contexts, network, keys), np.float64)


@eqx.filter_jit
def _evaluate(environment: Any, contexts: Any, network: QNetwork, keys: Array) -> Float[Array, " episodes"]:
    count = jax.tree.leaves(contexts)[0].shape[0]
    rows = jnp.arange(keys.shape[0], dtype=jnp.int32) % count
    own = jax.tree.map(lambda leaf: leaf[rows], contexts)
    return jax.vmap(lambda key, context: total_reward(environment, Greedy(network), key, context))(keys, own)
