"""What a HiP-MDP is: one small protocol for the tuple {S, A, W, T, R, γ, P_W} of the paper.

A family is a frozen equinox module without arrays; an instance θ_b is a `NamedTuple` of named scalars. All
methods that take a `theta` are pure functions of JAX arrays, so a family of MDPs is a `vmap` over θ, and
lanes of episodes are a `vmap` over states and keys.
"""

import abc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from hipmdp.families.checks import known_name, number
from hipmdp.families.specification import Specification

if TYPE_CHECKING:
    from hipmdp.families.instance_sets import Instance

Theta = Any
"""An instance's hidden parameters θ_b: the family's own `NamedTuple` of scalars."""

DRAW_CHUNK = 64
"""Prior draws tested at once by `draw_instances`; fixed, so that it compiles once."""


class Step(NamedTuple):
    """What one step of an MDP gives. The time limit is not part of it: see `Specification.horizon`."""

    state: Float[Array, " state"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    cut: Bool[Array, ""] | bool = False
    """A model's imagination left what it knows: the episode ends here as if time were up. Never in a real MDP."""


class AbstractFamily(eqx.Module):
    """A family of MDPs that share S, A, R and γ and differ in the hidden parameters θ_b of T(s'|s,a,θ_b)."""

    baseline: eqx.AbstractClassVar[Theta]
    """The nominal member, as a `NamedTuple` of Python floats; its type is the family's θ."""
    fixed_start: eqx.AbstractClassVar[bool]
    """True if every episode starts in the same state."""
    reward_needs_theta: ClassVar[bool] = False
    """True if `reward` and `terminated` read θ (then imagination that is given R is told part of θ)."""

    @property
    @abc.abstractmethod
    def specification(self) -> Specification:
        """Names, bounds and counts of S and A, horizon and γ."""

    @abc.abstractmethod
    def sample_instance(self, key: PRNGKeyArray) -> Theta:
        """Draw θ_b ~ P_W, the raw prior: some draws may be unphysical (see `is_well_behaved`)."""

    @abc.abstractmethod
    def well_behaved_parts(self, theta: Theta) -> dict[str, Bool[Array, ""]]:
        """Each test that a well-behaved instance must pass, by name."""

    @abc.abstractmethod
    def check_parameter(self, name: str, value: float) -> None:
        """Raise `ValueError` if `value` is not physical for the parameter `name`."""

    @abc.abstractmethod
    def initial_state(self, key: PRNGKeyArray, theta: Theta) -> Float[Array, " state"]:
        """Draw the first state of an episode."""

    @abc.abstractmethod
    def dynamics(
        self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], theta: Theta
    ) -> Float[Array, " state"]:
        """Draw s' ~ T(s'|s, a, θ_b)."""

    @abc.abstractmethod
    def reward(
        self,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        next_state: Float[Array, " state"],
        theta: Theta = None,
    ) -> Float[Array, ""]:
        """R(s, a, s'), the function that all instances share."""

    @abc.abstractmethod
    def terminated(self, next_state: Float[Array, " state"], theta: Theta = None) -> Bool[Array, ""]:
        """Whether the MDP ends in `next_state`; never because time is up."""

    # What follows is the same for every family, unless it says otherwise.

    def succeeded(self, terminated: np.ndarray, last_state: np.ndarray) -> np.ndarray:
        """Which episodes reached what the family is about: by default, those that terminated.

        `terminated` is (episodes, time), `last_state` (episodes, D).
        """
        return np.any(terminated, axis=-1)

    @property
    def evaluation_episodes(self) -> int:
        """Episodes behind a greedy return: 20, or 1 where every episode is the same."""
        return 1 if self.fixed_start else 20

    @property
    def knows_reward(self) -> bool:
        """Whether `reward` and `terminated` can be asked; where not, imagination must learn them."""
        return True

    @property
    def given_sets(self) -> Mapping[str, Sequence[Mapping[str, float]]]:
        """Frozen instance sets of your own family, θ by name; sets that are not given are drawn, always alike."""
        return {}

    @property
    def name(self) -> str:
        """Name of the family."""
        return self.specification.family

    @property
    def horizon(self) -> int:
        """Steps after which an episode is truncated."""
        return self.specification.horizon

    @property
    def discount(self) -> float:
        """γ used for learning."""
        return self.specification.discount

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the hidden parameters."""
        return tuple(self.baseline._fields)

    def reset(self, key: PRNGKeyArray, theta: Theta) -> Float[Array, " state"]:
        """Start an episode of the instance `theta`."""
        return self.initial_state(key, theta)

    def step(
        self, key: PRNGKeyArray, state: Float[Array, "..."], action: Int[Array, "..."] | int, theta: Theta
    ) -> Step:
        """Take one step. Values are checked when they are concrete; inside jit only shapes can be."""
        action = jnp.asarray(action)
        if action.shape != ():
            raise ValueError(f"{self.name} takes one action at a time, got shape {action.shape}; use jax.vmap.")
        if not isinstance(action, jax.core.Tracer):
            self.check_action(int(action))
        if state.shape != (self.specification.state_size,):
            raise ValueError(self._state_length_message(state.shape))
        if not isinstance(state, jax.core.Tracer) and not bool(np.all(np.isfinite(np.asarray(state)))):
            raise ValueError(self._state_nan_message(np.asarray(state)))
        next_state = self.dynamics(key, state, action, theta)
        return Step(next_state, self.reward(state, action, next_state, theta), self.terminated(next_state, theta))

    def is_well_behaved(self, theta: Theta) -> Bool[Array, ""]:
        """The cheap half of the paper's filter ("well-behaved and controllable"): all the parts hold."""
        return jnp.all(jnp.stack(list(self.well_behaved_parts(theta).values())))

    def draw_instances(self, key: PRNGKeyArray, n: int) -> Theta:
        """The first `n` well-behaved draws from the prior, stacked: each leaf has shape (n,).

        Draw i uses `fold_in(key, i)`, so a longer list starts with the shorter one.
        """
        if n < 1:
            raise ValueError(f"draw_instances needs n of at least 1, got {n}.")
        kept: list[Any] = []
        count = 0
        for start in range(0, 1_000 * DRAW_CHUNK, DRAW_CHUNK):
            thetas, good = _draw_chunk(self, key, jnp.arange(start, start + DRAW_CHUNK, dtype=jnp.uint32))
            mask = np.asarray(good)
            kept.append(jax.tree.map(lambda leaf, mask=mask: np.asarray(leaf)[mask], thetas))
            count += int(mask.sum())
            if count >= n:
                return jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)[:n]), *kept)
        raise RuntimeError(f"Only {count} of {1_000 * DRAW_CHUNK} draws of {self.name} are well-behaved, {n} needed.")

    def instances(self, name: str) -> "list[Instance]":
        """A frozen set (`train`, `train32`, `test`): controllable members with the best returns known on them."""
        from hipmdp.families.instance_sets import frozen_instances

        return frozen_instances(self, name)

    def theta(self, values: Mapping[str, Any] | Theta | None = None) -> Theta:
        """θ_b from a mapping by name; what is missing takes its baseline value."""
        if values is None:
            values = {}
        if isinstance(values, type(self.baseline)):
            values = values._asdict()
        if not isinstance(values, Mapping):
            raise ValueError(
                f"theta of {self.name} must be a mapping by name or a {type(self.baseline).__name__}, "
                f"got {type(values).__name__}."
            )
        merged = dict(self.baseline._asdict())
        for name, value in values.items():
            known_name(f"parameter of {self.name}", name, self.parameter_names)
            # Judged as the float32 it will be: a rate that underflows to zero is not a rate.
            merged[name] = float(np.float32(number(f"{self.name} parameter", name, value)))
            self.check_parameter(name, merged[name])
        return type(self.baseline)(**{k: jnp.asarray(v, jnp.float32) for k, v in merged.items()})

    def check_action(self, action: Any) -> int:
        """`action` as an int in range, otherwise a `ValueError`."""
        count = self.specification.action_count
        whole = isinstance(action, (int, np.integer)) or (
            isinstance(action, np.ndarray) and action.shape == () and np.issubdtype(action.dtype, np.integer)
        )
        if not whole or isinstance(action, bool) or not 0 <= int(action) < count:
            names = ", ".join(f"{i} {n}" for i, n in enumerate(self.specification.action_names))
            raise ValueError(f"Action of {self.name} must be a whole number: {names}; got {action!r}.")
        return int(action)

    def check_state(self, state: Any) -> Float[Array, " state"]:
        """`state`, given in natural units, as the family's state, otherwise a `ValueError`."""
        try:
            values = np.asarray(state, np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"State of {self.name} must be a list of numbers, got {state!r}.") from None
        if values.shape != (self.specification.state_size,):
            raise ValueError(self._state_length_message(values.shape))
        if not np.all(np.isfinite(values)):
            raise ValueError(self._state_nan_message(values))
        values = self.from_natural_units(values)
        spec = self.specification
        for name, value, low, high in zip(spec.state_names, values, spec.state_low, spec.state_high, strict=True):
            # Bounds such as π are compared as float32, which is what a user's state often is.
            if not float(np.float32(low)) <= value <= float(np.float32(high)):
                raise ValueError(f"State {name!r} of {self.name} must be in [{low:g}, {high:g}], got {value:g}.")
        return jnp.asarray(values, jnp.float32)

    def from_natural_units(self, state: np.ndarray) -> np.ndarray:
        """From the units a person would give to the family's state (the same, unless overridden)."""
        return state

    def _state_length_message(self, shape: tuple[int, ...]) -> str:
        names = self.specification.state_names
        return f"State of {self.name} must have {len(names)} numbers ({', '.join(names)}), got shape {shape}."

    def _state_nan_message(self, state: np.ndarray) -> str:
        bad = [n for n, v in zip(self.specification.state_names, state, strict=True) if not np.isfinite(v)]
        return f"State of {self.name} must be finite, but {', '.join(bad)} is not."


@eqx.filter_jit
def _draw_chunk(
    family: AbstractFamily, key: PRNGKeyArray, indices: UInt32[Array, " n"]
) -> tuple[Theta, Bool[Array, " n"]]:
    def draw(index: UInt32[Array, ""]) -> tuple[Theta, Bool[Array, ""]]:
        theta = family.sample_instance(jax.random.fold_in(key, index))
        return theta, family.is_well_behaved(theta)

    return jax.vmap(draw)(indices)
