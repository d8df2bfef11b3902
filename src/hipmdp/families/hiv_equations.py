"""Adams et al. (2004): six equations of HIV infection, and the integrator that solves them.

    T1'  = λ1 − d1 T1 − (1−ε1) k1 V T1                       healthy CD4+ T-lymphocytes
    T2'  = λ2 − d2 T2 − (1−f ε1) k2 V T2                     healthy macrophages
    T1*' = (1−ε1) k1 V T1 − δ T1* − m1 E T1*                 infected T-lymphocytes
    T2*' = (1−f ε1) k2 V T2 − δ T2* − m2 E T2*               infected macrophages
    V'   = (1−ε2) NT δ (T1*+T2*) − c V − [(1−ε1) ρ1 k1 T1 + (1−f ε1) ρ2 k2 T2] V        free virus
    E'   = λE + bE I/(I+Kb) E − dE I/(I+Kd) E − δE E,   I = T1* + T2*                   immune response

The system is stiff (k2 V reaches 190 a day), yet each equation is *linear in its own variable*: x' = p − q x
with p, q that depend on the others only. Its exact solution over a time h with the others held is

    x ← x + h φ(q h) (p − q x),   φ(z) = (1 − e^−z)/z,

which stays positive whatever the step. One sweep through the variables in order and one back in reverse
order is a symmetric method of order 2 whose error has only even powers of the step, so extrapolating from
60, 120 and 180 sweeps per 5 days (in log space, which keeps positivity) gives order 6. It was chosen by
measurement against RK4 and adaptive implicit solvers: see benchmarks/hiv_integrators.py.

Patients amplify small errors, a few of them a million-fold, so rounding counts as much as truncation: sums are
compensated (Kahan), and what is returned is the old state plus the log of the growth.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

DAYS_PER_STEP = 5.0
SWEEPS: tuple[int, ...] = (60, 120, 180)
SMALL = 0.02
"""Below this |z|, φ(z) is summed as a series: 1 − e^−z would lose digits."""

_Scalar = Float[Array, ""]
_State = tuple[_Scalar, _Scalar, _Scalar, _Scalar, _Scalar, _Scalar]
_Pair = tuple[_Scalar, _Scalar]
_Pairs = tuple[_Pair, _Pair, _Pair, _Pair, _Pair, _Pair]


class HIVTheta(NamedTuple):
    """θ of a patient; all rates per day."""

    lambda1: Any
    """Production of healthy T-lymphocytes (cells/ml)."""
    lambda2: Any
    """Production of healthy macrophages (cells/ml)."""
    d1: Any
    """Death rate of healthy T-lymphocytes."""
    d2: Any
    """Death rate of healthy macrophages."""
    k1: Any
    """Infection rate of T-lymphocytes (ml/virion)."""
    k2: Any
    """Infection rate of macrophages (ml/virion)."""
    delta: Any
    """Death rate of infected cells."""
    f: Any
    """How much less the RTI protects macrophages, in [0, 1]."""
    m1: Any
    """Immune clearance of infected T-lymphocytes (ml/cell)."""
    m2: Any
    """Immune clearance of infected macrophages (ml/cell)."""
    NT: Any
    """Virions produced per infected cell."""
    c: Any
    """Natural death rate of the virus."""
    rho1: Any
    """Virions that infect one T-lymphocyte."""
    rho2: Any
    """Virions that infect one macrophage."""
    lambdaE: Any
    """Production of immune effectors (cells/ml)."""
    bE: Any
    """Maximum birth rate of immune effectors."""
    Kb: Any
    """Half-saturation of the birth of immune effectors (cells/ml)."""
    dE: Any
    """Maximum death rate of immune effectors."""
    Kd: Any
    """Half-saturation of the death of immune effectors (cells/ml)."""
    deltaE: Any
    """Natural death rate of immune effectors."""
    eps1: Any
    """Efficacy of the reverse-transcriptase inhibitor (RTI), in [0, 1]."""
    eps2: Any
    """Efficacy of the protease inhibitor (PI), in [0, 1]."""


PARAMETERS: dict[str, tuple[str, str, str]] = {
    "lambda1": ("λ1", "T-cell production", "cells/(ml day)"),
    "lambda2": ("λ2", "macrophage production", "cells/(ml day)"),
    "d1": ("d1", "T-cell death", "1/day"),
    "d2": ("d2", "macrophage death", "1/day"),
    "k1": ("k1", "infection of T cells", "ml/(virion day)"),
    "k2": ("k2", "infection of macrophages", "ml/(virion day)"),
    "delta": ("δ", "death of infected cells", "1/day"),
    "f": ("f", "RTI in macrophages, relative", "–"),
    "m1": ("m1", "clearance of infected T cells", "ml/(cell day)"),
    "m2": ("m2", "clearance of infected macrophages", "ml/(cell day)"),
    "NT": ("NT", "virions per infected cell", "virions/cell"),
    "c": ("c", "virus death", "1/day"),
    "rho1": ("ρ1", "virions per infected T cell", "virions/cell"),
    "rho2": ("ρ2", "virions per infected macrophage", "virions/cell"),
    "lambdaE": ("λE", "immune effector production", "cells/(ml day)"),
    "bE": ("bE", "largest birth of effectors", "1/day"),
    "Kb": ("Kb", "saturation of that birth", "cells/ml"),
    "dE": ("dE", "largest death of effectors", "1/day"),
    "Kd": ("Kd", "saturation of that death", "cells/ml"),
    "deltaE": ("δE", "natural death of effectors", "1/day"),
    "eps1": ("ε1", "efficacy of RTI", "–"),
    "eps2": ("ε2", "efficacy of PI", "–"),
}
"""Symbol, meaning and unit of the hidden parameters of HIV (Adams et al. 2004)."""


def advance(
    log10_state: Float[Array, " 6"], efficacy1: _Scalar, efficacy2: _Scalar, theta: HIVTheta
) -> Float[Array, " 6"]:
    """log10 of (T1, T2, T1*, T2*, V, E) after five days under the drug efficacies ε1, ε2."""
    start = tuple(jnp.exp(log10_state[i] * math.log(10)) for i in range(6))
    growths = []
    for sweeps in SWEEPS:
        end = _integrate(start, efficacy1, efficacy2, theta, sweeps)  # type: ignore[arg-type]
        growths.append(jnp.stack([jnp.log(x / x0) for x, x0 in zip(end, start, strict=True)]))
    # Differences from the finest result keep float32 rounding small, as the weights are of both signs.
    result = growths[-1]
    for sweeps, growth in zip(SWEEPS[:-1], growths[:-1], strict=True):
        weight = math.prod(sweeps**2 / (sweeps**2 - other**2) for other in SWEEPS if other != sweeps)
        result = result + weight * (growth - growths[-1])
    return log10_state + result / math.log(10)


def _integrate(state: _State, efficacy1: _Scalar, efficacy2: _Scalar, theta: HIVTheta, sweeps: int) -> _State:
    """`sweeps` symmetric sweeps over five days. Scalars, so that under vmap all arithmetic runs over lanes."""
    half = DAYS_PER_STEP / (2 * sweeps)
    infect1 = (1 - efficacy1) * theta.k1
    infect2 = (1 - theta.f * efficacy1) * theta.k2
    virions = (1 - efficacy2) * theta.NT * theta.delta

    # A variable is a pair: its value, and the rounding error of the last addition (Kahan).
    def flow(x: _Pair, production: _Scalar, loss: _Scalar) -> _Pair:
        value, error = x
        z = loss * half
        small = jnp.abs(z) < SMALL
        series = 1 - z * (1 / 2 - z * (1 / 6 - z / 24))
        phi = jnp.where(small, series, (1 - jnp.exp(-z)) / jnp.where(small, 1, z))
        change = (half * phi) * (production - loss * value) - error
        total = value + change
        return total, (total - value) - change

    def sweep(x: _Pairs, order: str) -> _Pairs:
        t1, t2, i1, i2, v, e = x
        for variable in order:
            match variable:
                case "T":
                    t1 = flow(t1, theta.lambda1, theta.d1 + infect1 * v[0])
                    t2 = flow(t2, theta.lambda2, theta.d2 + infect2 * v[0])
                case "I":
                    i1 = flow(i1, infect1 * v[0] * t1[0], theta.delta + theta.m1 * e[0])
                    i2 = flow(i2, infect2 * v[0] * t2[0], theta.delta + theta.m2 * e[0])
                case "E":
                    i = i1[0] + i2[0]
                    growth = theta.bE * i / (i + theta.Kb) - theta.dE * i / (i + theta.Kd)
                    e = flow(e, theta.lambdaE, theta.deltaE - growth)
                case "V":
                    loss = theta.c + theta.rho1 * infect1 * t1[0] + theta.rho2 * infect2 * t2[0]
                    v = flow(v, virions * (i1[0] + i2[0]), loss)
        return t1, t2, i1, i2, v, e

    def body(_: Any, x: _Pairs) -> _Pairs:
        # T1 and T2 do not enter each other's equations, nor do T1* and T2*: within a pair the order is free.
        return sweep(sweep(x, "TIEV"), "VEIT")

    pairs = jax.lax.fori_loop(0, sweeps, body, tuple((x, jnp.zeros_like(x)) for x in state))
    return tuple(value for value, _ in pairs)
