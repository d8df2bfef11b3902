"""Settings of Algorithm 1, with where each value comes from."""

from dataclasses import dataclass, field

from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.limits import Limits, check_caution
from hipmdp.settings.pqn import PQNConfig

FIRST_EPISODES = 10
"""Episodes of the paper's comparison, in which T̂ is tuned whenever it is inaccurate."""


@dataclass(frozen=True)
class AdaptationConfig:
    """What happens after each real episode."""

    dqn: DDQNConfig = field(default_factory=DDQNConfig)
    """The Double DQN inside imagination (paper)."""
    imagined_episodes: int = 500
    """N_f: imagined episodes of the DQN after each tuning of T̂ (paper; released code: 1,000 on grid)."""
    pqn: PQNConfig | None = None
    """The learner inside imagination that takes the place of the DQN: it learns in rounds, as long as the imagined
    return rises."""
    imagined_steps: int = 500_000
    """Imagined steps of a round of the PQN, all lanes together."""
    imagined_rounds: int = 3
    """Rounds after each tuning, at most."""
    seconds: float | None = None
    """Time after which no further round begins; None: the rounds alone decide, to the same bits on every machine."""
    weight_draws: int = 16
    """Weight draws of a pool, one per imagined episode in turn (released code: the mean over 50)."""
    mean_weights: bool = False
    """Whether imagination follows the mean over the draws (released code) instead of one draw per episode."""
    latent_temperature: float | None = 100.0
    """Each context also has a w_b of its own, from the Laplace posterior around the fitted one at this temperature;
    0: all have the fitted one (paper); None: as far from it as the belief about w_b is wide."""
    validation_episodes: int = 50
    """Imagined greedy episodes by which the best policy on the way is chosen; 0: the last one is used (paper)."""
    inaccurate_factor: float = 2.0
    """T̂ is inaccurate when its error on the episode just seen is more than this times its held-out error in
    pre-training (the paper gives no test)."""
    keep_accurate_weights: bool = False
    """Whether W stays as it is where T̂ is accurate on 𝒟_b with the w_b that fits it best: rows that say little about
    the instance (a robot that is stuck) say nothing about W either. Otherwise every tuning fits both (paper)."""
    retunings: int = 2
    """How often T̂ is tuned again in the first ten episodes, at most (released code: once). After them it is tuned
    whenever there are twice as many, accurate or not, so that a long run goes on learning at little cost (released
    code: every ten); 0: never."""
    first_policy: bool = False
    """Whether the model's Q(s, w) controls the first episode, under the belief about w_b; without one, or otherwise,
    the first episode is random (paper)."""
    steps_ahead: int = 0
    """Steps of T̂ by which Q(s, w) is asked about the future, not only about the present: where w is unlike those
    that it was learned with, T̂ is still right about the next step."""
    clear_replay_on_retune: bool = True
    """Whether the replay is emptied when T̂ was tuned: what another T̂ has shown is worth nothing in this one. The DQN
    keeps its network; as such a DQN sometimes learns nothing any more, a new one takes its place if it finds no policy
    with a higher imagined return in the tuned T̂ than the previous one, which is kept if the new one finds none either
    (`refined` always keeps its network; paper: the DQN keeps its network, and 𝒟ᶠ_b everything)."""
    revert_to_better_policy: bool = True
    """Whether, after the tenth episode, a policy whose real returns are clearly worse than an earlier one's is given up
    for that one, and only a new tuning leads to another (paper: imagination goes on after every episode, and the last
    policy always acts)."""
    restart_known: bool = False
    """Whether imagined episodes that do not begin at the start (`dqn.restart_share`) begin in states of the batch
    instead of states that imagination has visited: a rare reward in the batch need not be found again."""
    update_rounds: int = 2000
    """Rounds of the update of W and the latents from 𝒟 after the instance, when 𝒟 was given."""
    information_weight: float = 0.1
    """Weight of the information that an action is expected to give about w_b (nats) against its value, in units of the
    spread of values over the actions, wherever Q(s, w) acts under a belief: in the first episode of methods with a
    model, in every episode of `amortised`."""
    caution: float = 0.0
    """Where Q(s, w) acts under a belief, values are means over the worst share 1 − caution of the w that it allows: 0
    is the mean, 0.9 the mean of the worst tenth."""
    limits: Limits | None = None
    """Limits on states: actions that break one with more than their risk are not taken where Q(s, w) acts under a
    belief, unless all do."""

    def __post_init__(self) -> None:
        check_caution(self.caution)

    @property
    def iterations(self) -> int:
        """Update phases of a round of the PQN."""
        return max(1, round(self.imagined_steps / self.pqn.steps)) if self.pqn is not None else 0
