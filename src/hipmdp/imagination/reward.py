"""The reward inside imagination: given, learned, the user's own, or (for diagnosis) the true one.

A HiP-MDP's R is shared by all instances and known; its hidden parameters are not. On grid and HIV R needs no θ, so the
given reward leaks nothing. Acrobot's R reads l1 and l2 of the instance: "given" passes that much on (as in the paper),
"learned" passes nothing.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp._units import FURTHEST_SINGLE
from hipmdp.dynamics.reward_head import RewardHead
from hipmdp.families.loading import user_module
from hipmdp.families.protocol import AbstractFamily, BaseFamily, Theta
from hipmdp.families.specification import Specification

State = Float[Array, " state"]
Action = Int[Array, ""]
Outcome = tuple[Float[Array, ""], Bool[Array, ""]]
"""(reward, terminated) of one transition."""

REWARDS = ("given", "learned", "true")
"""Values of `reward=`."""


class AbstractReward(eqx.Module):
    """r̂ and whether the episode ends."""

    @abc.abstractmethod
    def __call__(
        self, key: PRNGKeyArray, state: State, action: Action, next_state: State, latent: Float[Array, " latent"]
    ) -> Outcome:
        """(reward, terminated) of one imagined transition."""


class GivenReward(AbstractReward):
    """The family's R(s, a, s'). θ is passed on only where R is written in terms of it."""

    family: BaseFamily
    theta: Theta | None

    def __init__(self, family: BaseFamily, theta: Theta | None) -> None:
        self.family = family
        self.theta = theta if family.reward_needs_theta else None

    def __call__(
        self, key: PRNGKeyArray, state: State, action: Action, next_state: State, latent: Float[Array, " latent"]
    ) -> Outcome:
        """R and the terminal states of the family, at the imagined s'."""
        reward = self.family.reward(state, action, next_state, self.theta)
        return reward, self.family.terminated(next_state, self.theta)


class LearnedReward(AbstractReward):
    """A network fitted to logged rewards and terminations: it knows nothing that the logs do not."""

    head: RewardHead

    def __call__(
        self, key: PRNGKeyArray, state: State, action: Action, next_state: State, latent: Float[Array, " latent"]
    ) -> Outcome:
        """What the network predicts."""
        return self.head(state, action, next_state, latent)


class FunctionReward(AbstractReward):
    """A function of the user's, reward(state, action, next_state) in JAX; it may return (reward, terminated).

    It gets states in natural units.
    """

    function: Callable[..., object] = eqx.field(static=True)
    origin: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, function: Callable[..., object], specification: Specification) -> None:
        self.function, self.origin = function, specification.origin
        for name, zero, scale in zip(specification.state_names, self.origin, specification.state_scale, strict=False):
            if abs(zero) > FURTHEST_SINGLE * scale:
                raise ValueError(
                    f"A reward function computes in float32, which cannot tell values of {name!r} around {zero:.6g} "
                    "apart: give it in other units, or log the reward."
                )
        state = jax.ShapeDtypeStruct((specification.state_size,), jnp.float32)
        try:
            outcome = jax.eval_shape(self._outcome, state, jax.ShapeDtypeStruct((), jnp.int32), state)
        except Exception as error:
            reason = str(error).splitlines()[0].rstrip(".") or type(error).__name__
            raise ValueError(
                "The reward function must take (state, action, next_state), arrays of JAX, and return a number: "
                f"{reason}."
            ) from error
        if any(part.shape != () for part in outcome):
            raise ValueError(f"The reward function must return one number, got shape {outcome[0].shape}.")

    def _outcome(self, state: State, action: Action, next_state: State) -> tuple[Array, Array]:
        if self.origin:
            state, next_state = (s + jnp.asarray(self.origin, jnp.float32) for s in (state, next_state))
        result = self.function(state, action, next_state)
        reward, ends = result if isinstance(result, tuple) else (result, False)
        return jnp.asarray(reward, jnp.float32), jnp.asarray(ends, bool)

    def __call__(
        self, key: PRNGKeyArray, state: State, action: Action, next_state: State, latent: Float[Array, " latent"]
    ) -> Outcome:
        """What the function returns."""
        return self._outcome(state, action, next_state)


class TrueReward(AbstractReward):
    """What the real instance would pay and whether it would end, from the imagined s: for diagnosis only.

    (The authors' released code used this on grid.)
    """

    simulator: AbstractFamily
    theta: Theta

    def __call__(
        self, key: PRNGKeyArray, state: State, action: Action, next_state: State, latent: Float[Array, " latent"]
    ) -> Outcome:
        """One step of the true dynamics."""
        outcome = self.simulator.step(key, state, action, self.theta)
        return outcome.reward, outcome.terminated


# Which reward it is.


def check_reward(kind: str, family: BaseFamily) -> None:
    """One clear sentence where the family cannot give what is asked of it."""
    if kind == "true":
        family.simulator('reward="true"')
    if kind == "given" and not family.knows_reward:
        raise ValueError(
            f"{family.name} was given no reward and terminated functions: give them to gymnasium_family, or use "
            'reward="learned".'
        )


def instance_reward(kind: str, family: BaseFamily, theta: Theta, head: RewardHead | None) -> AbstractReward:
    """The reward of one instance, by the values of `reward=`."""
    if kind == "given":
        return GivenReward(family, theta)
    if kind == "true":
        return TrueReward(family.simulator('reward="true"'), theta)
    if head is None:
        raise ValueError('reward="learned" needs a model that `pretrain` gave a reward head: pre-train it again.')
    return LearnedReward(head)


def is_shared(family: BaseFamily | None) -> bool:
    """Whether the family's R can be asked, and needs no hidden parameter."""
    return family is not None and family.knows_reward and not family.reward_needs_theta


def family_reward(family: BaseFamily | None, head: RewardHead | None, name: str) -> AbstractReward:
    """The reward of all members: R where it needs no hidden parameter, otherwise what was learned from the logs."""
    if family is not None and is_shared(family):
        return GivenReward(family, None)
    if head is None:
        raise ValueError(
            f"amortise needs a reward: {name!r} gives none for all its members, and the batch has none to learn."
        )
    return LearnedReward(head)


def log_reward(
    function: Callable[..., object] | None, head: RewardHead | None, specification: Specification
) -> AbstractReward:
    """The reward of a system of which there is only a log: the user's function, or what was learned from the logs."""
    if function is not None:
        return FunctionReward(function, specification)
    if head is None:
        raise ValueError("A policy needs a reward: a column of the logs, or a function (--reward module:function).")
    return LearnedReward(head)


def load_reward(text: str) -> Callable[..., object]:
    """The function that `module:function` stands for, otherwise a `ValueError`."""
    module, _, name = text.partition(":")
    found = getattr(user_module(module), name, None)
    if not callable(found):
        raise ValueError(f"Module {module!r} has no function {name!r} that could be a reward.")
    return found
