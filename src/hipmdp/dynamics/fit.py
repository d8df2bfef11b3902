"""Fitting W and the latents: alternating small steps on the α-divergence energy, one jit over a scan.

A round is `weight_steps` steps on W and the noise, then `latent_steps` steps on the w_b's, each on a mini-batch that is
drawn by squared error (prioritized replay) and weighed by its importance.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp.data import replay as replays
from hipmdp.dynamics.config import DynamicsConfig, LatentRole
from hipmdp.dynamics.energy import alpha_energy, log_likelihoods, log_ratio
from hipmdp.dynamics.model import SMALLEST_LOG_NOISE, Dynamics, Rows, padded, padded_size
from hipmdp.dynamics.network import Gaussian, MeanField, predicted_change
from hipmdp.dynamics.noise import from_pool, make_pool

CHUNK_ROUNDS, CHUNK_STEPS = 500, 1000
"""Rounds and gradient steps between two reports, at most: a second or two. A paper round has a thousand steps."""


class Parameters(NamedTuple):
    """What the gradient steps move, in two groups that take turns."""

    network: tuple[MeanField, Float[Array, " state"]]
    """q(W) and log σ_n²."""
    latents: Float[Array, "instances latent"]


class FitState(NamedTuple):
    """Everything that changes during a fit."""

    parameters: Parameters
    optimizers: dict[str, optax.OptState]
    """By the name of the group."""
    replay: replays.Replay
    step: Int[Array, ""]
    """Rounds so far."""
    key: PRNGKeyArray


class Schedule(NamedTuple):
    """Learning rates of the two groups, and after how many rounds they have fallen to zero."""

    weight_rate: float
    latent_rate: float
    rounds: int


def _optimizer() -> optax.GradientTransformation:
    """Adam without its rate, which is applied outside because it follows the rounds."""
    return optax.scale_by_adam()


def init(dynamics: Dynamics, rows: Rows, key: PRNGKeyArray, capacity: int = 256) -> FitState:
    """Start a fit on all of `rows`; with room for `capacity` of them, a longer log needs no new compilation."""
    # A copy: the state is donated, and the model that a fit starts from must not change.
    parameters = jax.tree.map(jnp.copy, Parameters((dynamics.posterior, dynamics.log_noise), dynamics.latents))
    optimizers = {group: _optimizer().init(part) for group, part in parameters._asdict().items()}
    count = rows.instance.shape[0]
    capacity = max(capacity, padded_size(count))
    replay = _filled_replay(padded(rows, capacity), jnp.asarray(np.arange(capacity) < count))
    return FitState(parameters, optimizers, replay, jnp.zeros((), jnp.int32), key)


@jax.jit
def _filled_replay(rows: Rows, real: Bool[Array, " rows"]) -> replays.Replay:
    empty = replays.init(jax.tree.map(lambda leaf: leaf[0], rows), real.shape[0])
    return replays.add(empty, rows, real)


def batch_energy(
    config: DynamicsConfig,
    sizes: tuple[int, ...],
    prior: Gaussian,
    latent_prior: Gaussian,
    parameters: Parameters,
    rows: Rows,
    importance: Float[Array, " batch"],
    count: Float[Array, ""],
    normals: Float[Array, "draws weights"],
    inputs: Float[Array, "draws batch one"] | None,
) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
    """E of a mini-batch with the latents' prior term, and each row's squared error (priority).

    The prior of the latents, −Σ_b log N(w_b; μ_w, Σ_w), counts once per instance, whatever the mini-batch.
    """
    (posterior, log_noise), latents = parameters
    log_noise = jnp.maximum(log_noise, SMALLEST_LOG_NOISE)
    weights = jax.vmap(posterior.draw, in_axes=(None, 0))(prior, normals)
    ratios = jax.vmap(log_ratio, in_axes=(None, None, 0))(posterior, prior, normals)
    latent = latents[rows.instance]

    def over_rows(weights: Array, inputs: Array | None) -> Array:
        features = rows.features if inputs is None else jnp.concatenate([rows.features, inputs], axis=-1)
        return jax.vmap(lambda f, w: predicted_change(config.role, sizes, weights, f, w))(features, latent)

    means = jax.vmap(over_rows, in_axes=(0, None if inputs is None else 0))(weights, inputs)
    energy = alpha_energy(log_likelihoods(rows.target, means, log_noise), ratios, importance, count, config.alpha)
    if config.role is not LatentRole.NONE:
        energy = energy - jnp.sum(jax.vmap(latent_prior.log_density)(latents))
    errors = jnp.sum((jnp.mean(means, axis=0) - rows.target) ** 2, axis=-1)
    return energy, jax.lax.stop_gradient(errors)


def _inputs(config: DynamicsConfig, key: PRNGKeyArray) -> Float[Array, "draws batch one"] | None:
    """z of every draw and row, where the network has a stochastic input."""
    if not config.stochastic_input:
        return None
    return jax.random.normal(key, (config.weight_draws, config.batch_size, 1), jnp.float32)


def _take_step(
    group: str,
    config: DynamicsConfig,
    sizes: tuple[int, ...],
    prior: Gaussian,
    latent_prior: Gaussian,
    rate: Float[Array, ""],
    pool: Float[Array, " pool"],
    state: FitState,
) -> FitState:
    """One mini-batch: sample, move one group of parameters, set priorities."""
    key, sample_key, normal_key, input_key = jax.random.split(state.key, 4)
    batch = replays.sample(state.replay, sample_key, config.batch_size, config.importance_exponent)
    # Divided by their mean, so that the sum over the mini-batch still stands for |B| rows.
    importance = batch.weights / jnp.mean(batch.weights)
    normals = from_pool(pool, normal_key, config.weight_draws, prior.mean.shape[0])
    count = state.replay.size.astype(jnp.float32)
    if config.largest_count is not None:
        count = jnp.minimum(count, config.largest_count)

    def loss(part: Any) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
        parameters = state.parameters._replace(**{group: part})
        inputs = _inputs(config, input_key)
        return batch_energy(
            config, sizes, prior, latent_prior, parameters, batch.items, importance, count, normals, inputs
        )

    old = getattr(state.parameters, group)
    gradient, errors = jax.grad(loss, has_aux=True)(old)
    # optax raises a float to its integer step count, which strict promotion (our tests) forbids.
    with jax.numpy_dtype_promotion("standard"):
        direction, optimizer = _optimizer().update(gradient, state.optimizers[group])
    if group == "network":
        faster = direction[0].rho * config.rho_rate_factor
        direction = eqx.tree_at(lambda d: d[0].rho, direction, faster)
    moved = jax.tree.map(lambda value, step: value - rate * step, old, direction)
    replay = replays.set_priorities(state.replay, batch.indices, errors, config.priority_exponent)
    parameters = state.parameters._replace(**{group: moved})
    return FitState(parameters, {**state.optimizers, group: optimizer}, replay, state.step, key)


@eqx.filter_jit(donate="all-except-first")
def _run(
    kept: tuple[DynamicsConfig, tuple[int, ...], Gaussian, Gaussian, tuple[Any, ...], Any], state: FitState
) -> FitState:
    config, sizes, prior, latent_prior, (weight_rate, latent_rate, rounds), chunk = kept
    key, pool_key = jax.random.split(state.key)
    pool = make_pool(pool_key, config.weight_draws, prior.mean.shape[0])

    def one_round(_: Any, state: FitState) -> FitState:
        along = jnp.minimum(state.step.astype(jnp.float32) / rounds, 1)
        fall = 0.5 * (1 + jnp.cos(jnp.pi * along)) if config.decay else jnp.ones((), jnp.float32)

        def steps(group: str, count: int, rate: Array, state: FitState) -> FitState:
            def body(_: Any, state: FitState) -> FitState:
                return _take_step(group, config, sizes, prior, latent_prior, rate, pool, state)

            return body(0, state) if count == 1 else jax.lax.fori_loop(0, count, body, state)

        state = steps("network", config.weight_steps, weight_rate * fall, state)
        if config.role is not LatentRole.NONE and config.latent_steps:
            state = steps("latents", config.latent_steps, latent_rate * fall, state)
        return state._replace(step=state.step + 1)

    return jax.lax.fori_loop(0, chunk, one_round, state._replace(key=key))


def run_rounds(
    dynamics: Dynamics, config: DynamicsConfig, latent_prior: Gaussian, schedule: Schedule, state: FitState, chunk: int
) -> FitState:
    """`chunk` rounds in one jitted call. `state` is donated: use what is returned."""
    rates = tuple(jnp.asarray(value, jnp.float32) for value in schedule)
    kept = (config, dynamics.sizes, dynamics.prior, latent_prior, rates, jnp.asarray(chunk, jnp.int32))
    return _run(kept, state)


def run_schedule(
    dynamics: Dynamics,
    config: DynamicsConfig,
    latent_prior: Gaussian,
    schedule: Schedule,
    state: FitState,
    report: Callable[[int, FitState], None] = lambda done, state: None,
) -> FitState:
    """All rounds of the schedule, in chunks of a second or two; `report` gets the rounds done and the state."""
    longest = max(1, min(CHUNK_ROUNDS, CHUNK_STEPS // (config.weight_steps + config.latent_steps)))
    for done in range(0, schedule.rounds, longest):
        chunk = min(longest, schedule.rounds - done)
        state = run_rounds(dynamics, config, latent_prior, schedule, state, chunk)
        report(done + chunk, state)
    return state


def fitted(dynamics: Dynamics, state: FitState) -> Dynamics:
    """The model with what a fit has found."""
    (posterior, log_noise), latents = state.parameters
    return eqx.tree_at(lambda d: (d.posterior, d.log_noise, d.latents), dynamics, (posterior, log_noise, latents))
