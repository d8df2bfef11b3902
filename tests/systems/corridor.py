"""The smallest family with a hidden parameter: a corridor whose two actions may be swapped."""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from hipmdp.families.protocol import AbstractFamily
from hipmdp.families.specification import Specification
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import DynamicsConfig
from hipmdp.settings.pqn import PQNConfig

_SPECIFICATION = Specification(
    family="corridor",
    state_names=("x",),
    state_low=(-2.0,),
    state_high=(2.0,),
    state_centre=(0.0,),
    state_scale=(1.0,),
    angles=(False,),
    action_names=("left", "right"),
    horizon=20,
    discount=0.9,
)
DYNAMICS = DynamicsConfig(
    hidden=(16, 16), latent_size=2, rounds=2000, weight_draws=4, batch_size=64, learning_rate=5e-3,
    latent_learning_rate=1e-2, tune_rounds=100, scratch_rounds=300, tune_widening=10, infer_steps=60,
)  # fmt: skip
DQN = DDQNConfig(
    hidden=(32, 32), lanes=4, minibatches=2, epsilon_decay=0.98, discount=0.9, learning_rate=2e-3, target_rate=0.02,
    normalised=True, reward_scale=None, squash=0.01,
)  # fmt: skip
TRANSFER = AdaptationConfig(dqn=DQN, imagined_episodes=200, weight_draws=4, update_rounds=50)


PQN = PQNConfig(
    hidden=(32, 32), groups=4, members=4, steps_per_phase=8, minibatches=2, learning_rate=3e-3, discount=0.9
)
AMORTISE = AmortiseConfig(PQN, steps=40_000, pools=5, latent_spread=0.1, validation_draws=4)


class CorridorTheta(NamedTuple):
    direction: Any
    """1: actions as named; −1: swapped."""


class Corridor(AbstractFamily):
    """Walk 0.4 per step from the middle to x > 1, for 10; every step costs 1. x < −1.9 is a wall."""

    baseline: ClassVar[CorridorTheta] = CorridorTheta(1.0)
    fixed_start: ClassVar[bool] = False

    @property
    def specification(self):
        return _SPECIFICATION

    def sample_instance(self, key):
        return CorridorTheta(jnp.where(jax.random.bernoulli(key), 1.0, -1.0))

    def well_behaved_parts(self, theta):
        return {"known": jnp.abs(jnp.asarray(theta.direction)) == 1}

    def check_parameter(self, name, value):
        if abs(value) != 1:
            raise ValueError("direction must be 1 or −1.")

    def initial_state(self, key, theta):
        return jax.random.uniform(key, (1,), jnp.float32, -0.2, 0.2)

    def dynamics(self, key, state, action, theta):
        step = 0.4 * (2 * action.astype(jnp.float32) - 1) * theta.direction
        return jnp.clip(state + step, -1.9, 2.0)

    def reward(self, state, action, next_state, theta=None):
        return jnp.where(next_state[0] > 1, 10.0, -1.0)

    def terminated(self, next_state, theta=None):
        return next_state[0] > 1


CORRIDOR = Corridor()
BOTH = ({"direction": 1.0}, {"direction": -1.0})
