"""Which integrator for the HIV equations? `python benchmarks/hiv_integrators.py`

Accuracy: largest |Δlog10| in float32 against LSODA (rtol 1e-10) over 200-step episodes of random actions, for the
baseline patient and 20 well-behaved drawn ones. Speed on one core: 1,024 lanes, and a single patient. The first
row is LSODA itself with its states rounded to float32 between steps: the least error any float32 state can have.
"""

import sys
import time
from pathlib import Path
from typing import Any

from common import best_seconds, pin_to_one_core, save

pin_to_one_core()
sys.path.insert(0, str(Path(__file__).parent.parent))

import diffrax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import hipmdp  # noqa: E402
from hipmdp.families import hiv_equations  # noqa: E402
from tests.oracles import hiv_lsoda  # noqa: E402

FAMILY: Any = hipmdp.make("hiv")
LN10 = float(np.log(10))


def natural(x: Any, p: Any, rti: Any, pi: Any) -> Any:
    T1, T2, T1s, T2s, V, E = x
    i, new1, new2 = T1s + T2s, (1 - rti) * p.k1 * V * T1, (1 - p.f * rti) * p.k2 * V * T2
    return (
        p.lambda1 - p.d1 * T1 - new1,
        p.lambda2 - p.d2 * T2 - new2,
        new1 - (p.delta + p.m1 * E) * T1s,
        new2 - (p.delta + p.m2 * E) * T2s,
        (1 - pi) * p.NT * p.delta * i - p.c * V - p.rho1 * new1 - p.rho2 * new2,
        p.lambdaE + (p.bE * i / (i + p.Kb) - p.dE * i / (i + p.Kd) - p.deltaE) * E,
    )


def runge_kutta(substeps: int) -> Any:
    h = 5.0 / substeps

    def step(u: Any, rti: Any, pi: Any, p: Any) -> Any:
        def body(_: Any, x: Any) -> Any:
            k1 = natural(x, p, rti, pi)
            k2 = natural(tuple(a + h / 2 * k for a, k in zip(x, k1, strict=True)), p, rti, pi)
            k3 = natural(tuple(a + h / 2 * k for a, k in zip(x, k2, strict=True)), p, rti, pi)
            k4 = natural(tuple(a + h * k for a, k in zip(x, k3, strict=True)), p, rti, pi)
            return tuple(a + h / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(x, k1, k2, k3, k4, strict=True))

        x = tuple(jnp.exp(u[i] * LN10) for i in range(6))
        return jnp.log10(jnp.stack(jax.lax.fori_loop(0, substeps, body, x)))

    return step


def splitting(sweeps: tuple[int, ...]) -> Any:
    def step(u: Any, rti: Any, pi: Any, p: Any) -> Any:
        kept = hiv_equations.SWEEPS
        hiv_equations.SWEEPS = sweeps  # read while tracing
        try:
            return hiv_equations.advance(u, rti, pi, p)
        finally:
            hiv_equations.SWEEPS = kept

    return step


def adaptive(solver: Any, tolerance: float) -> Any:
    """Diffrax in log space, where one absolute tolerance suits all six markers."""

    def slope(_time: Any, y: Any, args: Any) -> Any:
        p, rti, pi = args
        x = jnp.exp(y)
        return jnp.stack(natural(tuple(x[i] for i in range(6)), p, rti, pi)) / x

    def step(u: Any, rti: Any, pi: Any, p: Any) -> Any:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(slope), solver, 0.0, 5.0, 0.01, u * LN10, (p, rti, pi), max_steps=4096, throw=False,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
            adjoint=diffrax.ForwardMode(),
        )  # fmt: skip
        return solution.ys[-1] / LN10

    return step


def measure(name: str, step: Any, thetas: Any, actions: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    def act(u: Any, action: Any, p: Any) -> Any:
        rti = jnp.where((action == 1) | (action == 3), p.eps1, 0.0)
        return step(u, rti, jnp.where((action == 2) | (action == 3), p.eps2, 0.0), p)

    def walk(u: Any, p: Any, lane: Any) -> Any:
        def body(u: Any, a: Any) -> Any:
            u = act(u, a, p)
            return u, u

        return jax.lax.scan(body, u, lane)[1]

    lanes = jax.jit(jax.vmap(walk))
    start = jnp.broadcast_to(jnp.log10(jnp.asarray(hiv_lsoda.START, jnp.float32)), (len(truth), 6))
    begin = time.perf_counter()
    found = np.asarray(lanes(start, thetas, jnp.asarray(actions)))
    first_call = time.perf_counter() - begin
    # The speed of a slow solver is told from fewer lanes: it has minutes, not hours.
    count = 1024 if first_call < 5 else 64
    pick = np.arange(count) % len(truth)
    many = jax.tree.map(lambda leaf: leaf[pick], thetas)
    rows = np.random.default_rng(0).integers(0, 200, count)
    states = jnp.asarray(truth[pick, rows], jnp.float32)
    some = jnp.asarray(actions[pick, :10])
    vmapped = count * 10 / best_seconds(lambda: lanes(states, many, some), 3)
    one, theta = jax.jit(walk), jax.tree.map(lambda leaf: leaf[0], thetas)
    single = 10 / best_seconds(lambda: one(states[0], theta, some[0]), 3)
    errors = np.max(np.abs(found - truth), axis=(1, 2))
    row = {
        "integrator": name,
        "max_error_log10": float(errors.max()),
        "median_error_log10": float(np.median(errors)),
        "patients_within_1e-3": int(np.sum(errors <= 1e-3)),
        "vmapped_per_second": round(vmapped),
        "single_per_second": round(single),
        "first_call_seconds": round(first_call, 1),
    }
    print(
        f"{name:34}{errors.max():12.1e}{np.median(errors):12.1e}{row['patients_within_1e-3']:9d}/21"
        f"{vmapped:12,.0f}{single:12,.0f}{first_call:12.1f}",
        flush=True,
    )
    return row


if __name__ == "__main__":
    drawn = FAMILY.draw_instances(jax.random.key(0), 20)
    thetas = jax.tree.map(lambda base, leaf: jnp.concatenate([base[None], leaf]), FAMILY.theta(), drawn)
    actions = np.random.default_rng(0).integers(0, 4, (21, 200))
    truth = np.stack(
        [hiv_lsoda.trajectory({k: v[i] for k, v in thetas._asdict().items()}, actions[i]) for i in range(21)]
    )
    header = ("max error", "median", "≤ 1e-3", "vmapped/s", "single/s", "1st call")
    print(f"{'integrator':34}" + "".join(f"{word:>12}" for word in header))
    rounded = np.stack(
        [
            hiv_lsoda.trajectory({k: v[i] for k, v in thetas._asdict().items()}, actions[i], round_states=True)
            for i in range(21)
        ]
    )
    floor = np.max(np.abs(rounded - truth), axis=(1, 2))
    label = "LSODA, states rounded to float32"
    print(f"{label:34}{floor.max():12.1e}{np.median(floor):12.1e}{np.sum(floor <= 1e-3):9d}/21")
    rows: list[dict[str, Any]] = [
        {
            "integrator": label,
            "max_error_log10": float(floor.max()),
            "median_error_log10": float(np.median(floor)),
            "patients_within_1e-3": int(np.sum(floor <= 1e-3)),
        }
    ]
    rows += [
        measure(name, step, thetas, actions, truth)
        for name, step in (
            ("RK4, 200 substeps", runge_kutta(200)),
            ("RK4, 400 substeps", runge_kutta(400)),
            ("RK4, 800 substeps", runge_kutta(800)),
            ("splitting 180 (order 2)", splitting((180,))),
            ("splitting 100+200 (order 4)", splitting((100, 200))),
            ("splitting 30+60+90 (order 6)", splitting((30, 60, 90))),
            ("splitting 60+120+180 (order 6) *", splitting((60, 120, 180))),
            ("splitting 100+200+300 (order 6)", splitting((100, 200, 300))),
            ("diffrax Kvaerno3, tol 1e-4", adaptive(diffrax.Kvaerno3(), 1e-4)),
            ("diffrax Kvaerno5, tol 1e-5", adaptive(diffrax.Kvaerno5(), 1e-5)),
        )
    ]
    print("* the one in use")
    save("hiv_integrators", "python benchmarks/hiv_integrators.py", rows)
