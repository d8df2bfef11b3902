"""CartPole with a pole of unknown length and mass: a family of Gymnasium environments for hipmdp.

hipmdp check-env cartpole:family
"""

import gymnasium
import jax.numpy as jnp

import hipmdp


def make(theta: dict[str, float]) -> gymnasium.Env:
    """The cart with this pole."""
    env = gymnasium.make("CartPole-v1")
    cart = env.unwrapped
    cart.length, cart.masspole = theta["length"], theta["masspole"]
    # CartPole computes these two when it is made, from the pole it was made with.
    cart.total_mass = cart.masspole + cart.masscart
    cart.polemass_length = cart.masspole * cart.length
    return env


def reward(state, action, next_state):
    """Every step pays 1."""
    return 1.0


def terminated(next_state):
    """The cart leaves the track, or the pole falls."""
    return (jnp.abs(next_state[0]) > 2.4) | (jnp.abs(next_state[2]) > 12 * 2 * jnp.pi / 360)


family = hipmdp.gymnasium_family(
    "cartpole",
    make,
    parameters={"length": (0.25, 1.0), "masspole": (0.05, 0.5)},
    reward=reward,
    terminated=terminated,
    state_names=("position", "velocity", "angle", "rate"),
    action_names=("left", "right"),
    success="survived",
)
