"""Adams' equations written again, plainly, in natural units, and solved by SciPy's LSODA in float64."""

import numpy as np
from scipy.integrate import odeint

START = np.array([163573.0, 5.0, 11945.0, 46.0, 63919.0, 24.0])


def right_hand_side(x, _time, p, rti, pi):
    T1, T2, T1s, T2s, V, E = x
    infected = T1s + T2s
    new1 = (1 - rti) * p["k1"] * V * T1
    new2 = (1 - p["f"] * rti) * p["k2"] * V * T2
    return [
        p["lambda1"] - p["d1"] * T1 - new1,
        p["lambda2"] - p["d2"] * T2 - new2,
        new1 - p["delta"] * T1s - p["m1"] * E * T1s,
        new2 - p["delta"] * T2s - p["m2"] * E * T2s,
        (1 - pi) * p["NT"] * p["delta"] * infected - p["c"] * V - p["rho1"] * new1 - p["rho2"] * new2,
        p["lambdaE"]
        + p["bE"] * infected / (infected + p["Kb"]) * E
        - p["dE"] * infected / (infected + p["Kd"]) * E
        - p["deltaE"] * E,
    ]


def trajectory(parameters, actions, start=START, round_states=False):
    """log10 states after each 5-day step. atol is tiny because V falls to 1e-5 and then grows back.

    With `round_states` the log10 state is rounded to float32 between steps, as any float32 simulation must.
    """
    p = {name: float(value) for name, value in parameters.items()}
    state, states = np.asarray(start, float), []
    for action in actions:
        rti = p["eps1"] if action in (1, 3) else 0.0
        pi = p["eps2"] if action in (2, 3) else 0.0
        state = odeint(right_hand_side, state, [0, 5.0], args=(p, rti, pi), rtol=1e-10, atol=1e-14, mxstep=100_000)[-1]
        if round_states:
            state = 10.0 ** np.float64(np.float32(np.log10(state)))
        states.append(state)
    return np.log10(np.array(states))
