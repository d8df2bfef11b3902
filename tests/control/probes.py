"""Tiny MDPs whose values are known; which one is the context, so that one compilation serves all."""

import equinox as eqx
import jax.numpy as jnp

from hipmdp.families.rollout import AbstractEnvironment, Step

ONE_STEP, TWO_STEPS, BY_ACTION, TIME_OUT, STAY_OR_STOP = range(5)


class Probe(AbstractEnvironment):
    """State: one number, 0 at the start. Two actions. An episode is cut off after five steps."""

    horizon: int = eqx.field(static=True, default=5)

    def reset(self, key, context):
        return jnp.zeros(1)

    def step(self, key, state, action, context):
        at_start = state[0] == 0
        act = action.astype(jnp.float32)
        # kind: (next state, reward, terminated)
        table = {
            ONE_STEP: (0.0, 1.0, True),
            TWO_STEPS: (1.0, jnp.where(at_start, 0.0, 1.0), ~at_start),
            BY_ACTION: (0.0, 2 * act - 1, True),
            TIME_OUT: (0.0, 1.0, False),
            STAY_OR_STOP: (0.0, jnp.where(action == 0, 1.0, 0.6), action == 0),
        }
        columns = [jnp.stack([jnp.asarray(row[i], dtype) for row in table.values()]) for i, dtype in
                   enumerate((jnp.float32, jnp.float32, bool))]  # fmt: skip
        next_state, reward, terminated = (column[context] for column in columns)
        return Step(next_state[None], reward, terminated)
