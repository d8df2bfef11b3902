"""What `learn_policy` starts from: a method, the specification of its data, and what that method has learned so far."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.control.config import DDQNConfig
from hipmdp.control.network import QNetwork
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.config import LatentRole
from hipmdp.dynamics.infer import Latent
from hipmdp.dynamics.model import Dynamics, Prediction, predict
from hipmdp.dynamics.oracle import OracleLatents
from hipmdp.dynamics.quality import Quality, quality
from hipmdp.dynamics.reward_head import RewardHead
from hipmdp.families.specification import Specification
from hipmdp.transfer.methods import METHODS, find_method
from hipmdp.transfer.support import Support


@dataclass(frozen=True)
class Model:
    """A method and what it brings along to a new instance."""

    method: str
    specification: Specification
    centre: tuple[float, ...]
    """Mean of each state dimension in the batch."""
    scale: tuple[float, ...]
    """Standard deviation of each state dimension in the batch."""
    low: tuple[float, ...] = ()
    """Smallest value of each state dimension in the batch: imagination does not leave the range of the data."""
    high: tuple[float, ...] = ()
    """Largest value, likewise."""
    dynamics: Dynamics | None = None
    """T̂, for methods that have one."""
    policy: QNetwork | None = None
    """`blind`: the Q-network trained across the training instances. `amortised`: Q(s, w)."""
    reward_head: RewardHead | None = None
    """r̂ and termination learned from the batch, for `reward="learned"`."""
    oracle: OracleLatents | None = None
    """How θ becomes the latent, for a model that was fitted with the true parameters as latents (diagnosis)."""
    report: dict[str, float] = field(default_factory=dict)
    """What `pretrain` measured: `held_out_error` (mean L2, standardised), `sensitivity` to the latent, …"""
    names: tuple[str, ...] = ()
    """What the training instances are called, in the order of their latents."""
    support: Support | None = None
    """Some of the states and actions of the batch: what has been tried where."""
    about: dict[str, Any] = field(default_factory=dict)
    """Where it comes from: counts of the data, the columns of logs, versions."""

    def new_network(self, config: DDQNConfig, key: PRNGKeyArray) -> QNetwork:
        """An untrained Q-network that standardises as the batch says."""
        centre, scale = (jnp.asarray(v, jnp.float32) for v in (self.centre, self.scale))
        return QNetwork(centre, scale, self.specification.action_count, config.hidden, key=key)

    def first_latent(self, theta: Any, key: PRNGKeyArray) -> Float[Array, " latent"]:
        """w_b of an instance of which nothing is known: drawn from the prior, or θ's own where θ is the latent."""
        if self.oracle is not None:
            return self.oracle.latent(theta)
        prior = self.need_dynamics("a latent").latent_prior
        return prior.mean + jnp.sqrt(prior.variance) * jax.random.normal(key, prior.mean.shape, jnp.float32)

    @property
    def has_latent(self) -> bool:
        """Whether T̂ takes a latent."""
        return self.dynamics is not None and self.dynamics.config.role is not LatentRole.NONE

    def used_as(self, method: str) -> "Model":
        """The same model for another method: what learned Q(s, w) can be embedded, amortised or refined."""
        wanted, own = find_method(method, "learn_policy"), METHODS[self.method]
        if wanted is own:
            return self
        if wanted.amortised and not own.amortised:
            raise ValueError(f"{method!r} needs a policy Q(s, w), which this model does not have: use hipmdp.amortise.")
        if not own.amortised or wanted.role is not own.role or not wanted.pretrained:
            raise ValueError(f"A model of method {self.method!r} cannot be used as {method!r}: pre-train one.")
        return replace(self, method=method)

    def with_dynamics(self, dynamics: Dynamics) -> "Model":
        """The same model with another T̂."""
        return replace(self, dynamics=dynamics)

    def need_dynamics(self, purpose: str) -> Dynamics:
        """T̂, or one clear sentence where there is none."""
        if self.dynamics is None:
            raise ValueError(f"{purpose} needs a model of the dynamics, which method {self.method!r} does not have.")
        return self.dynamics

    def predict(
        self, state: Any, action: Any, latent: Any, seed: int = 0, draws: int = 50, duration: Any = None
    ) -> Prediction:
        """Mean, epistemic and noise variance of s' − s, a row per state and action; one latent, or one per row."""
        value = latent.value if isinstance(latent, Latent) else latent
        return predict(self.need_dynamics("predict"), state, action, value, seed, draws, duration)

    def quality(self, transitions: Transitions, latent: Any, seed: int = 0) -> Quality:
        """Error, log-likelihood and coverage of 50/80/95 % intervals on one instance's transitions with this latent."""
        value = latent.value if isinstance(latent, Latent) else latent
        return quality(self.need_dynamics("quality"), transitions, value, seed)

    def save(self, path: str | Path) -> None:
        """Write the model to one file, whole or not at all; `hipmdp.load` reads it."""
        from hipmdp.transfer.storage import save_model

        save_model(self, Path(path))

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {value:.3g}" for name, value in self.report.items())
        return f"Model({self.method}, {self.specification.family}{': ' + facts if facts else ''})"
