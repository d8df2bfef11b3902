"""The α-divergence energy with tied factors (black-box α).

With q(W) = Π N(m, v), the prior p(W) = Π N(m₀, λ) and N sites f of equal shape, f(W)^N p(W) ∝ q(W):

    E = −log Z_q − N/(α|B|) Σ_{n∈B} log (1/K) Σ_k exp{ α [ log p(y_n|x_n, w_b, W_k) − log f(W_k) ] } + log Z_prior
    log Z_q = Σ_i ½ log(2π v_i) + m_i²/(2 v_i)
    1/v̂ = (1/v − 1/λ)/N,  m̂/v̂ = (m/v − m₀/λ)/N,  log f(W) = Σ_i −½ W_i²/v̂_i + (m̂_i/v̂_i) W_i

As N log f(W) = log q(W)/p(W) + log Z_q − log Z_prior, the normalisers cancel and the same number is

    E = −N/(α|B|) Σ_{n∈B} log (1/K) Σ_k exp{ α [ log p(y_n|x_n, w_b, W_k) − (1/N) log q(W_k)/p(W_k) ] },

which is what is computed: m²/(2v) is of order 10⁶ and would eat float32's digits. α→0 gives the negative ELBO.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from hipmdp.dynamics.network import Gaussian, MeanField


def log_likelihood(
    target: Float[Array, " state"], mean: Float[Array, " state"], log_noise: Float[Array, " state"]
) -> Float[Array, ""]:
    """log N(y; mean, σ_n²) of one row, summed over dimensions; `log_noise` is log σ_n² per dimension."""
    squares = (target - mean) ** 2 * jnp.exp(-log_noise)
    return -0.5 * jnp.sum(squares + log_noise + math.log(2 * math.pi))


def log_likelihoods(
    target: Float[Array, "rows state"], means: Float[Array, "draws rows state"], log_noise: Float[Array, " state"]
) -> Float[Array, "draws rows"]:
    """log N(y; mean, σ_n²) of every row under every weight draw."""
    over_rows = jax.vmap(log_likelihood, in_axes=(0, 0, None))
    return jax.vmap(over_rows, in_axes=(None, 0, None))(target, means, log_noise)


def log_ratio(posterior: MeanField, prior: Gaussian, normals: Float[Array, " weights"]) -> Float[Array, ""]:
    """log q(W)/p(W) of one draw W = m + √v ε; log q(W) = −½ Σ ε² + log(2π v) needs no W."""
    log_q = -0.5 * (jnp.sum(normals**2) + jnp.sum(jnp.log(2 * jnp.pi * posterior.variance(prior))))
    return log_q - prior.log_density(posterior.draw(prior, normals))


def alpha_energy(
    fits: Float[Array, "draws batch"],
    log_ratios: Float[Array, " draws"],
    *,
    importance: Float[Array, " batch"],
    count: Float[Array, ""],
    alpha: float,
) -> Float[Array, ""]:
    """E of one mini-batch; `fits` are log p(y_n|x_n, w_b, W_k), `count` is N, the number of transitions in the data.

    `importance` weighs rows that were not drawn uniformly; weights of one leave the mean over the mini-batch.
    """
    draws = fits.shape[0]
    exponent = alpha * (fits - (log_ratios / count)[:, None])
    log_mean = jax.nn.logsumexp(exponent, axis=0) - math.log(draws)
    return -count / alpha * jnp.mean(importance * log_mean)
