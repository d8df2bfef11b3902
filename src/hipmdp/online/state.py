"""Where an `online` run stands: an immutable state, and what happened on each instance."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from jaxtyping import Array, Float

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.online.model_size import Choice
from hipmdp.pretraining.model import Model


class OnlineRecord(NamedTuple):
    """One instance, episode by episode."""

    returns: tuple[float, ...]
    model_error: tuple[float, ...]
    """Error of T̂ on each episode before it was fitted to it (RMSE per dimension, standardised); NaN without a T̂."""
    misjudged: tuple[bool, ...]
    """Whether the model misjudged the system in that episode."""
    fits: int
    """How often the model and the policy were learned anew."""
    choice: Choice
    """The size in use at the end, and what held-out data said when it was chosen."""
    seconds: float


@dataclass(frozen=True)
class OnlineState:
    """What is known of the family, and of the instance under way."""

    records: tuple[OnlineRecord, ...] = ()
    """The instances that are finished."""
    batch: Transitions | None = None
    """𝒟: every episode so far; instance b is the b-th of the run."""
    model: Model | None = None
    choice: Choice | None = None
    """The size of the model."""
    returns: tuple[float, ...] = ()
    """Of the instance under way, as the two fields below."""
    model_error: tuple[float, ...] = ()
    misjudged: tuple[bool, ...] = ()
    fits: int = 0
    """How often the family was learned anew with this instance."""
    is_fitted: bool = False
    """Whether the model was fitted with this instance as its newest: then w_b is the last of its latents."""
    belief: Belief | None = None
    """p(w_b | transitions since the model was fitted), where w_b is inferred."""
    epsilon: float = 0.0
    """Share of random actions in the next episode."""
    in_doubt: bool = False
    """Whether the model misjudged an episode that it was not fitted to."""
    is_due: bool = False
    """Whether the last episode asks for the family to be learned anew, which is still to come."""
    seconds: float = 0.0
    """Time spent on the instance under way, in earlier calls too."""

    @property
    def number(self) -> int:
        """The instance under way: its position in the run, and its id in 𝒟."""
        return len(self.records)

    @property
    def episode(self) -> int:
        """Episodes with it so far."""
        return len(self.returns)

    @property
    def latent(self) -> Float[Array, " latent"]:
        """w_b as far as it is known: fitted, believed, or that of the only instance there is."""
        assert self.model is not None
        latents = self.model.need_dynamics("online").latents
        if self.is_fitted:
            return latents[-1]
        return latents[0] if self.belief is None else self.belief.best

    def with_next_instance(self) -> "OnlineState":
        """The state after the last episode of an instance: what is known of the family stays."""
        assert self.choice is not None
        record = OnlineRecord(self.returns, self.model_error, self.misjudged, self.fits, self.choice, self.seconds)
        records = (*self.records, record)
        return OnlineState(records, batch=self.batch, model=self.model, choice=self.choice)

    def with_model(self, model: Model, choice: Choice) -> "OnlineState":
        """The state with a model that was fitted with this instance as its newest."""
        return replace(
            self, model=model, choice=choice, fits=self.fits + 1, is_fitted=True, belief=None, in_doubt=False,
            is_due=False,
        )  # fmt: skip
