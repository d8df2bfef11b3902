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

from hipmdp._optimise import apply_optimizer, cosine_adam
from hipmdp.data import replay as replays
from hipmdp.dynamics.energy import alpha_energy, log_likelihoods, log_ratio
from hipmdp.dynamics.model import SMALLEST_LOG_NOISE, Dynamics, Rows, padded
from hipmdp.dynamics.network import Gaussian, MeanField
from hipmdp.dynamics.noise import from_pool, make_pool
from hipmdp.dynamics.standardise import padded_size
from hipmdp.settings.dynamics import DynamicsConfig, LatentRole

CHUNK_ROUNDS, CHUNK_STEPS = 500, 1000
"""Rounds and gradient steps between two calls of `on_chunk`, at most: a second or two. A paper round has a thousand
steps."""


class Parameters(NamedTuple):
    """What the gradient steps move, in two groups that take turns."""

    network: tuple[MeanField, Float[Array, " state"]]
    """q(W) and log σ_n²."""
    latents: Float[Array, "instances latent"]


class Optimizers(NamedTuple):
    """The optimizer of each group of `Parameters`, or its state."""

    network: Any
    latents: Any


class FitState(NamedTuple):
    """Everything that changes during a fit."""

    parameters: Parameters
    optimizers: Optimizers
    """States of Adam."""
    replay: replays.Replay
    key: PRNGKeyArray


class Schedule(NamedTuple):
    """Learning rates of the two groups at the start, and after how many rounds they have fallen to zero.

    Not part of what is compiled: one compiled loop serves every schedule.
    """

    weight_rate: float | Float[Array, ""]
    latent_rate: float | Float[Array, ""]
    rounds: int | Float[Array, ""]


class MiniBatch(NamedTuple):
    """What one gradient step sees of the data, and the random numbers it uses."""

    rows: Rows
    importance: Float[Array, " batch"]
    """Weights of the rows; their mean is one."""
    normals: Float[Array, "draws weights"]
    """ε of W = m + √v ε, one row per weight draw."""
    z: Float[Array, "draws batch z"]
    """The stochastic input (`Dynamics.draw_z`)."""


def _optimizers(config: DynamicsConfig, schedule: Schedule) -> Optimizers:
    """Adam on each group, the rate constant or falling; ρ moves `rho_rate_factor` times as fast as the means."""

    def adam(rate: float | Float[Array, ""], steps: int) -> optax.GradientTransformation:
        return cosine_adam(rate, schedule.rounds * max(1, steps)) if config.decay else optax.adam(rate)

    def scaled(updates: Any, _: Any) -> Any:
        return eqx.tree_at(lambda u: u[0].rho, updates, config.rho_rate_factor * updates[0].rho)

    network = adam(schedule.weight_rate, config.weight_steps)
    if config.rho_rate_factor != 1:
        network = optax.chain(network, optax.stateless(scaled))
    return Optimizers(network, adam(schedule.latent_rate, config.latent_steps))


def init(dynamics: Dynamics, rows: Rows, key: PRNGKeyArray, capacity: int = 256) -> FitState:
    """Start a fit on all of `rows`; with room for `capacity` of them, a longer log needs no new compilation."""
    # A copy: the state is donated, and the model that a fit starts from must not change.
    parameters = jax.tree.map(jnp.copy, Parameters((dynamics.posterior, dynamics.log_noise), dynamics.latents))
    optimizers = _optimizers(dynamics.config, Schedule(1.0, 1.0, 1))
    states = Optimizers(*(optimizer.init(part) for optimizer, part in zip(optimizers, parameters, strict=True)))
    count = rows.instance.shape[0]
    capacity = max(capacity, padded_size(count))
    replay = _filled_replay(padded(rows, capacity), jnp.asarray(np.arange(capacity) < count))
    return FitState(parameters=parameters, optimizers=states, replay=replay, key=key)


@jax.jit
def _filled_replay(rows: Rows, real: Bool[Array, " rows"]) -> replays.Replay:
    empty = replays.init(jax.tree.map(lambda leaf: leaf[0], rows), real.shape[0])
    return replays.add(empty, rows, real)


def batch_energy(
    dynamics: Dynamics,
    parameters: Parameters,
    batch: MiniBatch,
    *,
    latent_prior: Gaussian,
    count: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
    """E of a mini-batch with the latents' prior term, and each row's squared error (priority).

    `dynamics` gives the prior of W and the settings; `count` is N, the number of transitions in the data. The prior of
    the latents, −Σ_b log N(w_b; μ_w, Σ_w), counts once per instance, whatever the mini-batch.
    """
    (posterior, log_noise), latents = parameters
    config, prior, rows = dynamics.config, dynamics.prior, batch.rows
    log_noise = jnp.maximum(log_noise, SMALLEST_LOG_NOISE)
    weights = jax.vmap(posterior.draw, in_axes=(None, 0))(prior, batch.normals)
    ratios = jax.vmap(log_ratio, in_axes=(None, None, 0))(posterior, prior, batch.normals)
    over_rows = jax.vmap(dynamics.change, in_axes=(None, 0, 0, 0))
    over_draws = jax.vmap(over_rows, in_axes=(0, None, None, 0))
    means = over_draws(weights, rows.features, latents[rows.instance], batch.z)
    fits = log_likelihoods(rows.target, means, log_noise)
    energy = alpha_energy(fits, ratios, importance=batch.importance, count=count, alpha=config.alpha)
    if config.role is not LatentRole.NONE:
        energy = energy - jnp.sum(jax.vmap(latent_prior.log_density)(latents))
    errors = jnp.sum((jnp.mean(means, axis=0) - rows.target) ** 2, axis=-1)
    return energy, jax.lax.stop_gradient(errors)


class _Fixed(NamedTuple):
    """What a fit does not change; not donated."""

    dynamics: Dynamics
    """The prior of W and the settings; its posterior and latents are those at the start, and not used."""
    latent_prior: Gaussian
    schedule: Schedule
    chunk: Int[Array, ""]
    """Rounds of this call."""


def _take_step(
    fixed: _Fixed,
    group: Callable[[Any], Any],
    optimizer: optax.GradientTransformation,
    pool: Float[Array, " pool"],
    state: FitState,
) -> FitState:
    """One mini-batch: sample, move one group of parameters, set priorities; `group` picks a field of `Parameters`."""
    dynamics, config = fixed.dynamics, fixed.dynamics.config
    key, sample_key, normal_key, z_key = jax.random.split(state.key, 4)
    sample = replays.sample(state.replay, sample_key, config.batch_size, config.importance_exponent)
    batch = MiniBatch(
        rows=sample.items,
        # Divided by their mean, so that the sum over the mini-batch still stands for |B| rows.
        importance=sample.weights / jnp.mean(sample.weights),
        normals=from_pool(pool, normal_key, draws=config.weight_draws, weights=dynamics.prior.mean.shape[0]),
        z=dynamics.draw_z(z_key, (config.weight_draws, config.batch_size)),
    )
    count = state.replay.size.astype(jnp.float32)
    if config.largest_count is not None:
        count = jnp.minimum(count, config.largest_count)

    def loss(part: Any) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
        parameters = eqx.tree_at(group, state.parameters, part)
        return batch_energy(dynamics, parameters, batch, latent_prior=fixed.latent_prior, count=count)

    old = group(state.parameters)
    gradient, errors = jax.grad(loss, has_aux=True)(old)
    moved, optimizer_state = apply_optimizer(optimizer, gradient, group(state.optimizers), old)
    return FitState(
        parameters=eqx.tree_at(group, state.parameters, moved),
        optimizers=eqx.tree_at(group, state.optimizers, optimizer_state),
        replay=replays.set_priorities(state.replay, sample.indices, errors, config.priority_exponent),
        key=key,
    )


@eqx.filter_jit(donate="all-except-first")
def _run(fixed: _Fixed, state: FitState) -> FitState:
    config = fixed.dynamics.config
    key, pool_key = jax.random.split(state.key)
    pool = make_pool(pool_key, draws=config.weight_draws, weights=fixed.dynamics.prior.mean.shape[0])
    optimizers = _optimizers(config, fixed.schedule)

    def steps(group: Callable[[Any], Any], count: int, state: FitState) -> FitState:
        def body(_: Any, state: FitState) -> FitState:
            return _take_step(fixed, group, group(optimizers), pool, state)

        return body(0, state) if count == 1 else jax.lax.fori_loop(0, count, body, state)

    def one_round(_: Any, state: FitState) -> FitState:
        state = steps(lambda groups: groups.network, config.weight_steps, state)
        if config.role is not LatentRole.NONE and config.latent_steps:
            state = steps(lambda groups: groups.latents, config.latent_steps, state)
        return state

    return jax.lax.fori_loop(0, fixed.chunk, one_round, state._replace(key=key))


def run_rounds(
    dynamics: Dynamics, state: FitState, *, latent_prior: Gaussian, schedule: Schedule, chunk: int
) -> FitState:
    """`chunk` rounds in one jitted call. `state` is donated: use what is returned."""
    rates = Schedule(*(jnp.asarray(value, jnp.float32) for value in schedule))
    fixed = _Fixed(dynamics=dynamics, latent_prior=latent_prior, schedule=rates, chunk=jnp.asarray(chunk, jnp.int32))
    return _run(fixed, state)


def run_schedule(
    dynamics: Dynamics,
    state: FitState,
    *,
    latent_prior: Gaussian,
    schedule: Schedule,
    on_chunk: Callable[[int, FitState], None] = lambda done, state: None,
    begin: int = 0,
) -> FitState:
    """All rounds of the schedule, in chunks of a second or two; `on_chunk` gets the rounds done and the state.

    A fit that was stopped at a chunk's edge goes on from that state, after `begin` rounds, to the same bits.
    """
    config, rounds = dynamics.config, int(schedule.rounds)
    longest = max(1, min(CHUNK_ROUNDS, CHUNK_STEPS // (config.weight_steps + config.latent_steps)))
    for done in range(begin, rounds, longest):
        chunk = min(longest, rounds - done)
        state = run_rounds(dynamics, state, latent_prior=latent_prior, schedule=schedule, chunk=chunk)
        on_chunk(done + chunk, state)
    return state


def without_rows(state: FitState) -> FitState:
    """The state without the data, which it does not change: what a checkpoint holds."""
    return state._replace(replay=state.replay._replace(items=()))


def with_rows(state: FitState, first: FitState) -> FitState:
    """The inverse: the data come from the first state of the same fit."""
    return state._replace(replay=state.replay._replace(items=first.replay.items))


def fitted(dynamics: Dynamics, state: FitState) -> Dynamics:
    """The model with what a fit has found."""
    (posterior, log_noise), latents = state.parameters
    return eqx.tree_at(lambda d: (d.posterior, d.log_noise, d.latents), dynamics, (posterior, log_noise, latents))
