"""Where a run of a built-in method stands: an immutable value, and how it is kept on disk."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.adaptation.remarks import Expected
from hipmdp.control.caution import Chances
from hipmdp.control.guard import Guard
from hipmdp.control.policy_learner import PolicyLearner
from hipmdp.control.q_network import QNetwork
from hipmdp.control.rounds import RoundsLearner
from hipmdp.data.transitions import COLUMNS, Transitions
from hipmdp.dynamics.belief import Belief, Filter
from hipmdp.dynamics.model import Dynamics
from hipmdp.families.rollout import Transition
from hipmdp.pretraining.model import Model


class Phase(StrEnum):
    """What comes next."""

    INTERACT = "interact"
    """A real episode."""
    TUNE = "tune"
    """If it is due: fit T̂ to the instance."""
    IMAGINE = "imagine"
    """Imagined episodes, up to `imagined_target`."""


@dataclass(frozen=True)
class AdaptationState:
    """Everything that changes while one instance is learned."""

    model: Model
    """What the method learned from the batch; never on disk."""
    instance_data: Transitions
    """𝒟_b: the real episodes so far."""
    learner: PolicyLearner | RoundsLearner | None = None
    """What learns in imagination and its best policy; None where nothing is learned."""
    dynamics: Dynamics | None = None
    """T̂, tuned to the instance so far."""
    latent: Float[Array, " latent"] | None = None
    """w_b."""
    belief: Belief | None = None
    """p(w_b | transitions so far), for methods that update it step by step."""
    starts: Float[Array, "starts state"] | None = None
    """First states of imagined episodes."""
    imagination_key: PRNGKeyArray | None = None
    """Key of the contexts and validation episodes; new at every tuning."""
    previous_policies: tuple[QNetwork, ...] = ()
    """[i]: the best policy when T̂ had been tuned i + 1 times; the last one's is the learner's."""
    phase: Phase = Phase.INTERACT
    episode: int = 0
    """Real episodes that are finished, with all that is learned from them."""
    tunings: int = 0
    """How often T̂ was tuned, the first time included."""
    imagined_target: int = 0
    """Imagined episodes that a DQN is to see so far."""
    imagined_before: int = 0
    """Those of the learners before it."""
    return_to_beat: float | None = None
    """Imagined return of the previous policy in a model just tuned, until the DQN has found a better one."""
    expected: Expected | None = None
    """Imagined return of the policy that was found last."""
    policy_index: tuple[int, ...] = ()
    """[i]: after how many tunings the policy was found that controlled episode i."""
    learning_returns: tuple[float, ...] = ()
    """[i]: undiscounted return of episode i."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """Record of what was done since the last episode."""
    filter: Filter | None = None
    """How the belief follows transitions; never on disk, as the key decides it."""
    guard: Guard | None = None
    """What predicts the chances of breaking a limit, where there are limits; never on disk, likewise."""
    steps: tuple[Transition, ...] = ()
    """The episode under way; never on disk."""
    chances: tuple[Chances, ...] = ()
    """Of its decisions, where there are limits; never on disk."""
    actor: Any = None
    """What acts in the episode under way; never on disk."""

    @property
    def policy_learner(self) -> PolicyLearner:
        """The DQN and its best policy, of a method that has one."""
        assert isinstance(self.learner, PolicyLearner)
        return self.learner

    @property
    def network(self) -> QNetwork:
        """The best policy of the present learner."""
        assert self.learner is not None
        return self.learner.best

    def noted(self, **info: Any) -> "AdaptationState":
        """The same with more in its record."""
        return replace(self, info={**self.info, **info})


ARRAYS = ("learner", "dynamics", "latent", "belief", "starts", "imagination_key", "previous_policies")
COUNTERS = (
    "phase",
    "episode",
    "tunings",
    "imagined_target",
    "imagined_before",
    "return_to_beat",
    "expected",
)
SERIES = ("policy_index", "learning_returns")


def state_parts(state: AdaptationState) -> tuple[Any, dict[str, Any]]:
    """The state as a pytree of arrays and JSON-ready values."""
    columns = {name: getattr(state.instance_data, name) for name in COLUMNS}
    info = {name: value.tolist() if isinstance(value, (np.ndarray, jax.Array)) else value
            for name, value in state.info.items()}  # fmt: skip
    meta = {
        **{name: getattr(state, name) for name in COUNTERS},
        **{name: list(getattr(state, name)) for name in SERIES},
        "policies": len(state.previous_policies),
        "rows": len(state.instance_data),
        "info": info,
    }
    return ({name: getattr(state, name) for name in ARRAYS}, columns), meta


def state_template(initial: AdaptationState, meta: Mapping[str, Any]) -> Any:
    """Arrays of the shapes that were saved, from the state before the first episode."""
    arrays = {name: getattr(initial, name) for name in ARRAYS}
    if meta["policies"]:
        arrays["previous_policies"] = (initial.network,) * int(meta["policies"])
    data, rows = initial.instance_data, int(meta["rows"])
    columns = {name: np.zeros((rows, *getattr(data, name).shape[1:]), getattr(data, name).dtype) for name in COLUMNS}
    return arrays, columns


def restored_state(initial: AdaptationState, parts: Any, meta: Mapping[str, Any]) -> AdaptationState:
    """The state that was saved."""
    arrays, columns = parts
    data = Transitions(
        initial.instance_data.specification,
        {name: np.asarray(column) for name, column in columns.items()},
        initial.instance_data.thetas,
    )
    expected = None if meta["expected"] is None else Expected(*meta["expected"])
    counters = {name: meta[name] for name in COUNTERS} | {"phase": Phase(meta["phase"]), "expected": expected}
    series: dict[str, Any] = {name: tuple(meta[name]) for name in SERIES}
    return replace(initial, instance_data=data, info=dict(meta["info"]), **arrays, **counters, **series)
