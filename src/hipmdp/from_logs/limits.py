"""Limits on a system of which there is only a log: the chance of breaking one after each action."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp._random import stream
from hipmdp.control.caution import Chances, allowed_actions, choose
from hipmdp.control.guard import Guard, boundary, draw_count
from hipmdp.control.guarded import StateGreedy
from hipmdp.control.q_network import QNetwork
from hipmdp.data.transitions import Transitions
from hipmdp.from_logs.system import System
from hipmdp.imagination.build import Surroundings, noisy_environment
from hipmdp.imagination.contexts import KnownContexts, NoisyContext, instance_contexts
from hipmdp.settings.limits import Limits


def log_guard(
    system: System, log: Transitions, around: Surroundings, network: QNetwork, limits: Limits, *, key: PRNGKeyArray
) -> Guard:
    """A guard whose draws are what the log leaves open, and whose policy is argmax_a Q(s, a)."""
    dynamics, count = system.dynamics, draw_count(limits.risk)
    contexts = instance_contexts(
        dynamics,
        system.latent,
        key=stream(key, "logs/limits"),
        draws=count,
        mean=False,
        deviations=system.deviations(log, key=key),
    )
    misfit = 1.0 if system.belief is None else system.belief.misfit
    noise = jnp.sqrt(misfit * dynamics.noise_variance())
    return Guard(
        noisy_environment(dynamics, around.extended(log)),
        KnownContexts(NoisyContext(contexts, jnp.broadcast_to(noise, (count, *noise.shape)))),
        StateGreedy(network),
        boundary(limits, dynamics.specification),
        within=limits.within,
        risk=limits.risk,
    )


def guarded_action(
    guard: Guard, state: np.ndarray, values: np.ndarray, *, key: PRNGKeyArray
) -> tuple[int, np.ndarray, np.ndarray]:
    """The action with the highest value of those that are allowed, or the safest; chances; and which are allowed."""
    chances = _chances(guard, key, jnp.asarray(state), len(values))
    # Ranks: float32 would make values alike that are not.
    ranks = jnp.asarray(np.argsort(np.argsort(values, kind="stable"), kind="stable"), jnp.float32)
    action, allowed = int(choose(ranks, chances, guard.risk)), np.asarray(allowed_actions(chances, guard.risk))
    return action, np.asarray(chances.chance, np.float64), allowed


@eqx.filter_jit
def _chances(guard: Guard, key: PRNGKeyArray, state: Float[Array, " state"], actions: Any) -> Chances:
    return guard.chances(key, state, None, actions)
