"""The model that `learn_policy` starts from, and its file: arrays and a JSON header, no pickle."""

import dataclasses
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from hipmdp._random import root_key, stream
from hipmdp.control.q_network import QNetwork
from hipmdp.data.checkpoint import DAMAGE, load_checkpoint, save_checkpoint
from hipmdp.data.support import Support
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.infer import Latent
from hipmdp.dynamics.model import Dynamics, Prediction, new_dynamics, predict
from hipmdp.dynamics.oracle import OracleLatents
from hipmdp.dynamics.quality import Quality, quality
from hipmdp.dynamics.reward_head import RewardHead, new_reward_head
from hipmdp.dynamics.standardise import Scaling
from hipmdp.families import FAMILIES
from hipmdp.families.specification import Specification
from hipmdp.pretraining.header import Header, read_header
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import LatentRole
from hipmdp.settings.pqn import PQNConfig


@dataclass(frozen=True)
class Model:
    """A method and what it brings along to a new instance."""

    method: str
    specification: Specification
    centre: tuple[float, ...]
    """Mean of each state dimension in the batch, in natural units, as are `scale`, `low` and `high`."""
    scale: tuple[float, ...]
    """Standard deviation of each state dimension in the batch."""
    low: tuple[float, ...] = ()
    """Smallest value of each state dimension in the batch: imagination does not leave the range of the data."""
    high: tuple[float, ...] = ()
    """Largest value, likewise."""
    dynamics: Dynamics | None = None
    """T̂, for methods that have one."""
    policy: QNetwork | None = None
    """Q(s): the blind policy, or the one that `learn_policy` or `advise` found; s is `specification.from_origin(…)`."""
    latent_policy: QNetwork | None = None
    """Q(s, w), from `amortise`."""
    reward_head: RewardHead | None = None
    """r̂ and termination learned from the batch, for `reward="learned"`."""
    oracle: OracleLatents | None = None
    """How θ becomes the latent, for a model that was fitted with the true parameters as latents (diagnosis)."""
    metrics: dict[str, float] = field(default_factory=dict)
    """What `pretrain` measured; see `hipmdp.pretrain`."""
    names: tuple[str, ...] = ()
    """What the training instances are called, in the order of their latents."""
    support: Support | None = None
    """Some of the states and actions of the batch: what has been tried where."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Where it comes from: counts of the data, the columns of logs, versions."""

    def new_network(self, config: DDQNConfig | PQNConfig, key: PRNGKeyArray) -> QNetwork:
        """An untrained Q-network that standardises as the batch says."""
        centre = jnp.asarray(self.specification.from_origin(self.centre))
        scale = jnp.asarray(self.scale, jnp.float32)
        actions = self.specification.action_count
        normalised = isinstance(config, PQNConfig) or config.normalised
        return QNetwork(centre, scale, actions, config.hidden, normalised=normalised, key=key)

    @property
    def expected_error(self) -> float:
        """Error of T̂ that pre-training leads one to expect: on held-out episodes, on training ones where none were held
        out, and 0 for a T̂ that was never trained."""
        measured = self.metrics.get("error_on_training_episodes", 0.0)
        return self.metrics.get("error_on_held_out_episodes", measured)

    @property
    def policy_unit(self) -> float | None:
        """What rewards were divided by when Q(s, w) was learned; None where there is none."""
        unit = self.metadata.get("policy_unit")
        return None if unit is None else float(unit)

    @property
    def caution(self) -> float:
        """How cautiously Q(s, w) acts under a belief, unless a run says otherwise (`amortise`)."""
        return float(self.metadata.get("caution", 0.0))

    @property
    def has_latent(self) -> bool:
        """Whether T̂ takes a latent."""
        return self.dynamics is not None and self.dynamics.config.role is not LatentRole.NONE

    def with_dynamics(self, dynamics: Dynamics) -> "Model":
        """The same model with another T̂."""
        return replace(self, dynamics=dynamics)

    def need_dynamics(self, purpose: str) -> Dynamics:
        """T̂, or one clear sentence where there is none."""
        if self.dynamics is None:
            raise ValueError(f"{purpose} needs a model of the dynamics, which method {self.method!r} does not have.")
        return self.dynamics

    def need_latent_policy(self, purpose: str) -> QNetwork:
        """Q(s, w), or one clear sentence where there is none."""
        if self.latent_policy is None:
            raise ValueError(
                f"{purpose!r} needs a policy Q(s, w), which this model does not have: use hipmdp.amortise."
            )
        return self.latent_policy

    def predict(
        self, state: Any, action: Any, latent: Any, seed: int = 0, draws: int = 50, duration: Any = None
    ) -> Prediction:
        """Mean, epistemic and noise variance of s' − s, a row per state and action; one latent, or one per row.

        All in natural units, as the batch has them.
        """
        key = stream(root_key(seed), "pretrain/metrics")
        dynamics, value = self.need_dynamics("predict"), _value(latent)
        return predict(dynamics, state, action, value, key=key, draws=draws, duration=duration)

    def quality(self, transitions: Transitions, latent: Any, seed: int = 0) -> Quality:
        """Error, log-likelihood and coverage of 50/80/95 % intervals on one instance's transitions with this latent."""
        key = stream(root_key(seed), "pretrain/metrics")
        return quality(self.need_dynamics("quality"), transitions, _value(latent), key=key)

    def save(self, path: str | Path) -> None:
        """Write the model to one file, whole or not at all; `hipmdp.load` reads it."""
        save_model(self, Path(path))

    def __repr__(self) -> str:
        metrics = ", ".join(f"{name} {value:.3g}" for name, value in self.metrics.items())
        return f"Model({self.method}, {self.specification.family}{': ' + metrics if metrics else ''})"


def _value(latent: Any) -> Any:
    return latent.value if isinstance(latent, Latent) else latent


# The file.


Parts = tuple[Dynamics | None, QNetwork | None, QNetwork | None, RewardHead | None, Support | None]
"""Everything of a model that is arrays."""
POLICIES = ("policy", "latent_policy")


def save_model(model: Model, path: Path) -> None:
    """Write everything that `load` needs."""
    dynamics = model.dynamics
    meta = {
        "method": model.method,
        "specification": model.specification.to_dict(),
        **{name: list(getattr(model, name)) for name in ("centre", "scale", "low", "high", "names")},
        "metrics": model.metrics,
        "dynamics": None
        if dynamics is None
        else {"config": dataclasses.asdict(dynamics.config), "instances": dynamics.latents.shape[0]},
        **{name: _layer_sizes(getattr(model, name)) for name in POLICIES},
        "normalised": [name for name in POLICIES if _is_normalised(getattr(model, name))],
        "reward_head": None if model.reward_head is None else model.reward_head.latent_size,
        "oracle": None if model.oracle is None else model.oracle._asdict(),
        "support": None if model.support is None else model.support.action.shape[0],
        "metadata": model.metadata,
    }
    parts: Parts = (dynamics, model.policy, model.latent_policy, model.reward_head, model.support)
    save_checkpoint(path, "model", parts, meta)


def _layer_sizes(network: QNetwork | None) -> list[int] | None:
    return None if network is None else [network.centre.shape[0], *(layer.out_features for layer in network.layers)]


def _is_normalised(network: QNetwork | None) -> bool:
    return network is not None and network.normalised


def load(path: str | Path) -> Model:
    """Read a model that `Model.save` wrote. Nothing in the file is run; a bad file is one clear `ValueError`.

    "grid", "compass", "acrobot" and "hiv" stand for the models that come with hipmdp, unless there is such a file.
    """
    if str(path) in FAMILIES and not Path(path).exists():
        place = resources.files("hipmdp.pretraining").joinpath("shipped", f"{path}.hipmdp")
        if not place.is_file():
            raise ValueError(f"No model of {str(path)!r} comes with hipmdp: make one with hipmdp.pretrain.")
        with resources.as_file(place) as shipped:
            return load(shipped)
    parts, meta = load_checkpoint(Path(path), "model", _template)
    try:
        return _from_header(read_header(meta), parts)
    except DAMAGE as error:
        raise ValueError(f"The header of {str(path)!r} is damaged ({error}).") from None


def _from_header(header: Header, parts: Parts) -> Model:
    dynamics, policy, latent_policy, reward_head, support = parts
    return Model(
        method=header.method,
        specification=Specification.from_dict(header.specification),
        centre=header.centre,
        scale=header.scale,
        low=header.low,
        high=header.high,
        dynamics=dynamics,
        policy=policy,
        latent_policy=latent_policy,
        reward_head=reward_head,
        oracle=header.oracle,
        metrics=header.metrics,
        names=header.names,
        support=support,
        metadata=header.metadata,
    )


def _template(meta: dict[str, Any]) -> Any:
    """The shapes of a model, without its arrays: a header that promises terabytes must not make us ask for them."""
    header = read_header(meta)
    return eqx.filter_eval_shape(lambda: _blank(header))


def _blank(header: Header) -> Parts:
    """A model of the same shapes; what the header says about a policy or a network must fit the arrays behind it."""
    specification = Specification.from_dict(header.specification)
    size, key = specification.state_size, root_key(0)
    zeros = jnp.zeros(size, jnp.float32)
    scaling = Scaling(zeros, zeros, zeros, zeros)
    dynamics, head, support = None, None, None
    if header.dynamics is not None:
        dynamics = new_dynamics(header.dynamics.config, specification, scaling, header.dynamics.instances, key=key)
    if header.reward_head is not None:
        head = new_reward_head(specification, scaling, header.reward_head, key=key)
    if header.support is not None:
        rows = header.support
        support = Support(jnp.zeros((rows, size), jnp.float32), jnp.zeros(rows, jnp.int32))
    policy, latent_policy = (_blank_network(getattr(header, name), name in header.normalised) for name in POLICIES)
    return dynamics, policy, latent_policy, head, support


def _blank_network(sizes: tuple[int, ...] | None, normalised: bool) -> QNetwork | None:
    if sizes is None:
        return None
    inputs, *hidden, actions = sizes
    zeros = jnp.zeros(inputs, jnp.float32)
    return QNetwork(zeros, zeros, actions, tuple(hidden), normalised=normalised, key=root_key(0))
