"""One recipe for every family: one set of values, and rules for what has to differ.

A rule reads the specification, the batch or the run, never the family's name.

- What rewards are divided by: the size of a typical one among the first (`hipmdp.control.reward_unit`).
- Values over many decades: h(Q) = sign(Q) log(1 + c |Q|) / c is learned, with c = 0.01: nearly
  linear well below a hundred rewards, logarithmic well above.
- How fast ε falls: to its floor within the same share of the episodes, however many there are.
- How long a random action is held: one step; where fewer than half of the episodes are eventful (their
  reward varies or they terminate), for n steps with P(n) ∝ 1/n, a quarter of an episode at most.
- The latent's size: n instances differ in at most n − 1 directions; at most twelve. The prior of new instances is the
  spread of the known latents: a direction that is not used stays at zero.
- How long a policy is learned in imagination: in rounds of `IMAGINED_STEPS` steps, as long as the last quarter of a
  round still raised the imagined return by more than a hundredth; `MOST_ROUNDS` at most. Steps are counted, not
  episodes: they take the time.
- How unsure w_b is in imagination: as unsure as the belief is after the real episodes.
- The first episode: Q(s, w), learned once in imagination over members between the known ones, under the belief.
- How far Q(s, w) looks ahead: as many steps as leave at most `MOST_BRANCHES` branches, two at most.
- Whether W is tuned: only where T̂ is inaccurate on the new instance with the w_b that fits it best.
- Training episodes of a study: about `TRAINING_EPISODES` in all, 150 to 500 on each instance.
"""

from dataclasses import replace

from hipmdp.families.specification import Specification
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import DynamicsConfig
from hipmdp.settings.instance_search import SearchConfig
from hipmdp.settings.online import GrowthConfig, OnlineConfig
from hipmdp.settings.pqn import PQNConfig

SQUASH = 0.01
"""c: values well below a hundred typical rewards stay nearly as they are, larger ones become their logarithm."""
POLICY_UNITS = (256, 256)
"""Layers of Q(s, w), and of the networks in imagination that go on from it."""
LANES = 10
"""Episodes side by side in searches; the ratio of updates to steps stays the same."""
IMAGINED_STEPS, MOST_ROUNDS = 300_000, 3
"""Imagined steps of a round of learning after a tuning, and the most rounds."""
INSTANCE_LANES, INSTANCE_RATE = 2, 2e-3
"""Lanes per weight draw, and learning rate, where the policy is for one instance: many small updates."""
FAMILY_RATE = 1e-3
"""Learning rate of Q(s, w)."""
EXPLORING_SHARE = 0.6
"""Share of the episodes after which ε is at its floor."""
MOST_LATENTS = 12
MOST_BRANCHES, MOST_STEPS_AHEAD = 64, 2
"""Sequences of actions that Q(s, w) is asked about at every step, and how long they are, at most."""
INFORMATION_WEIGHT = 1.0
"""A nat about w_b counts as much as one spread of the values over the actions wherever Q(s, w) acts under a belief: an
action that tells nothing new, and of which Q promises too much, is given up for another."""
RHO_RATE = 10.0
"""How many times faster posterior variances move than means: at the same rate they hardly leave where they begin, and T̂
fits the noise of a log and is as sure of members that it has not seen as of those that it has."""
AMORTISED_STEPS, ONLINE_STEPS = 8_000_000, 1_500_000
"""Imagined steps behind Q(s, w), and fewer where it is learned again and again."""
TRAINING_EPISODES = 4800
"""Training episodes of a study, over all instances."""
REFINED_EPSILON = 0.2
"""ε at which a learner begins that goes on from Q(·, w): it has a policy already."""


def longest_run(specification: Specification) -> int:
    """For how many steps a random action is held at most: a quarter of an episode."""
    return max(1, specification.horizon // 4)


def decay(floor: float, episodes: int, start: float = 1.0) -> float:
    """The factor per episode by which ε falls from `start` to `floor` within the exploring share of the episodes."""
    return float((floor / start) ** (1 / max(1.0, EXPLORING_SHARE * episodes)))


def real_dqn(specification: Specification, episodes: int) -> DDQNConfig:
    """The DQN of real episodes: `collect`, `blind`, `model_free` and the searches."""
    floor = 0.05
    return DDQNConfig(
        hidden=(128, 128),
        minibatches=4,
        epsilon_floor=floor,
        epsilon_decay=decay(floor, episodes),
        longest_run=longest_run(specification),
        discount=specification.discount,
        reward_scale=None,
        squash=SQUASH,
    )


def pqn(specification: Specification) -> PQNConfig:
    """The learner inside imagination, where steps cost little."""
    return PQNConfig(
        hidden=POLICY_UNITS, discount=specification.discount, squash=SQUASH, longest_run=longest_run(specification)
    )


def adaptation(specification: Specification, *, refined: bool = False) -> AdaptationConfig:
    """Algorithm 1; `refined` goes on from a policy, with little exploration."""
    config = AdaptationConfig(
        pqn=replace(pqn(specification), members=INSTANCE_LANES, learning_rate=INSTANCE_RATE),
        imagined_steps=IMAGINED_STEPS,
        imagined_rounds=MOST_ROUNDS,
        latent_temperature=None,
        first_policy=True,
        steps_ahead=steps_ahead(specification.action_count),
        keep_accurate_weights=True,
        information_weight=INFORMATION_WEIGHT,
    )
    return with_little_exploration(config) if refined else config


def with_little_exploration(config: AdaptationConfig) -> AdaptationConfig:
    """For a learner that goes on from a policy."""
    if config.pqn is not None:
        return replace(config, pqn=replace(config.pqn, epsilon_start=config.pqn.epsilon_again))
    dqn, start = config.dqn, REFINED_EPSILON
    fall = decay(min(dqn.epsilon_floor, start), config.imagined_episodes, start) if dqn.epsilon_floor else None
    return replace(
        config, dqn=replace(dqn, epsilon_start=start, epsilon_decay=dqn.epsilon_decay if fall is None else fall)
    )


def steps_ahead(actions: int) -> int:
    """How many steps Q(s, w) is asked about ahead of the present one."""
    return max(n for n in range(MOST_STEPS_AHEAD + 1) if actions**n <= MOST_BRANCHES)


def latent_size(instances: int) -> int:
    """n instances differ in at most n − 1 directions."""
    return min(MOST_LATENTS, max(2, instances - 1))


def dynamics(instances: int) -> DynamicsConfig:
    """T̂ and its fits."""
    return DynamicsConfig(
        hidden=(64, 64), correction=(64, 64), bilinear=True, latent_size=latent_size(instances), rounds=25_000,
        rho_rate_factor=RHO_RATE,
    )  # fmt: skip


def amortise(specification: Specification, steps: int = AMORTISED_STEPS) -> AmortiseConfig:
    """Q(s, w)."""
    return AmortiseConfig(pqn=replace(pqn(specification), learning_rate=FAMILY_RATE), steps=steps)


def growth(rounds: int = 4000) -> GrowthConfig:
    """The models that `online` tries: how many instances there will be is not known."""
    own = dynamics(instances=MOST_LATENTS + 1)
    return GrowthConfig(dynamics=replace(own, correction=(), bilinear=False, rounds=rounds, held_out_share=0.0))


def online(specification: Specification) -> OnlineConfig:
    """Instances one after the other."""
    own = amortise(specification, ONLINE_STEPS)
    return OnlineConfig(growth(), replace(own, pools=10))


def training_episodes(instances: int, *, simulated: bool) -> int:
    """Episodes on each training instance of a study; few where Python steps the environment, which takes its time."""
    most = 500 if simulated else 150
    return min(most, max(150, TRAINING_EPISODES // max(1, instances)))


def search(specification: Specification) -> SearchConfig:
    """The best returns known."""
    episodes = 600
    return SearchConfig(replace(real_dqn(specification, episodes), lanes=LANES), episodes, ticks=50)


def explained(specification: Specification, instances: int, size: int | None, unit: float | None) -> dict[str, str]:
    """What the rules chose for a model with latents of that size, if it has any, and what they read."""
    ahead, run = steps_ahead(specification.action_count), longest_run(specification)
    choices = {}
    if size is not None and size == latent_size(instances):
        choices["latent size"] = f"{size}: one less than the {instances} instances, from 2 to {MOST_LATENTS}"
    choices |= {
        "steps ahead": f"{ahead}, as there are {specification.action_count} actions",
        "random actions": f"single; held for up to {run} of {specification.horizon} steps where nothing happens",
        "imagination": f"up to {MOST_ROUNDS} rounds of {IMAGINED_STEPS} steps, as long as the imagined return rises",
        "discount": f"{specification.discount:g}, of the specification",
    }
    if unit is not None:
        choices["unit of rewards"] = f"{unit:.3g}, the size of a typical one in imagination"
    return choices
