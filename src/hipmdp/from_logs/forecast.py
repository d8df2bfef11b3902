"""`forecast`: what each action would lead to, with intervals for everything that is not known."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from hipmdp._random import numpy_generator, root_key, stream
from hipmdp.dynamics.model import Dynamics
from hipmdp.from_logs.identify import Identification
from hipmdp.imagination.contexts import Context
from hipmdp.imagination.environment import imagined_state
from hipmdp.pretraining.model import Model

DRAWS = 200
"""Futures of each action."""
STEPS = 20
"""How far ahead, by default."""
INTERVAL = 0.95
"""Share of the futures between low and high."""


class Forecast(NamedTuple):
    """What is predicted when one action is held: actions × steps (the first is now) × state, in natural units."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def forecast(
    model: Model,
    identification: Identification,
    state: np.ndarray,
    steps: int = STEPS,
    seed: int = 0,
    draws: int = DRAWS,
) -> Forecast:
    """Hold each action for `steps` steps from `state`, in futures that differ by w_b, by weights and by noise."""
    if steps < 1:
        raise ValueError(f"The horizon must be at least 1 step, got {steps}.")
    dynamics = model.need_dynamics("forecast")
    # Drawn by NumPy: the generators of JAX take longer to compile than everything else here.
    generator = numpy_generator(stream(root_key(seed), "logs/forecast"))
    draw = generator.standard_normal
    specification = dynamics.specification
    size, start = specification.state_size, specification.from_origin(state)
    belief = identification.belief
    weight = np.exp(np.asarray(belief.log_weight, np.float64))
    hypothesis = generator.choice(len(weight), draws, p=weight / weight.sum())
    factors = np.linalg.cholesky(np.asarray(belief.tempered, np.float64))[hypothesis]
    away = np.einsum("nij,nj->ni", factors, draw((draws, factors.shape[-1])))
    latents = np.asarray(belief.mean)[hypothesis] + away
    spread = np.sqrt(np.asarray(belief.misfit * dynamics.noise_variance()))
    normals = draw((draws, dynamics.posterior.mean.shape[0])), draw((draws, steps, size + dynamics.z_size))
    arrays = (jnp.asarray(a, jnp.float32) for a in (start, latents, spread, *normals))
    futures = np.asarray(_futures(dynamics, *arrays), np.float64)
    tail = (1 - INTERVAL) / 2
    low, high = np.quantile(futures, (tail, 1 - tail), axis=0)
    return Forecast(*(specification.natural(part) for part in (futures.mean(axis=0), low, high)))


@eqx.filter_jit
def _futures(
    dynamics: Dynamics,
    start: Float[Array, " state"],
    latents: Float[Array, "draws latent"],
    spread: Float[Array, " state"],
    weight_normals: Float[Array, "draws weights"],
    step_normals: Float[Array, "draws steps noise"],
) -> Float[Array, "draws actions times state"]:
    weights = jax.vmap(dynamics.posterior.draw, in_axes=(None, 0))(dynamics.prior, weight_normals)
    size = dynamics.specification.state_size

    def one(weights: Array, latent: Array, normals: Array, action: Int[Array, ""]) -> Float[Array, "times state"]:
        context = Context(weights[None], latent)

        def step(state: Array, normals: Array) -> tuple[Array, Array]:
            noise = spread * normals[:size]
            after = imagined_state(dynamics, context, state, action, z=normals[size:], noise=noise)
            return after, after

        path = jax.lax.scan(step, start, normals)[1]
        return jnp.concatenate([start[None], path])

    actions = jnp.arange(dynamics.specification.action_count, dtype=jnp.int32)
    over_actions = jax.vmap(one, in_axes=(None, None, None, 0))
    # The same futures for every action: what differs is what the action does.
    return jax.vmap(over_actions, in_axes=(0, 0, 0, None))(weights, latents, step_normals, actions)
