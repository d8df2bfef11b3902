"""Settings of the dynamics model and of the filter over its latents, with where each value comes from."""

from dataclasses import dataclass, fields
from enum import StrEnum

from hipmdp._errors import LARGEST


class LatentRole(StrEnum):
    """How the latent w_b enters the network."""

    EMBEDDED = "embedded"
    """As an input beside the state and the action: s' − s = T̂(s, a, w_b)."""
    LINEAR = "linear"
    """The network puts out |w|×D numbers that w_b combines: s' − s = w_bᵀ T̂(s, a)."""
    NONE = "none"
    """Not at all: s' − s = T̂(s, a)."""


@dataclass(frozen=True)
class DynamicsConfig:
    """Everything a fit needs besides the data. "Paper" is its appendix "Experiment Specifications"."""

    role: LatentRole = LatentRole.EMBEDDED
    """How the latent w_b enters the network."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of the ReLU layers (paper: 25, 25, 25 on grid; 32, 32 on acrobot and HIV)."""
    correction: tuple[int, ...] = ()
    """Units of the ReLU layers of the network that corrects what the first one proposes (`hipmdp.dynamics.network`);
    empty: there is none (paper)."""
    bilinear: bool = False
    """Whether the network has outputs that are multiplied by w_b, beside w_b as an input (paper: no)."""
    latent_size: int = 5
    """|w_b|: numbers of a latent (paper)."""
    stochastic_input: bool = False
    """An input z ~ N(0, 1), new for every transition: makes multimodal and heteroskedastic transitions possible."""
    alpha: float = 0.5
    """α of the divergence (paper: 0.5; HIV 0.45)."""
    prior_variance: float = 1.0
    """λ: prior variance of every weight (released code)."""
    initial_rho: float = -10.0
    """ρ at the start: posterior variances begin at λ·sigmoid(ρ) (released code)."""
    initial_log_noise: float = 0.0
    """log σ_n² at the start, standardised. Small values (−4) make a network with a stochastic input use it."""
    largest_count: int | None = None
    """N of the energy is the number of transitions in the data, but at most this (released code: the 160 sampled ones).
    Transitions repeat each other; a smaller N keeps the posterior wide where an instance has not been."""
    weight_draws: int = 4
    """K: weight draws per gradient step (released code: 50)."""
    batch_size: int = 256
    """Transitions per mini-batch (paper: 32)."""
    learning_rate: float = 4e-3
    """Of Adam on W and the noise, at the start (paper: 2.5e-4; grid 5e-5)."""
    rho_rate_factor: float = 1.0
    """How many times faster ρ moves than the means: its gradient is mostly noise, and Adam divides by that noise."""
    latent_learning_rate: float = 5e-3
    """Of Adam on the w_b's, at the start (paper: 5e-4)."""
    decay: bool = True
    """Whether both rates fall to zero along a cosine (paper: constant)."""
    weight_steps: int = 1
    """Gradient steps on W before the latents have their turn (paper: 100 epochs of 160/32)."""
    latent_steps: int = 1
    """Gradient steps on the latents before W has its turn again (paper: likewise)."""
    rounds: int = 20_000
    """Turns of both in `pretrain`."""
    held_out_share: float = 0.05
    """Share of every instance's episodes that `pretrain` keeps back to measure its error."""
    tune_rounds: int = 500
    """Turns of both in `tune_model`."""
    tune_learning_rate: float = 2e-3
    """Of Adam on W in `tune_model`, at the start (paper: as in pre-training)."""
    tune_widening: float = 10.0
    """How much wider than the posterior of pre-training the prior in `tune_model` is (0: the prior of pre-training,
    as in the paper)."""
    scratch_rounds: int = 3000
    """Turns in `tune_model` of a model that was never trained (at the full learning rate)."""
    tune_batch_size: int = 64
    """Transitions per mini-batch in `tune_model`."""
    latent_tries: int = 4
    """Starts from which `infer_latent` descends, chosen among the training latents and their mean."""
    infer_steps: int = 150
    """Gradient steps of `infer_latent` from each start."""
    infer_learning_rate: float = 0.05
    """Of Adam in `infer_latent`, at the start, in standard deviations of the training latents."""
    infer_draws: int = 8
    """Weight draws in `infer_latent`: the same ones at every step, so that starts can be compared."""
    infer_rows: int = 400
    """Transitions that `infer_latent` uses at most (the latest episode first)."""
    priority_exponent: float = 0.2
    """Exponent a of prioritized replay (paper)."""
    importance_exponent: float = 0.1
    """Exponent b of the importance weights (paper)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            numbers = value if isinstance(value, tuple) else () if value is None else (value,)
            least = 1 if field.name in _AT_LEAST_ONE else -LARGEST if field.name in _ANY else 0
            for number in numbers:
                if isinstance(number, (int, float)) and not least <= number <= LARGEST:
                    raise ValueError(
                        f"{field.name} of DynamicsConfig must be from {least:g} to {LARGEST:g}, got {number}."
                    )
        if not self.alpha > 0 or not self.prior_variance > 0 or not self.held_out_share < 1:
            raise ValueError("alpha and prior_variance of DynamicsConfig must be positive, held_out_share below 1.")


_AT_LEAST_ONE = (
    "hidden",
    "correction",
    "latent_size",
    "weight_draws",
    "batch_size",
    "tune_batch_size",
    "infer_draws",
    "infer_rows",
)
_ANY = ("initial_rho", "initial_log_noise")


@dataclass(frozen=True)
class FilterConfig:
    """Settings of the filter over w_b (`hipmdp.dynamics.belief`, whose equations name them)."""

    weight_draws: int = 8
    """Weight draws whose spread is v(s, a)."""
    misfit_rows: float = 10.0
    """After how many rows the misfit c of this instance counts as much as the expected one, which is 1."""
    misfit_memory: float = 200.0
    """Rows over which the misfit is averaged, later on."""
    temperature: float = 30.0
    """T: at 1, HIV's 95 % intervals hold 81 % where the next episode is unlike the last; at 100, 99 % elsewhere."""
    weight_temperature: float = 10.0
    """How many rows count as one for the weights p_h: what T̂ misses on a new instance is alike from row to row, and
    must not decide between hypotheses that only a later row can tell apart."""
    gate: float = 9.0
    """Squared error per dimension, in units of its expected square, beyond which a row counts as an outlier."""
    smallest_misfit: float = 0.01
    """Lower limit of c: a model can be ten times as good as it expects (grid away from walls), but not perfect."""
    largest_surprise: float = 25.0
    """A squared error counts for the misfit as at most this many times the expected one: a wall is not noise."""
