"""The reward inside imagination: given, learned, or (for diagnosis) the true one.

A HiP-MDP's R is shared by all instances and known; its hidden parameters are not. On grid and HIV R needs no θ, so the
given reward leaks nothing. Acrobot's R reads l1 and l2 of the instance: "given" tells imagination that much (as in the
paper), "learned" tells it nothing.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from hipmdp.dynamics.reward_head import RewardHead
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.loading import user_module
from hipmdp.families.specification import Specification

REWARDS = ("given", "learned", "true")
"""Values of `reward=`."""


class AbstractReward(eqx.Module):
    """r̂ and whether the episode ends."""

    @abc.abstractmethod
    def __call__(
        self,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        next_state: Float[Array, " state"],
        latent: Float[Array, " latent"],
    ) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        """(reward, terminated) of one imagined transition."""


class GivenReward(AbstractReward):
    """The family's R(s, a, s'). θ is passed on only where R is written in terms of it."""

    family: AbstractFamily
    theta: Theta | None

    def __init__(self, family: AbstractFamily, theta: Theta | None) -> None:
        self.family = family
        self.theta = theta if family.reward_needs_theta else None

    def __call__(self, state: Any, action: Any, next_state: Any, latent: Any) -> Any:
        """R and the terminal states of the family, at the imagined s'."""
        reward = self.family.reward(state, action, next_state, self.theta)
        return reward, self.family.terminated(next_state, self.theta)


class LearnedReward(AbstractReward):
    """A network fitted to logged rewards and terminations: tells nothing that the logs do not."""

    head: RewardHead

    def __call__(self, state: Any, action: Any, next_state: Any, latent: Any) -> Any:
        """What the network says."""
        return self.head(state, action, next_state, latent)


class FunctionReward(AbstractReward):
    """A function of the user's, reward(state, action, next_state) in JAX; it may return (reward, terminated)."""

    function: Callable[..., Any] = eqx.field(static=True)

    def __init__(self, function: Callable[..., Any], specification: Specification) -> None:
        self.function = function
        state = jax.ShapeDtypeStruct((specification.state_size,), jnp.float32)
        try:
            told = jax.eval_shape(self._told, state, jax.ShapeDtypeStruct((), jnp.int32), state)
        except Exception as error:
            reason = str(error).splitlines()[0].rstrip(".") or type(error).__name__
            raise ValueError(
                "The reward function must take (state, action, next_state), arrays of JAX, and return a number: "
                f"{reason}."
            ) from error
        if any(part.shape != () for part in told):
            raise ValueError(f"The reward function must return one number, got shape {told[0].shape}.")

    def _told(self, state: Any, action: Any, next_state: Any) -> tuple[Any, Any]:
        told = self.function(state, action, next_state)
        reward, ends = told if isinstance(told, tuple) else (told, False)
        return jnp.asarray(reward, jnp.float32), jnp.asarray(ends, bool)

    def __call__(self, state: Any, action: Any, next_state: Any, latent: Any) -> Any:
        """What the function says."""
        return self._told(state, action, next_state)


class TrueReward(AbstractReward):
    """What the real instance would pay and whether it would end, from the imagined s: for diagnosis only.

    (The authors' released code used this on grid.)
    """

    family: AbstractFamily
    theta: Theta

    def __call__(self, state: Any, action: Any, next_state: Any, latent: Any) -> Any:
        """One step of the true dynamics."""
        outcome = self.family.step(jax.random.key(0), state, action, self.theta)
        return outcome.reward, outcome.terminated


def load_reward(text: str) -> Callable[..., Any]:
    """The function that `module:function` stands for, otherwise a `ValueError`."""
    module, _, name = text.partition(":")
    found = getattr(user_module(module), name, None)
    if not callable(found):
        raise ValueError(f"Module {module!r} has no function {name!r} that could be a reward.")
    return found
