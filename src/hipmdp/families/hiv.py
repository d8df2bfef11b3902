"""HIV treatment: move a simulated patient from the unhealthy to the healthy steady state.

States are log10 of (T1, T2, T1*, T2*, V, E); one step is 5 days, an episode 200 steps. The equations are in
`hipmdp.families.hiv_equations`. Reward on the state after the step, with the *nominal* efficacies 0.7 and 0.3
for every patient, so that R reveals no hidden parameter:

    R = −0.1 V − 2·10⁴ ε1² − 2·10³ ε2² + 10³ E
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from hipmdp._errors import in_range, known_name
from hipmdp.families.base_family import SET_SIZES
from hipmdp.families.hiv_equations import PARAMETERS, HIVTheta, advance
from hipmdp.families.protocol import AbstractFamily
from hipmdp.families.rollout import Policy
from hipmdp.families.scripted import hiv_both_drugs
from hipmdp.families.specification import FamilyFacts, Parameter, Specification

NOMINAL_RTI, NOMINAL_PI = 0.7, 0.3
UNHEALTHY_START = (163573.0, 5.0, 11945.0, 46.0, 63919.0, 24.0)
"""(T1, T2, T1*, T2*, V, E) of the unhealthy steady state of the baseline patient, the start of every episode."""
HEALTHY_STATE = (967839.0, 621.0, 76.0, 6.0, 415.0, 353108.0)
"""The healthy steady state of the baseline patient."""
HEALTHY_E = 1e5
"""A patient with more immune effectors than this at the end of an episode counts as healed."""
VARIED = ("lambda1", "lambda2", "k1", "k2", "f", "m1", "m2", "lambdaE", "bE", "Kb", "dE", "Kd")
"""The twelve parameters that the default prior varies."""
FRACTIONS = ("f", "eps1", "eps2")
"""Parameters whose range is [0, 1]."""
LOWEST, HIGHEST = -30.0, 10.0
"""Bounds of log10 states: float32 ends at 1e-38, and 1e-30 virions per ml are none. Steps are clipped to them; an
instance that leaves them in its test episodes is not well-behaved."""

_SPECIFICATION = Specification(
    family="hiv",
    state_names=("log10_T1", "log10_T2", "log10_T1*", "log10_T2*", "log10_V", "log10_E"),
    state_low=(LOWEST,) * 6,
    state_high=(HIGHEST,) * 6,
    state_centre=(5.0, 1.5, 3.0, 1.0, 4.0, 2.5),
    state_scale=(1.0, 1.0, 2.0, 2.0, 2.0, 1.5),
    angles=(False,) * 6,
    action_names=("none", "RTI", "PI", "both"),
    horizon=200,
    discount=0.99,
)


class HIV(AbstractFamily):
    """Patients that differ in their physiology: each varied parameter is its baseline times N(1, sd²)."""

    baseline: ClassVar[HIVTheta] = HIVTheta(
        lambda1=1e4, lambda2=31.98, d1=0.01, d2=0.01, k1=8e-7, k2=1e-4, delta=0.7, f=0.34, m1=1e-5, m2=1e-5,
        NT=100.0, c=13.0, rho1=1.0, rho2=1.0, lambdaE=1.0, bE=0.3, Kb=100.0, dE=0.25, Kd=500.0, deltaE=0.1,
        eps1=NOMINAL_RTI, eps2=NOMINAL_PI,
    )  # fmt: skip
    fixed_start: ClassVar[bool] = True
    ships_instances: ClassVar[bool] = True
    set_sizes: ClassVar[Mapping[str, int]] = {**SET_SIZES, "partial": 10}

    sd: float = eqx.field(static=True, default=0.25)
    """Relative standard deviation of the prior."""
    vary: str = eqx.field(static=True, default="twelve")
    """"twelve": vary the twelve parameters of the authors' code; "all": all 22."""

    def __check_init__(self) -> None:
        in_range("hiv option", "sd", self.sd, 0, 1)
        known_name("value of hiv option 'vary'", self.vary, ("twelve", "all"))

    @property
    def specification(self) -> Specification:
        """Names, bounds and counts."""
        return _SPECIFICATION

    @property
    def instance_file(self) -> str | None:
        """A file exists for the default prior."""
        return "hiv.json" if self.sd == 0.25 and self.vary == "twelve" else None

    @property
    def scripted_rule(self) -> tuple[str, Policy]:
        """Both drugs at every step."""
        return "both drugs, always", hiv_both_drugs

    def facts(self) -> FamilyFacts:
        """Drawn as markers over days; every parameter has a symbol, a meaning and a unit."""
        varied = self.parameter_names if self.vary == "all" else VARIED
        parameters = tuple(
            Parameter(name, value, *PARAMETERS[name], varied=name in varied)
            for name, value in self.baseline._asdict().items()
        )
        return replace(super().facts(), parameters=parameters, success="healed", picture="hiv")

    def sample_instance(self, key: PRNGKeyArray) -> HIVTheta:
        """Multiply the varied parameters by independent N(1, sd²); f, eps1 and eps2 are clipped to [0, 1]."""
        factors = 1 + self.sd * jax.random.normal(key, (len(self.parameter_names),), jnp.float32)
        values = {}
        for i, (name, base) in enumerate(self.baseline._asdict().items()):
            varied = self.vary == "all" or name in VARIED
            value = base * factors[i] if varied else jnp.asarray(base, jnp.float32)
            values[name] = jnp.clip(value, 0, 1) if name in FRACTIONS else value
        return HIVTheta(**values)

    def well_behaved_parts(self, theta: HIVTheta) -> dict[str, Bool[Array, ""]]:
        """Physical parameters; three test episodes that stay finite and in bounds; unhealed when untreated.

        The test episodes give no drug, both drugs always, and all four actions in turn.
        """
        values = {name: jnp.asarray(value) for name, value in theta._asdict().items()}
        positive = [v >= 0 if name in FRACTIONS else v > 0 for name, v in values.items()]
        fractions = [values[name] <= 1 for name in FRACTIONS]
        steps = jnp.arange(self.horizon, dtype=jnp.int32)
        schedules = jnp.stack([jnp.zeros_like(steps), jnp.full_like(steps, 3), steps % 4])
        states = jax.vmap(lambda schedule: self.trajectory(theta, schedule))(schedules)
        untreated_e = states[0, -1, 5]
        return {
            "physical parameters": jnp.all(jnp.stack(positive + fractions)),
            "integrates": jnp.all(jnp.isfinite(states)),
            "states in bounds": jnp.all((states >= LOWEST) & (states <= HIGHEST)),
            "unhealed untreated": untreated_e <= math.log10(HEALTHY_E),
        }

    def looks_controllable(self, theta: HIVTheta) -> Bool[Array, ""]:
        """Whether some constant treatment keeps a patient healthy for 1,000 days, from the baseline's healthy state.

        A patient who cannot stay healthy can hardly be healed.
        """
        healthy = jnp.log10(jnp.asarray(HEALTHY_STATE, jnp.float32))
        schedules = jnp.repeat(jnp.arange(4, dtype=jnp.int32)[:, None], self.horizon, axis=1)
        ends = jax.vmap(lambda schedule: self.trajectory(theta, schedule, healthy)[-1])(schedules)
        return jnp.any(self.healed(ends))

    def trajectory(
        self, theta: HIVTheta, actions: Int[Array, " steps"], start: Float[Array, " 6"] | None = None
    ) -> Float[Array, "steps 6"]:
        """The states after each of a fixed schedule of actions, from the unhealthy start unless another is given."""

        def body(state: Float[Array, " 6"], action: Int[Array, ""]) -> tuple[Float[Array, " 6"], Float[Array, " 6"]]:
            state = self._advance(state, action, theta)
            return state, state

        return jax.lax.scan(body, self._unhealthy_start() if start is None else start, actions)[1]

    def check_parameter(self, name: str, value: float) -> None:
        """Rates must be positive; f, eps1 and eps2 lie in [0, 1]."""
        if name in FRACTIONS:
            in_range("hiv parameter", name, value, 0, 1)
        else:
            in_range("hiv parameter", name, value, 0, math.inf, open_low=True)

    def from_natural_units(self, state: np.ndarray) -> np.ndarray:
        """Cells or copies per ml to log10."""
        for name, value in zip(self.specification.state_names, state, strict=True):
            in_range("hiv state", name.removeprefix("log10_"), value, 0, math.inf, open_low=True)
        return np.log10(state)

    def initial_state(self, key: PRNGKeyArray, theta: HIVTheta) -> Float[Array, " 6"]:
        """Always the unhealthy steady state of the baseline patient (`key` and `theta` are not used)."""
        return self._unhealthy_start()

    def dynamics(
        self, key: PRNGKeyArray, state: Float[Array, " 6"], action: Int[Array, ""], theta: HIVTheta
    ) -> Float[Array, " 6"]:
        """Five days under one treatment (deterministic: `key` is not used)."""
        return jnp.clip(self._advance(state, action, theta), LOWEST, HIGHEST)

    def reward(
        self,
        state: Float[Array, " 6"],
        action: Int[Array, ""],
        next_state: Float[Array, " 6"],
        theta: HIVTheta | None = None,
    ) -> Float[Array, ""]:
        """The module's R(a, s'); θ is not needed."""
        virus, effectors = 10 ** next_state[4], 10 ** next_state[5]
        rti, pi = self._drugs(action)
        return -0.1 * virus + 1e3 * effectors - (2e4 * NOMINAL_RTI**2) * rti - (2e3 * NOMINAL_PI**2) * pi

    def terminated(self, next_state: Float[Array, " 6"], theta: HIVTheta | None = None) -> Bool[Array, ""]:
        """Never: treatment lasts 1,000 days."""
        return jnp.zeros((), bool)

    def succeeded(self, terminated: np.ndarray, last_state: np.ndarray) -> np.ndarray:
        """Which patients end healed."""
        return np.asarray(self.healed(last_state))

    def healed(self, state: Shaped[Array | np.ndarray, "... 6"]) -> Shaped[Array | np.ndarray | np.bool, "..."]:
        """Whether E > 1e5 in `state`."""
        return state[..., 5] > math.log10(HEALTHY_E)

    def _unhealthy_start(self) -> Float[Array, " 6"]:
        return jnp.log10(jnp.asarray(UNHEALTHY_START, jnp.float32))

    def _drugs(self, action: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """1.0 where the RTI, and where the PI, is given."""
        rti = (action == 1) | (action == 3)
        pi = (action == 2) | (action == 3)
        return rti.astype(jnp.float32), pi.astype(jnp.float32)

    def _advance(self, state: Float[Array, " 6"], action: Int[Array, ""], theta: HIVTheta) -> Float[Array, " 6"]:
        rti, pi = self._drugs(action)
        return advance(state, rti * theta.eps1, pi * theta.eps2, theta)
