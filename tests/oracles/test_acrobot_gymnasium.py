"""Nominal dynamics equal Gymnasium's own Acrobot, step by step."""

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import hipmdp


def test_nominal_dynamics_equal_gymnasium_over_2000_steps():
    ours = hipmdp.make("acrobot")
    theirs = gymnasium.make("Acrobot-v1").unwrapped
    theirs.reset(seed=0)
    step, theta, key = eqx.filter_jit(ours.dynamics), ours.theta(), jax.random.key(0)
    rng = np.random.default_rng(0)
    worst, rates = 0.0, []
    for t in range(2000):
        if t % 400 == 0:
            theirs.state = rng.uniform(-0.1, 0.1, 4)
        # Pumping for half of the time reaches fast, wrapped states that a random walk never sees.
        action = int(np.sign(theirs.state[3]) + 1) if (t // 200) % 2 else int(rng.integers(3))
        mine = np.asarray(step(key, jnp.asarray(theirs.state, jnp.float32), jnp.asarray(action), theta), np.float64)
        theirs.step(action)
        difference = mine - theirs.state
        difference[:2] = (difference[:2] + np.pi) % (2 * np.pi) - np.pi
        worst = max(worst, float(np.abs(difference).max()))
        rates.append(abs(theirs.state[3]))
    assert max(rates) > 5
    assert worst <= 1e-4
