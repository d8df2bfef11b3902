"""PQN inside imagination, round by round, as long as the imagined return rises; the best policy on the way is kept.

The greedy policy is evaluated every few iterations, on the same imagined episodes every time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from hipmdp.control import pqn
from hipmdp.control.policy_learner import evaluate_imagined
from hipmdp.control.pqn import FIRST_VALUES, PQNState
from hipmdp.control.q_network import QNetwork, copy_network, scaled_values
from hipmdp.control.selection import has_risen, is_better
from hipmdp.families.rollout import AbstractEnvironment, Members
from hipmdp.settings.pqn import PQNConfig

LOOKS = 16
"""Evaluations in a round, and chunk edges: less than a second apart."""


class RoundsLearner(NamedTuple):
    """A PQN in imagination and the best policy so far."""

    pqn: PQNState
    best: QNetwork
    """Its values are h(Q)."""
    best_return: Float[Array, ""]
    """Its imagined return; −∞ before the first evaluation, and whenever the model has changed."""
    own_return: Float[Array, ""]
    """The highest of the PQN's own policies, which begins with that of the policy it goes on from."""
    before: Float[Array, ""]
    """`own_return` when the last quarter of the present round began."""
    finished: Bool[Array, ""]
    """Whether no further round follows."""

    def valued(self, value: Float[Array, ""], *, is_own: bool) -> "RoundsLearner":
        """With the imagined return of the policy there is, which the PQN goes on from where it `is_own`."""
        own = value if is_own else self.own_return
        return self._replace(best_return=value, own_return=own, before=own)


def new_rounds_learner(
    network: QNetwork,
    config: PQNConfig,
    key: PRNGKeyArray,
    *,
    best: QNetwork | None = None,
    unit: float | None = None,
) -> RoundsLearner:
    """A learner that begins with `network`; where the unit of its values is known, it is a trained one."""
    first = scaled_values(network, FIRST_VALUES if unit is None else config.squash)
    state = pqn.new_state(config, first, network.centre.shape[0], key=key, unit=unit)
    none = jnp.asarray(-jnp.inf, jnp.float32)
    kept = copy_network(network if best is None else best)
    return RoundsLearner(state, kept, none, none, none, jnp.asarray(False))


def learn_in_rounds(
    config: PQNConfig,
    environment: AbstractEnvironment,
    contexts: Any,
    members: Members,
    learner: RoundsLearner,
    *,
    iterations: int,
    rounds: int,
    keys: Key[Array, " validation"],
    on_chunk: Callable[[RoundsLearner], None] = lambda learner: None,
    is_late: Callable[[], bool] = lambda: False,
) -> RoundsLearner:
    """Rounds of `iterations`, another one if the last quarter still raised the imagined return of its policies.

    `keys` are those of the greedy imagined episodes, each in one of `contexts`; without any, all rounds are run and the
    last policy is used. `members` are those of the lanes. No
    round begins once `is_late`, but the first. It goes on from any chunk.
    """
    look, quarter = max(1, iterations // LOOKS), iterations - iterations // 4
    # A copy: every chunk donates the arrays to the next one, and the caller's are not ours to give.
    learner = learner._replace(pqn=jax.tree.map(jnp.copy, learner.pqn))
    while not bool(learner.finished):
        done = int(learner.pqn.iteration)
        if done == 0:
            learner = learner._replace(pqn=pqn.begin(config, environment, members, learner.pqn))
        place = done % iterations
        if place <= quarter:
            learner = learner._replace(before=learner.own_return)
        count = min(look, iterations - place)
        state = pqn.run_iterations(config, environment, members, learner.pqn, iterations=count, total=iterations)
        learner = learner._replace(pqn=state)
        if len(keys) == 0:
            learner = learner._replace(best=pqn.values_network(config, state.online))
        else:
            value = imagined_return(environment, contexts, state.online, keys)
            learner = learner._replace(own_return=jnp.maximum(learner.own_return, value))
            if is_better(float(value), float(learner.best_return)):
                learner = learner._replace(best=pqn.values_network(config, state.online), best_return=value)
        if place + count == iterations:
            rises = len(keys) == 0 or has_risen(float(learner.own_return), float(learner.before))
            over = (done + count) // iterations >= rounds or not rises or is_late()
            learner = learner._replace(finished=jnp.asarray(over))
        on_chunk(learner)
    return learner


def imagined_return(
    environment: AbstractEnvironment, contexts: Any, network: QNetwork, keys: Key[Array, " validation"]
) -> Float[Array, ""]:
    """Mean imagined return of the greedy policy, as it is stored: what is compared must not differ by rounding."""
    returns = evaluate_imagined(environment, contexts, network, jax.random.clone(keys))
    return jnp.asarray(np.mean(returns), jnp.float32)
