"""What may come on one system: every future is a draw of everything that is not known.

That is W and w_b, what T̂ misses here (`misfit.py`), how far rewards and ends are off (`system_reward.py`), and chance.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp._random import stream
from hipmdp.data.transitions import Transitions
from hipmdp.families.rollout import AbstractEnvironment, Step
from hipmdp.from_logs.evaluation.estimate import LoggedEpisodes
from hipmdp.from_logs.evaluation.misfit import DrawnMisfit, Misfit, fit_misfit, misfit_inputs
from hipmdp.from_logs.evaluation.parts import parts_of
from hipmdp.from_logs.evaluation.system_reward import SystemReward, system_reward
from hipmdp.from_logs.system import System
from hipmdp.imagination.build import Surroundings, imagine_instance
from hipmdp.imagination.contexts import Context
from hipmdp.imagination.environment import Imagination, imagined_state
from hipmdp.imagination.reward import AbstractReward, LearnedReward
from hipmdp.pretraining.model import Model
from hipmdp.settings.presets import adaptation_preset

FUTURES = 100
"""Draws of everything that is not known."""


class Drawn(NamedTuple):
    """What is different from future to future; with a leading axis for all of them."""

    context: Context
    misfit: DrawnMisfit
    reward_error: Float[Array, "*futures"]
    """Spreads by which rewards are wrong."""
    end_shift: Float[Array, "*futures"]
    """Of the logit of an end."""


class Futures(NamedTuple):
    """All of them."""

    imagination: Imagination
    misfit: Misfit
    drawn: Drawn

    def keys(self, key: PRNGKeyArray) -> Any:
        """One for each."""
        return jax.random.split(key, self.drawn.reward_error.shape[0])


def draw_futures(
    model: Model,
    known: System,
    log: Transitions,
    episodes: LoggedEpisodes,
    reward: AbstractReward,
    *,
    put_right: bool,
    key: PRNGKeyArray,
) -> Futures:
    """For the system of `log`, which is in order. `put_right`: the learned reward is fitted to what the log earned."""
    shifts = errors = jnp.zeros(FUTURES, jnp.float32)
    if put_right and isinstance(reward, LearnedReward):
        reward, errors, shifts = system_reward(
            reward.head, known.latent, episodes, FUTURES, key=stream(key, "logs/system_reward")
        )
    starts = jnp.zeros((1, model.specification.state_size), jnp.float32)
    around = Surroundings(reward, starts, np.asarray(model.low), np.asarray(model.high))
    preset = adaptation_preset("default", model.specification)
    config = replace(preset, weight_draws=FUTURES, mean_weights=False, pqn=None)
    imagined = imagine_instance(
        known.dynamics, known.latent, log, around, config=config, deviations=known.deviations(log, key=key),
        key=stream(key, "logs/futures"),
    )  # fmt: skip
    assert isinstance(imagined.environment, Imagination)
    misfit, drawn = fit_misfit(
        known.dynamics, imagined.contexts, known.latent, log, parts_of(episodes), _known_variance(known),
        key=stream(key, "logs/misfit"),
    )  # fmt: skip
    return Futures(imagined.environment, misfit, Drawn(imagined.contexts, drawn, errors, shifts))


def _known_variance(known: System) -> np.ndarray:
    """Of what T̂ misses in a step, as the belief has it; standardised."""
    misfit = 1.0 if known.belief is None else np.asarray(known.belief.misfit, np.float64)
    return np.asarray(known.dynamics.noise_variance(), np.float64) * misfit


class Future(AbstractEnvironment):
    """One future from one first state on; it goes on where episodes of learning are cut."""

    imagination: Imagination
    misfit: Misfit
    drawn: Drawn
    first: Float[Array, " state"]

    def __init__(self, futures: Futures, drawn: Drawn, first: Float[Array, " state"]) -> None:
        imagination = futures.imagination
        if isinstance(imagination.reward, SystemReward):
            own = imagination.reward.drawn(drawn.reward_error, drawn.end_shift)
            imagination = eqx.tree_at(lambda known: known.reward, imagination, own)
        self.imagination, self.misfit, self.drawn, self.first = imagination, futures.misfit, drawn, first

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        return self.imagination.horizon

    def reset(self, key: PRNGKeyArray, context: None) -> Float[Array, " state"]:
        """The first state."""
        return self.first

    def step(self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], context: None) -> Step:
        """One step; beyond the range of the data states stay at its edge."""
        imagination, (noise_key, z_key, reward_key) = self.imagination, jax.random.split(key, 3)
        dynamics = imagination.dynamics
        missed = self.misfit(misfit_inputs(dynamics, state, action), self.drawn.misfit)
        missed = missed + self.misfit.noise * jax.random.normal(noise_key, missed.shape, jnp.float32)
        proposal = imagined_state(dynamics, self.drawn.context, state, action, dynamics.draw_z(z_key, ()), missed)
        next_state = jnp.where(jnp.isfinite(proposal), jnp.clip(proposal, *imagination.range), state)
        latent = self.drawn.context.latent
        reward, terminated = imagination.reward(reward_key, state, action, next_state, latent)
        return Step(next_state, reward, terminated)
