"""Settings of Algorithm 1, with where each value comes from; presets are values."""

from dataclasses import dataclass, field, replace
from typing import Any

from hipmdp.control.config import DDQNConfig
from hipmdp.control.presets import preset as control_preset
from hipmdp.families.checks import known_name
from hipmdp.families.specification import Specification

FIRST_EPISODES = 10
"""Episodes of the paper's comparison, in which T̂ is tuned whenever it is inaccurate."""


@dataclass(frozen=True)
class TransferConfig:
    """What happens after each real episode."""

    learner: DDQNConfig = field(default_factory=DDQNConfig)
    """The Double DQN inside imagination."""
    imagined_episodes: int = 500
    """N_f: imagined episodes after each tuning of T̂ (paper; released code: 1,000 on grid)."""
    weight_draws: int = 16
    """Weight draws of a pool, one per imagined episode in turn (released code: the mean over 50)."""
    mean_weights: bool = False
    """Whether imagination follows the mean over the draws (released code) instead of one draw per episode."""
    latent_temperature: float = 100.0
    """Each context also has a w_b of its own, from the Laplace posterior around the fitted one at this temperature;
    0: all have the fitted one (paper)."""
    look_episodes: int = 50
    """Imagined greedy episodes by which the best policy on the way is chosen; 0: the last one is used (paper)."""
    inaccurate_factor: float = 2.0
    """T̂ is inaccurate when its error on the episode just seen is more than this times its held-out error in
    pre-training (the paper gives no test)."""
    retunings: int = 2
    """How often T̂ is tuned again in the first ten episodes, at most (released code: once). After them it is tuned
    whenever there are twice as many, accurate or not, so that a long run goes on learning at little cost (released
    code: every ten); 0: never."""
    rehearsal: bool = False
    """Whether N_f episodes are imagined before the first real one, with the members that T̂ was trained on, so that the
    first episode is lived by a policy for the family, greedily; otherwise it is random (paper). A new student learns
    in the T̂ that is tuned to it."""
    forget: bool = True
    """Whether the student forgets what another T̂ has shown it when T̂ was tuned. It goes on from the network it has; as
    such a one sometimes learns nothing any more, a new student takes its place if it finds no policy that looks
    better in the tuned T̂ than the one there was, which is kept if the new one finds none either. (`refined` always goes
    on. paper: the student goes on, and 𝒟ᶠ_b keeps everything)"""
    life_decides: bool = True
    """Whether, after the tenth episode, a policy that lives clearly worse than an earlier one is given up for that one,
    and only a new tuning leads to another (paper: imagination goes on after every episode, and the last policy is
    always followed)."""
    restart_known: bool = False
    """Whether imagined episodes that do not begin at the start (`learner.restart_share`) begin where the batch was
    instead of where imagination was: a rare reward that somebody once found need not be found again."""
    update_rounds: int = 2000
    """Rounds of the update of W and the latents from 𝒟 after the instance, when 𝒟 was given."""
    curiosity: float = 0.1
    """`amortised`: weight of what an action is expected to tell about w_b (nats) against its value, in units of the
    spread of values over the actions."""

    def is_milestone(self, episode: int) -> bool:
        """Whether T̂ is tuned after this episode, counted from 0, though it may be accurate: the eleventh, twenty-first,
        forty-first, …"""
        tens, rest = divmod(episode, FIRST_EPISODES)
        return self.retunings > 0 and tens > 0 and rest == 0 and tens.bit_count() == 1

    def goes_on(self, episode: int) -> bool:
        """Whether imagination goes on after this episode, counted from 0, though T̂ was not tuned."""
        return episode < FIRST_EPISODES or not self.life_decides

    def few_imagined(self, episodes: int, first: int = 0) -> int:
        """How many imagined episodes there are beside the N_f of every tuning, from episode `first` on."""
        return self.learner.lanes * sum(self.goes_on(i) or self.is_milestone(i) for i in range(first, episodes))

    def most_imagined(self, episodes: int) -> int:
        """How many imagined episodes a student sees on one instance, at most."""
        phases = 1 + self.rehearsal + self.retunings + sum(map(self.is_milestone, range(episodes)))
        many = self.imagined_episodes * (1 if self.forget else phases)
        return many + self.few_imagined(episodes) + self.learner.lanes


def _paper(episodes: int) -> TransferConfig:
    return TransferConfig(
        imagined_episodes=episodes,
        weight_draws=50,
        mean_weights=True,
        latent_temperature=0,
        look_episodes=0,
        forget=False,
        life_decides=False,
        update_rounds=10,
    )


PAPER = {"grid": _paper(1000), "acrobot": _paper(500), "hiv": _paper(500)}
DEFAULT = {
    # Two instances are known: between their latents there is nothing that imagination should visit.
    "grid": TransferConfig(imagined_episodes=1000, latent_temperature=1),
    "acrobot": TransferConfig(imagined_episodes=800),
    # One start: imagined episodes differ only by their context, of which there are 16.
    # Random treatment leaves a patient ill, and shows little of what matters: the first episode is rehearsed.
    "hiv": TransferConfig(look_episodes=16, rehearsal=True),
}
PRESETS = {"paper": PAPER, "default": DEFAULT}


@dataclass(frozen=True)
class AmortiseConfig:
    """How Q(s, w) is learned, and how it acts at a new instance."""

    learner: DDQNConfig = field(default_factory=DDQNConfig)
    """The Double DQN inside imagination."""
    episodes: int = 4000
    """Imagined episodes."""
    pools: int = 20
    """How often members are drawn anew; after each pool the policy is looked at."""
    members: int = 64
    """Members in a pool, one per imagined episode in turn."""
    member_spread: float = 0.5
    """How far a drawn w is from a training latent, in standard deviations of the training latents."""
    perception_error: float = 0.2
    """How far the w that the policy is told is from the true one, likewise, in half of the members."""
    looks_per_latent: int = 1
    """Weight draws per training latent by which policies are compared."""
    capacity: int = 1_000_000
    """Transitions that the replay holds at most."""


AMORTISE: dict[str, AmortiseConfig] = {
    # Between the two known latents there is nothing.
    "grid": AmortiseConfig(episodes=4000, member_spread=0.05, perception_error=0.05, looks_per_latent=64),
    "acrobot": AmortiseConfig(episodes=3000),
    # Twelve latents, each of which matters.
    "hiv": AmortiseConfig(episodes=6000, pools=30, member_spread=0.35, perception_error=0.1),
}
AMORTISE_LEARNERS: dict[str, dict[str, Any]] = {
    "grid": {"hidden": (128, 128), "epsilon_decay": 0.998, "epsilon_floor": 0.05},
    "acrobot": {"hidden": (128, 128), "epsilon_decay": 0.997, "epsilon_floor": 0.02},
    "hiv": {"hidden": (256, 256), "batch_size": 128, "minibatches": 2, "epsilon_decay": 0.99, "epsilon_floor": 0.02},
}


def amortise_preset(name: str, specification: Specification) -> AmortiseConfig:
    """The settings of `amortise` for a family. The paper has no such policy: its preset differs in the target alone."""
    config = AMORTISE.get(specification.family, AmortiseConfig())
    learner = replace(control_preset(name, specification), lanes=LANES["default"])
    own = AMORTISE_LEARNERS.get(specification.family, PLAIN["default"])
    return replace(config, learner=replace(learner, **own))


LEARNERS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {},
    # ε falls faster than in real life, where episodes are dear.
    "default": {
        "grid": {"hidden": (128, 128), "restart_share": 0.5},
        # Larger steps: with the paper's, 800 episodes are too few.
        "acrobot": {
            "hidden": (128, 128),
            "learning_rate": 1e-3,
            "target_rate": 0.01,
            "epsilon_decay": 0.99,
            "epsilon_floor": 0.02,
        },
        "hiv": {"hidden": (256, 256), "minibatches": 2, "epsilon_decay": 0.99, "epsilon_floor": 0.02},
    },
}
"""In what the Double DQN in imagination differs from the one in real life."""
PLAIN: dict[str, dict[str, Any]] = {
    "paper": {},
    # With fewer updates, a system whose first episodes are short is not learned at all (docs/your-environment.md).
    "default": {"minibatches": 5, "epsilon_decay": 0.99, "epsilon_floor": 0.02},
}
"""The same for a system of the user's own."""
LANES = {"paper": 1, "default": 10}
"""Imagined episodes side by side; the ratio of updates to steps stays the same."""


REFINED_START = 0.2
"""ε at which a learner begins that goes on from Q(·, w): it has a policy already."""


def preset(name: str, specification: Specification, amortised: bool = False) -> TransferConfig:
    """The settings `name` for a family; a system of the user's own takes plain values."""
    config = PRESETS[known_name("preset", name, PRESETS)].get(specification.family, TransferConfig())
    learner = replace(control_preset(name, specification), lanes=LANES[name])
    learner = replace(learner, **LEARNERS[name].get(specification.family, PLAIN[name]))
    return replace(config, learner=replace(learner, epsilon_start=REFINED_START) if amortised else learner)
