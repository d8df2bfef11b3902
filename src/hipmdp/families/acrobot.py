"""Acrobot: swing the foot of a two-link pendulum above the goal line; lengths and masses are hidden.

"Book" equations (Sutton & Barto), one classical Runge-Kutta step of 0.2 s per action:

    d1 = m1 lc1² + m2 (l1² + lc2² + 2 l1 lc2 cos θ2) + I1 + I2
    d2 = m2 (lc2² + l1 lc2 cos θ2) + I2
    φ2 = m2 lc2 g cos(θ1 + θ2 − π/2)
    φ1 = −m2 l1 lc2 θ̇2² sin θ2 − 2 m2 l1 lc2 θ̇2 θ̇1 sin θ2 + (m1 lc1 + m2 l1) g cos(θ1 − π/2) + φ2
    θ̈2 = (τ + d2/d1 φ1 − m2 l1 lc2 θ̇1² sin θ2 − φ2) / (m2 lc2² + I2 − d2²/d1)
    θ̈1 = −(d2 θ̈2 + φ1) / d1
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp._errors import in_range
from hipmdp.families.base_family import SET_SIZES
from hipmdp.families.protocol import AbstractFamily
from hipmdp.families.rollout import Policy
from hipmdp.families.scripted import acrobot_pump
from hipmdp.families.specification import FamilyFacts, Specification, wrap_angle

TIME_STEP = 0.2
CENTRE = 0.5
"""lc1 = lc2: distance of a link's centre of mass from its joint; does not scale with the length."""
INERTIA = 1.0
GRAVITY = 9.8
MAX_RATE_1, MAX_RATE_2 = 4 * math.pi, 9 * math.pi
START_SPREAD = 0.1
GOAL_REWARD = 10.0
STEP_COST = 0.05

_SPECIFICATION = Specification(
    family="acrobot",
    state_names=("angle1", "angle2", "rate1", "rate2"),
    state_low=(-math.pi, -math.pi, -MAX_RATE_1, -MAX_RATE_2),
    state_high=(math.pi, math.pi, MAX_RATE_1, MAX_RATE_2),
    state_centre=(0.0, 0.0, 0.0, 0.0),
    state_scale=(1.0, 1.0, 2.0, 4.0),
    angles=(True, True, False, False),
    action_names=("-1", "0", "+1"),
    horizon=400,
    discount=0.99,
)


class AcrobotTheta(NamedTuple):
    """θ of the acrobot: lengths and masses of its links."""

    l1: Any
    """Length of the upper link."""
    l2: Any
    """Length of the lower link."""
    m1: Any
    """Mass of the upper link."""
    m2: Any
    """Mass of the lower link."""


_Scalars = tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""], Float[Array, ""]]


def foot_height(state: Float[Array, "4 ..."], theta: AcrobotTheta) -> Float[Array, "..."]:
    """Height of the foot above the upper joint: −l1 cos θ1 − l2 cos(θ1 + θ2)."""
    return -theta.l1 * jnp.cos(state[0]) - theta.l2 * jnp.cos(state[0] + state[1])


def derivative(y: _Scalars, torque: Float[Array, ""], theta: AcrobotTheta) -> _Scalars:
    """Time derivative of (θ1, θ2, θ̇1, θ̇2), the equations of the module's docstring."""
    angle1, angle2, rate1, rate2 = y
    l1, m1, m2 = theta.l1, theta.m1, theta.m2
    cos2, sin2 = jnp.cos(angle2), jnp.sin(angle2)
    d1 = m1 * CENTRE**2 + m2 * (l1**2 + CENTRE**2 + 2 * l1 * CENTRE * cos2) + 2 * INERTIA
    d2 = m2 * (CENTRE**2 + l1 * CENTRE * cos2) + INERTIA
    # cos(x − π/2) = sin(x)
    phi2 = m2 * CENTRE * GRAVITY * jnp.sin(angle1 + angle2)
    phi1 = (
        -m2 * l1 * CENTRE * rate2**2 * sin2
        - 2 * m2 * l1 * CENTRE * rate2 * rate1 * sin2
        + (m1 * CENTRE + m2 * l1) * GRAVITY * jnp.sin(angle1)
        + phi2
    )
    acceleration2 = (torque + d2 / d1 * phi1 - m2 * l1 * CENTRE * rate1**2 * sin2 - phi2) / (
        m2 * CENTRE**2 + INERTIA - d2**2 / d1
    )
    acceleration1 = -(d2 * acceleration2 + phi1) / d1
    return rate1, rate2, acceleration1, acceleration2


class Acrobot(AbstractFamily):
    """The two-link pendulum; each of l1, l2, m1, m2 is 1 times N(1, sd²)."""

    baseline: ClassVar[AcrobotTheta] = AcrobotTheta(1.0, 1.0, 1.0, 1.0)
    fixed_start: ClassVar[bool] = False
    reward_needs_theta: ClassVar[bool] = True
    ships_instances: ClassVar[bool] = True
    set_sizes: ClassVar[Mapping[str, int]] = {**SET_SIZES, "train": 8}

    sd: float = eqx.field(static=True, default=0.10)
    """Relative standard deviation of the prior; 0.25 is the "wide" family."""

    def __check_init__(self) -> None:
        in_range("acrobot option", "sd", self.sd, 0, 1)

    @property
    def specification(self) -> Specification:
        """Names, bounds and counts."""
        return _SPECIFICATION

    @property
    def instance_file(self) -> str | None:
        """Files exist for sd 0.10 and 0.25."""
        return {0.10: "acrobot.json", 0.25: "acrobot-wide.json"}.get(self.sd)

    @property
    def scripted_rule(self) -> tuple[str, Policy]:
        """Pump energy through the lower joint."""
        return "torque = sign(rate2)", acrobot_pump

    def facts(self) -> FamilyFacts:
        """Drawn as a pendulum."""
        return replace(super().facts(), success="foot above the line", picture="acrobot")

    def sample_instance(self, key: PRNGKeyArray) -> AcrobotTheta:
        """Each parameter independently N(1, sd²)."""
        draws = 1 + self.sd * jax.random.normal(key, (4,), jnp.float32)
        return AcrobotTheta(draws[0], draws[1], draws[2], draws[3])

    def well_behaved_parts(self, theta: AcrobotTheta) -> dict[str, Bool[Array, ""]]:
        """Lengths and masses are positive; each centre of mass (0.5 from the joint) lies on its link."""
        l1, l2, m1, m2 = (jnp.asarray(v) for v in theta)
        return {
            "positive": (l1 > 0) & (l2 > 0) & (m1 > 0) & (m2 > 0),
            "centre of mass on the link": (l1 >= CENTRE) & (l2 >= CENTRE),
        }

    def check_parameter(self, name: str, value: float) -> None:
        """Lengths and masses must be positive."""
        in_range("acrobot parameter", name, value, 0, math.inf, open_low=True)

    def initial_state(self, key: PRNGKeyArray, theta: AcrobotTheta) -> Float[Array, " 4"]:
        """Hanging down, perturbed by U(−0.1, 0.1) in each dimension."""
        return jax.random.uniform(key, (4,), jnp.float32, -START_SPREAD, START_SPREAD)

    def dynamics(
        self, key: PRNGKeyArray, state: Float[Array, " 4"], action: Int[Array, ""], theta: AcrobotTheta
    ) -> Float[Array, " 4"]:
        """One Runge-Kutta step; then angles wrapped and rates clipped (deterministic: `key` is not used)."""
        torque = action.astype(jnp.float32) - 1

        # Scalars instead of a 4-vector: under vmap each becomes a row over lanes, which vectorises.
        def moved(y: _Scalars, by: float, slope: _Scalars) -> _Scalars:
            return tuple(a + by * b for a, b in zip(y, slope, strict=True))  # type: ignore[return-value]

        y = (state[0], state[1], state[2], state[3])
        k1 = derivative(y, torque, theta)
        k2 = derivative(moved(y, TIME_STEP / 2, k1), torque, theta)
        k3 = derivative(moved(y, TIME_STEP / 2, k2), torque, theta)
        k4 = derivative(moved(y, TIME_STEP, k3), torque, theta)
        angle1, angle2, rate1, rate2 = (
            v + TIME_STEP / 6 * (a + 2 * b + 2 * c + d) for v, a, b, c, d in zip(y, k1, k2, k3, k4, strict=True)
        )
        return jnp.stack(
            [
                wrap_angle(angle1),
                wrap_angle(angle2),
                jnp.clip(rate1, -MAX_RATE_1, MAX_RATE_1),
                jnp.clip(rate2, -MAX_RATE_2, MAX_RATE_2),
            ]
        )

    def reward(
        self,
        state: Float[Array, " 4"],
        action: Int[Array, ""],
        next_state: Float[Array, " 4"],
        theta: AcrobotTheta | None = None,
    ) -> Float[Array, ""]:
        """10 when the foot reaches the goal line, otherwise −0.05 (foot − l1)², both at s'."""
        theta = _needed(theta)
        foot = foot_height(next_state, theta)
        return jnp.where(foot >= theta.l1, GOAL_REWARD, -STEP_COST * (foot - theta.l1) ** 2)

    def terminated(self, next_state: Float[Array, " 4"], theta: AcrobotTheta | None = None) -> Bool[Array, ""]:
        """The foot is at least l1 above the upper joint."""
        theta = _needed(theta)
        return foot_height(next_state, theta) >= theta.l1


def _needed(theta: AcrobotTheta | None) -> AcrobotTheta:
    if theta is None:
        raise ValueError("acrobot's reward and goal line depend on l1 and l2: pass theta.")
    return theta
