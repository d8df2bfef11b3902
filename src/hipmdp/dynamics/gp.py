"""The GP HiP-MDP of the paper's first appendix: an exact Gaussian process over (s, one-hot a, w_b), in float64.

Each dimension d of the standardised difference is one GP with its own squared-exponential kernel

    k_d(x, x') = A_d² exp{ −½ Σ_j (x_j − x'_j)² / l_dj² } + σ_d² [x = x'],   x = (s, one-hot a, w_b),

and the latents w_b, which all dimensions share, are inputs like the others: they and the hyper-parameters are found
together by maximising Σ_d log p(y_d) + Σ_b log N(w_b; 0, I). Exact, so that one update costs O(N³): that is its point.
It needs the extra `gp` (tinygp).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float64, Int, PRNGKeyArray

from hipmdp._optimise import apply_optimizer
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.model import Prediction, instance_rows
from hipmdp.dynamics.standardise import Scaling, scaling_of, state_changes

JITTER = 1e-6
"""Added to the noise variance, so that repeated rows keep the kernel matrix positive definite."""


class Hyper(NamedTuple):
    """Hyper-parameters and latents, all dimensions d stacked."""

    log_amplitude: Float64[Array, " state"]
    log_length: Float64[Array, "state inputs"]
    log_noise: Float64[Array, " state"]
    """log σ_d."""
    latents: Float64[Array, "instances latent"]


class GPDynamics(NamedTuple):
    """The data and what was fitted to them: a GP is its data."""

    hyper: Hyper
    features: Float64[Array, "rows features"]
    target: Float64[Array, "rows state"]
    instance: Int[Array, " rows"]
    instances: tuple[int, ...]
    """Ids of the instances, in the order of the latents."""
    scaling: Scaling
    action_count: int


class Part(NamedTuple):
    """The hyper-parameters and the data of one dimension, or of all stacked."""

    log_amplitude: Float64[Array, "*state"]
    log_length: Float64[Array, "*state inputs"]
    log_noise: Float64[Array, "*state"]
    target: Float64[Array, "*state rows"]


def _parts(hyper: Hyper, target: Float64[Array, "rows state"]) -> Part:
    return Part(hyper.log_amplitude, hyper.log_length, hyper.log_noise, target.T)


def _process(part: Part, inputs: Float64[Array, "rows inputs"]) -> Any:
    """The GP of one dimension, of tinygp's type."""
    try:
        from tinygp import GaussianProcess, kernels, transforms
    except ImportError:
        raise ImportError("The GP needs tinygp: install hipmdp[gp].") from None

    kernel = jnp.exp(2 * part.log_amplitude) * transforms.Linear(jnp.exp(-part.log_length), kernels.ExpSquared())
    return GaussianProcess(kernel, inputs, diag=jnp.exp(2 * part.log_noise) + JITTER)


def _inputs(
    hyper: Hyper, features: Float64[Array, "rows features"], instance: Int[Array, " rows"]
) -> Float64[Array, "rows inputs"]:
    return jnp.concatenate([features, hyper.latents[instance]], axis=-1)


@jax.jit
def log_evidence(
    hyper: Hyper,
    features: Float64[Array, "rows features"],
    target: Float64[Array, "rows state"],
    instance: Int[Array, " rows"],
) -> Float64[Array, ""]:
    """Σ_d log p(y_d) + Σ_b log N(w_b; 0, I)."""
    inputs = _inputs(hyper, features, instance)

    # One dimension after the other: side by side they would hold D kernel matrices at once.
    def one(part: Part) -> Float64[Array, ""]:
        return _process(part, inputs).log_probability(part.target)

    fits = jax.lax.map(jax.checkpoint(one), _parts(hyper, target))
    prior = -0.5 * jnp.sum(hyper.latents**2 + jnp.log(2 * jnp.pi))
    return jnp.sum(fits) + prior


def fit_gp(
    transitions: Transitions,
    *,
    key: PRNGKeyArray,
    latent_size: int = 5,
    steps: int = 50,
    learning_rate: float = 0.05,
    start: GPDynamics | None = None,
) -> GPDynamics:
    """Fit latents and hyper-parameters to all of `transitions` by Adam; `start` is an earlier fit to go on from."""
    instances = tuple(transitions.instances)
    scaling = scaling_of(transitions) if start is None else start.scaling
    count, dimensions = transitions.specification.action_count, transitions.specification.state_size
    with jax.enable_x64(True):
        state, action = _states(transitions), jnp.asarray(transitions.action)
        wide = Scaling(*(jnp.asarray(np.asarray(part), jnp.float64) for part in scaling))
        features = jax.vmap(lambda s, a: wide.features(s, a, count))(state, action)
        target = jax.vmap(wide.standardised)(jnp.asarray(state_changes(transitions), jnp.float64))
        rows = instance_rows(transitions, list(instances))
        latents = 0.1 * jax.random.normal(key, (len(instances), latent_size), jnp.float64)
        if start is None:
            lengths = jnp.full((dimensions, features.shape[1] + latent_size), 0.5, jnp.float64)
            hyper = Hyper(jnp.zeros(dimensions), lengths, jnp.full(dimensions, -1.5), latents)
        else:
            # Latents of instances that were there before are kept; new ones start near zero.
            known = [start.instances.index(i) if i in start.instances else -1 for i in instances]
            old = start.hyper.latents[jnp.asarray([max(k, 0) for k in known])]
            kept = jnp.where(jnp.asarray([k >= 0 for k in known])[:, None], old, latents)
            hyper = start.hyper._replace(latents=kept)
        optimizer = optax.adam(learning_rate)
        optimizer_state = optimizer.init(hyper)
        gradient = jax.jit(jax.grad(lambda h, *data: -log_evidence(h, *data)))
        for _ in range(steps):
            slope = gradient(hyper, features, target, rows)
            hyper, optimizer_state = apply_optimizer(optimizer, slope, optimizer_state, hyper)
        return GPDynamics(
            hyper=hyper, features=features, target=target, instance=rows,
            instances=instances, scaling=scaling, action_count=count,
        )  # fmt: skip


@jax.jit
def _predict(
    hyper: Hyper, inputs: Float64[Array, "rows inputs"], target: Float64[Array, "rows state"],
    new: Float64[Array, "new inputs"],
) -> tuple[Float64[Array, "state new"], Float64[Array, "state new"]]:  # fmt: skip
    """(means, variances) at `new` of every dimension."""

    def one(part: Part) -> tuple[Float64[Array, " new"], Float64[Array, " new"]]:
        conditioned = _process(part, inputs).condition(part.target, new, diag=0.0).gp
        return conditioned.loc, conditioned.variance

    return jax.lax.map(one, _parts(hyper, target))


def predict_gp(model: GPDynamics, transitions: Transitions, latent: Float[Array, " latent"]) -> Prediction:
    """Mean and variances of s' − s for the states and actions of `transitions` under one latent."""
    with jax.enable_x64(True):
        wide = Scaling(*(jnp.asarray(np.asarray(part), jnp.float64) for part in model.scaling))
        state, action = _states(transitions), jnp.asarray(transitions.action)
        features = jax.vmap(lambda s, a: wide.features(s, a, model.action_count))(state, action)
        latents = jnp.broadcast_to(jnp.asarray(latent, jnp.float64), (len(transitions), np.shape(latent)[-1]))
        new = jnp.concatenate([features, latents], axis=-1)
        inputs = _inputs(model.hyper, model.features, model.instance)
        mean, variance = _predict(model.hyper, inputs, model.target, new)
        scale, centre = wide.change_scale[None], wide.change_centre[None]
        noise = jnp.broadcast_to((jnp.exp(2 * model.hyper.log_noise) + JITTER)[None], variance.T.shape)
        parts = mean.T * scale + centre, variance.T * scale**2, noise * scale**2
        return Prediction(*(np.asarray(part) for part in parts))


def _states(transitions: Transitions) -> Float64[Array, "rows state"]:
    return jnp.asarray(transitions.specification.from_origin(transitions.state), jnp.float64)
