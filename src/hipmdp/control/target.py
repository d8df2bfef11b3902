"""The double-Q target and its error, for one transition; the discount carries termination (it is 0 there)."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def squash(x: Float[Array, "..."], strength: float) -> Float[Array, "..."]:
    """h(x) = sign(x) log(1 + c |x|) / c; the identity for c = 0."""
    return x if strength == 0 else jnp.sign(x) * jnp.log1p(strength * jnp.abs(x)) / strength


LARGEST_EXPONENT = 80.0
"""float32 ends at e^88: a network that is far off in some state must not make its target infinite, and itself NaN."""


def unsquash(y: Float[Array, "..."], strength: float) -> Float[Array, "..."]:
    """The inverse of `squash`."""
    if strength == 0:
        return y
    return jnp.sign(y) * jnp.expm1(jnp.minimum(strength * jnp.abs(y), LARGEST_EXPONENT)) / strength


def double_q_target(
    r_t: Float[Array, ""],
    discount_t: Float[Array, ""],
    q_t_online: Float[Array, " actions"],
    q_t_target: Float[Array, " actions"],
    strength: float = 0.0,
) -> Float[Array, ""]:
    """y = r + γ Q⁻(s', argmax_a Q(s', a)): the online net chooses, the target net values.

    With squashing, networks hold h(Q): y = h(r + γ h⁻¹(Q⁻(s', argmax_a Q(s', a)))).
    """
    chosen = q_t_target[jnp.argmax(q_t_online)]
    return squash(r_t + discount_t * unsquash(chosen, strength), strength)


def td_error(q_tm1: Float[Array, " actions"], a_tm1: Int[Array, ""], target: Float[Array, ""]) -> Float[Array, ""]:
    """Target minus Q(s, a)."""
    return target - q_tm1[a_tm1]
