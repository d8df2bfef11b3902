"""What a method is: one class with six functions; and how anybody's class is run beside the built-in ones."""

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jaxtyping import PRNGKeyArray

from hipmdp.control.policy import Policy, function_policy
from hipmdp.data.transitions import Transitions
from hipmdp.data.work import Work
from hipmdp.families.protocol import BaseFamily, Theta
from hipmdp.families.rollout import Transition
from hipmdp.families.specification import Specification
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.dynamics import DynamicsConfig
from hipmdp.settings.limits import Limits

if TYPE_CHECKING:
    from hipmdp.adaptation.run import Run

Info = Mapping[str, Any]
"""What happened, by name: numbers, flags and small arrays."""


class AbstractMethod(abc.ABC):
    """One way to learn to control a new instance. States are immutable values; everything random comes from the keys.

    `model` is whatever `prepare` returned. Observations are NumPy arrays, actions whole numbers.
    """

    name: ClassVar[str]
    """How tables and files call it."""

    @abc.abstractmethod
    def prepare(self, key: PRNGKeyArray, batch: Transitions, family: BaseFamily) -> Any:
        """Learn from the batch 𝒟 of earlier instances, once per seed; may return None."""

    @abc.abstractmethod
    def start(self, key: PRNGKeyArray, model: Any, specification: Specification) -> Any:
        """The state before the first real episode of a new instance."""

    @abc.abstractmethod
    def act(self, key: PRNGKeyArray, state: Any, observation: Any) -> tuple[int, Any]:
        """The action of a real step, and the state."""

    @abc.abstractmethod
    def observe(self, state: Any, transition: Transition) -> Any:
        """The state after a real step."""

    @abc.abstractmethod
    def after_episode(self, key: PRNGKeyArray, state: Any) -> tuple[Any, Info]:
        """Learn from the episode that has just ended; `info` is the record of what was done."""

    @abc.abstractmethod
    def policy(self, state: Any) -> Callable[..., Any]:
        """The greedy policy so far: observation → action."""


@dataclass(frozen=True)
class Setting:
    """What a built-in method is made with: its settings, and what it may know of the instance."""

    preset: str = "default"
    dynamics: DynamicsConfig | None = None
    """Of `prepare`; None: the preset's."""
    amortise: AmortiseConfig | None = None
    """Of `prepare`: how Q(s, w) is learned; None: the preset's."""
    work: Work | None = None
    """Where `prepare` keeps checkpoints; None: nowhere."""
    adaptation: AdaptationConfig | None = None
    """Of `start` and what follows; None: the preset's."""
    family: BaseFamily | None = None
    """For R and for the sizes of replays."""
    theta: Theta | None = None
    """For start states, for rewards that read it, and for diagnosis: T̂ gets nothing of it."""
    episodes: int = 0
    """Real episodes, for which replays must have room."""
    reward: str = "given"
    """Inside imagination: "given", "learned" or "true"."""
    imagine_in: str = "model"
    """"model", or "environment": learn the policy in the true environment (diagnosis)."""
    caution: float | None = None
    """How cautiously it acts under a belief; None: as its `adaptation` settings say."""
    limits: Limits | None = None
    """Limits on states; None: those of its `adaptation` settings."""
    on_chunk: Callable[[Any], None] = lambda state: None
    """Called at chunk edges with a state from which `start` or `after_episode` goes on to the same bits; its arrays are
    given to the next chunk, so that it must be written at once."""


class RunnableMethod(AbstractMethod):
    """What `learn_policy` and `compare` run: the six functions, and what checkpoints, progress and records ask for.

    The defaults are those of a method that has no settings, is never resumed and records nothing more.
    """

    uses_model_of: ClassVar[str | None] = None
    """The built-in method whose prepared model this one uses: a study prepares it once, as a file. None: `prepare` is
    called in every process that needs it."""
    imagines: ClassVar[bool] = False
    """Whether it learns in imagination: then `reward` and `imagine_in` concern it."""

    keeps_limits: ClassVar[bool] = False
    """Whether every episode of it can be kept within limits."""

    def acts_under_belief(self, model: Any) -> bool:
        """Whether an episode of it is controlled under a belief about w_b: then caution concerns it."""
        return False

    def check(self, model: Any, batch: Transitions | None) -> None:
        """One clear sentence where model and batch are not for this method, before anything is run or written."""

    def varied_config(self, adaptation: Mapping[str, Any], dqn: Mapping[str, Any]) -> AdaptationConfig | None:
        """Its settings with some fields changed; None: it has none."""
        return None

    @property
    def used_config(self) -> AdaptationConfig | None:
        """The settings that it uses; None: it has none."""
        return None

    def saved(self, state: Any) -> tuple[Any, dict[str, Any]] | None:
        """A state as a pytree of arrays and JSON-ready values; None: it cannot be resumed."""
        return None

    def restored(self, key: PRNGKeyArray, model: Any, load: Callable[[Any], Any]) -> Any:
        """The state that was saved; `load` reads arrays of the shapes that a function of the saved values gives."""
        raise NotImplementedError

    def resumed(self, state: Any) -> Any:
        """A restored state, with what `start` had still to do."""
        return state

    def instance_data(self, state: Any) -> Transitions | None:
        """𝒟_b of a restored state."""
        return None

    def imagined_so_far(self, state: Any, episodes: int) -> tuple[int, int] | None:
        """How much of imagination is done, and how much there will be; None where real episodes take the time."""
        return None

    def public_policy(self, state: Any, specification: Specification) -> Policy:
        """The greedy policy so far, for those who get the run."""
        return Policy(specification, self.policy(state))

    @abc.abstractmethod
    def completed(self, run: "Run", state: Any, *, batch: Transitions | None, key: PRNGKeyArray) -> "Run":
        """The record of a run with what this method knows at its end; `run.model` is the model that it was given."""


class OwnMethod(RunnableMethod):
    """Somebody's own method, run through its six functions."""

    def __init__(self, method: AbstractMethod) -> None:
        self.method = method

    @property
    def name(self) -> str:  # type: ignore[override]
        """The method's."""
        return self.method.name

    def prepare(self, key: PRNGKeyArray, batch: Transitions, family: BaseFamily) -> Any:
        """The method's."""
        return self.method.prepare(key, batch, family)

    def start(self, key: PRNGKeyArray, model: Any, specification: Specification) -> Any:
        """The method's."""
        return self.method.start(key, model, specification)

    def act(self, key: PRNGKeyArray, state: Any, observation: Any) -> tuple[int, Any]:
        """The method's."""
        return self.method.act(key, state, observation)

    def observe(self, state: Any, transition: Transition) -> Any:
        """The method's."""
        return self.method.observe(state, transition)

    def after_episode(self, key: PRNGKeyArray, state: Any) -> tuple[Any, Info]:
        """The method's."""
        return self.method.after_episode(key, state)

    def policy(self, state: Any) -> Callable[..., Any]:
        """The method's."""
        return self.method.policy(state)

    def completed(self, run: "Run", state: Any, *, batch: Transitions | None, key: PRNGKeyArray) -> "Run":
        """The same: nobody knows more of it."""
        return run

    def public_policy(self, state: Any, specification: Specification) -> Policy:
        """The method's, a function in Python."""
        return function_policy(self.policy(state), specification)
