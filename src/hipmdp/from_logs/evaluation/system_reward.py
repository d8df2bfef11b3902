"""The reward of one system: what was learned from all logs, put right by what this one's log earned.

The family's reward r̂ has seen many systems, and is a little wrong about each. In the log of this one stands what it
earned: a Gaussian process (`process.py`) goes through it. Near logged steps the process is right and r̂ is not, far from
them it is the other way round: each counts with its precision.

What an end pays is another function than what going on pays, and r̂, which is smooth, blurs them: ends have a process of
their own. Where an end is, r̂ says, give or take a shift that the log allows.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp._random import numpy_generator
from hipmdp.dynamics.reward_head import RewardHead
from hipmdp.from_logs.evaluation.estimate import LoggedEpisodes
from hipmdp.from_logs.evaluation.parts import ACTIONS_APART, parts_of
from hipmdp.from_logs.evaluation.process import Process, fit_ends, fit_process
from hipmdp.imagination.reward import AbstractReward, Outcome

ERROR = 1.5
"""Spreads of rewards are too small by this factor in a sum over steps: they are wrong alike from step to step."""
OTHER_KIND = 3.0
"""Where r̂ differs by more than so many of its errors from the logged ends, it is another kind of end."""
FREEDOM = 3
"""Degrees of freedom of the errors: now and then they are far larger."""
SHIFT = 1.5
"""Spread of what the logit of an end may be wrong by on one system."""


class SystemReward(AbstractReward):
    """r of one system."""

    head: RewardHead
    going: Process | None
    ending: Process | None
    """None where no such step is in the log."""
    error: Float[Array, ""]
    """Spreads by which rewards are wrong, in every step alike."""
    shift: Float[Array, ""]
    """Of the logit of an end."""

    def drawn(self, error: Float[Array, ""], shift: Float[Array, ""]) -> "SystemReward":
        """The same, wrong by so much."""
        return eqx.tree_at(lambda reward: (reward.error, reward.shift), self, (error, shift))

    def __call__(
        self,
        key: PRNGKeyArray,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        next_state: Float[Array, " state"],
        latent: Float[Array, " latent"],
    ) -> Outcome:
        """Reward and end of one step."""
        family, _ = self.head(state, action, next_state, latent)
        ends = self.head.outputs(state, action, next_state, latent)[1] + self.shift > 0
        inputs = step_inputs(self.head, state, action, next_state)
        going = _joined(self.going, inputs, family, self.error)
        ending = _joined(self.ending, inputs, family, self.error, other_kind=OTHER_KIND)
        return jnp.where(ends, ending, going), ends


def _joined(
    process: Process | None,
    inputs: Float[Array, " inputs"],
    family: Float[Array, ""],
    error: Float[Array, ""],
    other_kind: float = jnp.inf,
) -> Float[Array, ""]:
    """The reward of which the process and r̂ say something, off by so many spreads."""
    if process is None:
        return family
    own, own_spread = process(inputs)
    spread = process.family_error * (jnp.abs(family) + process.family_unit)
    own_spread = own_spread + jnp.maximum(jnp.abs(own - family) - other_kind * spread, 0)
    # Written so that nothing overflows where one of the two knows nothing.
    ratio = jnp.minimum(spread / own_spread, 1e15)
    length = jnp.hypot(jnp.ones((), ratio.dtype), ratio)
    share = (ratio / length) ** 2
    return share * own + (1 - share) * family + ERROR * error * spread / length


def step_inputs(
    head: RewardHead, state: Float[Array, " state"], action: Int[Array, ""], next_state: Float[Array, " state"]
) -> Float[Array, " inputs"]:
    """s, s' and a in spreads of all logs; angles on a circle."""
    scaling, angles = head.scaling, np.asarray(head.specification.angles)

    def placed(values: Float[Array, " state"]) -> Float[Array, " coordinates"]:
        plain = (values - scaling.state_centre) / scaling.state_scale
        return jnp.concatenate([plain[~angles], jnp.sin(values[angles]), jnp.cos(values[angles])])

    which = jax.nn.one_hot(action, head.specification.action_count, dtype=state.dtype)
    return jnp.concatenate([placed(state), placed(next_state), ACTIONS_APART * which])


def system_reward(
    head: RewardHead, latent: Float[Array, " latent"], episodes: LoggedEpisodes, futures: int, *, key: PRNGKeyArray
) -> tuple[SystemReward, Array, Array]:
    """The reward, fitted to the rewards and ends of the log; draws of its error, and of its shift."""
    generator, valid = numpy_generator(key), episodes.valid
    from_origin = head.specification.from_origin
    state, next_state = (from_origin(part[valid]) for part in (episodes.state, episodes.next_state))
    columns = tuple(map(jnp.asarray, (state, episodes.action[valid], next_state)))
    family, logits, inputs = (np.asarray(part, np.float64) for part in _asked(head, latent, *columns))
    reward, ended = episodes.reward[valid], episodes.terminated[valid]
    unit = float(head.unit)
    part = parts_of(episodes)
    going = fit_process(inputs[~ended], reward[~ended], family[~ended], unit, part=part[~ended])
    ending = fit_ends(inputs[ended], reward[ended], family[ended], unit, like=going)
    zero = jnp.zeros((), jnp.float32)
    shifts = shift_draws(logits, ended, futures, generator)
    errors = generator.standard_t(FREEDOM, futures)
    reward_of_system = SystemReward(head, going, ending, zero, zero)
    return reward_of_system, jnp.asarray(errors, jnp.float32), jnp.asarray(shifts, jnp.float32)


@eqx.filter_jit
def _asked(head: RewardHead, latent: Array, state: Array, action: Array, next_state: Array) -> tuple[Array, ...]:
    """(r̂, logit of an end, inputs of a process) of each step."""

    def one(state: Array, action: Array, next_state: Array) -> tuple[Array, ...]:
        logit = head.outputs(state, action, next_state, latent)[1]
        return head(state, action, next_state, latent)[0], logit, step_inputs(head, state, action, next_state)

    return jax.vmap(one)(state, action, next_state)


def shift_draws(logits: np.ndarray, ended: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Draws of b, N(0, SHIFT²) before the log, where an end has the probability sigmoid(logit + b)."""
    tried = np.linspace(-4 * SHIFT, 4 * SHIFT, 161)
    moved = logits[:, None] + tried
    fit = np.where(ended[:, None], -np.logaddexp(0, -moved), -np.logaddexp(0, moved)).sum(axis=0)
    density = fit - 0.5 * (tried / SHIFT) ** 2
    chance = np.exp(density - density.max())
    return np.asarray(generator.choice(tried, count, p=chance / chance.sum()))
