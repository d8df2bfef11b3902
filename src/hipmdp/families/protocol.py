"""What a HiP-MDP is: one small protocol for the tuple {S, A, W, T, R, γ, P_W} of the paper.

A family is a frozen equinox module without arrays; an instance θ_b is a `NamedTuple` of named scalars. The methods of
an `AbstractFamily` that take θ are pure functions of JAX arrays, so a family of MDPs is a `vmap` over θ, and lanes of
episodes are a `vmap` over states and keys.
"""

import abc
import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from hipmdp._random import stream
from hipmdp.families.base_family import AbstractInteraction, BaseFamily, check_numbers
from hipmdp.families.instance import Theta, theta_values
from hipmdp.families.rollout import (
    AbstractActor,
    AbstractEnvironment,
    Episode,
    Policy,
    Step,
    rollout_actors,
    rollouts,
)

__all__ = ["AbstractFamily", "AbstractInteraction", "BaseFamily", "Theta", "theta_values"]

DRAW_CHUNK = 64
"""Prior draws tested at once by `draw_instances`; fixed, so that it compiles once."""
MOST_CHUNKS = 1_000
"""Chunks after which `draw_instances` gives up."""


class AbstractFamily(BaseFamily, AbstractEnvironment):
    """A family whose steps are written in JAX: subclass it to bring your own.

    A subclass says `baseline` and `fixed_start`, and writes `specification`, `sample_instance`, `check_parameter`,
    `reward` and `terminated` (declared by `BaseFamily`), `well_behaved_parts`, `initial_state` and `dynamics`.
    """

    simulated: ClassVar[bool] = True

    @abc.abstractmethod
    def well_behaved_parts(self, theta: Theta) -> dict[str, Bool[Array, ""]]:
        """Each test that a well-behaved instance must pass, by name."""

    @abc.abstractmethod
    def initial_state(self, key: PRNGKeyArray, theta: Theta) -> Float[Array, " state"]:
        """Draw the first state of an episode."""

    @abc.abstractmethod
    def dynamics(
        self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], theta: Theta
    ) -> Float[Array, " state"]:
        """Draw s' ~ T(s'|s, a, θ_b)."""

    # What follows is the same for every family in JAX, unless it says otherwise.

    def reset(self, key: PRNGKeyArray, context: Theta) -> Float[Array, " state"]:
        """Draw the first state of an episode of the instance θ_b = `context`."""
        return self.initial_state(key, context)

    def step(
        self, key: PRNGKeyArray, state: Float[Array, "..."], action: Int[Array, "..."] | int, context: Theta
    ) -> Step:
        """Take one step of the instance θ_b = `context`.

        Values are checked when they are concrete; inside jit only shapes can be.
        """
        action = jnp.asarray(action)
        if action.shape != ():
            raise ValueError(f"{self.name} takes one action at a time, got shape {action.shape}; use jax.vmap.")
        if not isinstance(action, jax.core.Tracer):
            self.check_action(int(action))
        # Tracers have a shape too, but no values.
        known = np.zeros(state.shape) if isinstance(state, jax.core.Tracer) else np.asarray(state)
        check_numbers(self.specification, known)
        next_state = self.dynamics(key, state, action, context)
        return Step(next_state, self.reward(state, action, next_state, context), self.terminated(next_state, context))

    def looks_controllable(self, theta: Theta) -> Bool[Array, ""]:
        """A cheap guess at "controllable", by which draws are left out before anything is searched on them."""
        return jnp.ones((), bool)

    def is_well_behaved(self, theta: Theta) -> Bool[Array, ""]:
        """The cheap half of the paper's filter ("well-behaved and controllable"): all the parts hold."""
        return jnp.all(jnp.stack(list(self.well_behaved_parts(theta).values())))

    def draw_instances(self, key: PRNGKeyArray, n: int) -> Theta:
        """The first `n` well-behaved draws from the prior, stacked: each leaf has shape (n,).

        Draw i has a key of its own, so a longer list starts with the shorter one.
        """
        if n < 1:
            raise ValueError(f"draw_instances needs n of at least 1, got {n}.")
        kept: list[Any] = []
        count = 0
        for start in range(0, MOST_CHUNKS * DRAW_CHUNK, DRAW_CHUNK):
            thetas, good = _draw_chunk(self, key, jnp.arange(start, start + DRAW_CHUNK, dtype=jnp.int32))
            mask = np.asarray(good)
            kept.append(jax.tree.map(lambda leaf, mask=mask: np.asarray(leaf)[mask], thetas))
            count += int(mask.sum())
            if count >= n:
                return jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)[:n]), *kept)
        total = MOST_CHUNKS * DRAW_CHUNK
        raise RuntimeError(f"Only {count} of {total} draws of {self.name} are well-behaved, {n} needed.")

    def rollouts(self, policy: Policy, keys: Key[Array, " lanes"], thetas: Theta) -> Episode:
        """Run one episode of `policy` per (key, θ) pair, in one jitted scan."""
        return rollouts(self, policy, keys, thetas)

    def rollout_actors(
        self, actor: AbstractActor, memory: Any, keys: Key[Array, " lanes"], thetas: Theta
    ) -> tuple[Episode, Any]:
        """Run one episode of an actor per (key, θ) pair, in one jitted scan."""
        return rollout_actors(self, actor, memory, keys, thetas)

    def first_states(self, keys: Key[Array, " count"], theta: Theta) -> Float[Array, "count state"]:
        """First states of episodes of one instance."""
        return jax.vmap(lambda key: self.reset(key, theta))(keys)

    def interaction(self, theta: Theta) -> AbstractInteraction:
        """Step the instance θ from Python, one jitted call per step."""
        return _Interaction(self, theta)

    def simulator(self, purpose: str) -> "AbstractFamily":
        """The family itself."""
        return self


class _Interaction(AbstractInteraction):
    """An instance of a family in JAX."""

    def __init__(self, family: AbstractFamily, theta: Theta) -> None:
        self._family, self._theta = family, theta
        # The state stays a JAX array: converting it at every step would cost as much as the step.
        self._state: Any = None

    def reset(self, key: PRNGKeyArray) -> np.ndarray:
        """Draw the first state of an episode."""
        self._state = jitted_reset(self._family, key, self._theta)
        return np.asarray(self._state)

    def step(self, key: PRNGKeyArray, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Take one step; a family in JAX truncates no episode."""
        action = self._family.check_action(action)
        if self._state is None:
            raise ValueError("The episode is over (or has not begun): call reset first.")
        outcome = jitted_step(self._family, key, self._state, np.int32(action), self._theta)
        terminated = bool(outcome.terminated)
        self._state = None if terminated else outcome.state
        return np.asarray(outcome.state), float(outcome.reward), terminated, False

    def close(self) -> None:
        """End the episode; nothing else is held."""
        self._state = None


# θ is an argument: one compilation serves all instances of a family. Dispatch is what a step from Python costs.
@functools.partial(jax.jit, static_argnums=0)
def jitted_step(
    family: AbstractFamily, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], theta: Theta
) -> Step:
    """Take one step of the instance θ."""
    return family.step(key, state, action, theta)


@functools.partial(jax.jit, static_argnums=0)
def jitted_reset(family: AbstractFamily, key: PRNGKeyArray, theta: Theta) -> Float[Array, " state"]:
    """Draw the first state of an episode of the instance θ."""
    return family.reset(key, theta)


@eqx.filter_jit
def _draw_chunk(
    family: AbstractFamily, key: PRNGKeyArray, indices: Int[Array, " n"]
) -> tuple[Theta, Bool[Array, " n"]]:
    def draw(index: Int[Array, ""]) -> tuple[Theta, Bool[Array, ""]]:
        theta = family.sample_instance(stream(key, "families/prior", index))
        return theta, family.is_well_behaved(theta)

    return jax.vmap(draw)(indices)
