"""The values of every setting, family by family: `default`, what was measured to work, and `paper`, to the letter.

`paper` follows the paper's appendix, and the released code where the paper is silent (K, N_u, epochs); reward scales
are ours, as the paper names none. All other families have the values and rules of
`recipe`; with `paper`, the defaults of the settings.
"""

from dataclasses import dataclass, replace
from typing import Any

from hipmdp._errors import known_name
from hipmdp.families.specification import Specification
from hipmdp.settings import recipe
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import DynamicsConfig
from hipmdp.settings.instance_search import SearchConfig
from hipmdp.settings.online import GrowthConfig, OnlineConfig
from hipmdp.settings.recipe import LANES, REFINED_EPSILON, Facts, unknown_facts


@dataclass(frozen=True)
class FamilyPreset:
    """All settings of one family."""

    dqn: DDQNConfig
    """In real episodes: `collect`, `blind` and `model_free`."""
    imagination_dqn: DDQNConfig
    """In imagination, where episodes cost little: ε falls faster, and more of them run side by side."""
    dynamics: DynamicsConfig
    adaptation: AdaptationConfig
    """Its `dqn` is `imagination_dqn`."""


@dataclass(frozen=True)
class AmortisePreset:
    """How Q(s, w) of one family is learned; its DQN is that of real episodes but for these fields."""

    config: AmortiseConfig
    dqn: dict[str, Any]


# The paper's values.


def _paper_dynamics(
    hidden: tuple[int, ...], rate: float, latent_epochs: int, updates: int, alpha: float = 0.5
) -> DynamicsConfig:
    """100 epochs of 160/32 steps on W, then as many (grid: 300) on the latents; `updates` such turns when tuning."""
    return DynamicsConfig(
        hidden=hidden,
        alpha=alpha,
        weight_draws=50,
        batch_size=32,
        learning_rate=rate,
        latent_learning_rate=5e-4,
        decay=False,
        weight_steps=500,
        latent_steps=5 * latent_epochs,
        rounds=50,
        tune_rounds=updates,
        tune_learning_rate=rate,
        tune_widening=0,
        tune_batch_size=32,
        scratch_rounds=updates,
        latent_tries=1,
        infer_steps=5 * latent_epochs,
        infer_learning_rate=5e-4,
        infer_draws=50,
    )


def _paper(dqn: DDQNConfig, dynamics: DynamicsConfig, imagined_episodes: int) -> FamilyPreset:
    adaptation = AdaptationConfig(
        imagined_episodes=imagined_episodes,
        weight_draws=50,
        mean_weights=True,
        latent_temperature=0,
        validation_episodes=0,
        clear_replay_on_retune=False,
        revert_to_better_policy=False,
        update_rounds=10,
    )
    return FamilyPreset(dqn, dqn, dynamics, adaptation)


PAPER: dict[str, FamilyPreset] = {
    "grid": _paper(DDQNConfig(reward_scale=1e-2), _paper_dynamics((25, 25, 25), 5e-5, 300, 10), 1000),
    "acrobot": _paper(DDQNConfig(reward_scale=1e-1), _paper_dynamics((32, 32), 2.5e-4, 100, 5), 500),
    "hiv": _paper(DDQNConfig(reward_scale=1e-4), _paper_dynamics((32, 32), 2.5e-4, 100, 10, alpha=0.45), 500),
}
PAPER_GENERIC = FamilyPreset(DDQNConfig(), DDQNConfig(), DynamicsConfig(), AdaptationConfig())


# Our values.


GRID_DQN = DDQNConfig(reward_scale=1e-2, minibatches=5)
ACROBOT_DQN = DDQNConfig(reward_scale=1e-1, minibatches=2)
HIV_DQN = DDQNConfig(reward_scale=1e-4, squash=1e-2)

DEFAULT: dict[str, FamilyPreset] = {
    "grid": FamilyPreset(
        dqn=GRID_DQN,
        imagination_dqn=replace(GRID_DQN, lanes=LANES, hidden=(128, 128), restart_share=0.5),
        # Walls have edges.
        dynamics=DynamicsConfig(hidden=(64, 64, 64)),
        # Two instances are known: between their latents there is nothing that imagination should visit.
        adaptation=AdaptationConfig(imagined_episodes=1000, latent_temperature=1),
    ),
    "acrobot": FamilyPreset(
        dqn=ACROBOT_DQN,
        # Larger steps: with the paper's, 800 episodes are too few.
        imagination_dqn=replace(
            ACROBOT_DQN,
            lanes=LANES,
            hidden=(128, 128),
            learning_rate=1e-3,
            target_rate=0.01,
            epsilon_decay=0.99,
            epsilon_floor=0.02,
        ),
        dynamics=DynamicsConfig(rounds=25_000),
        adaptation=AdaptationConfig(imagined_episodes=800),
    ),
    "hiv": FamilyPreset(
        dqn=HIV_DQN,
        imagination_dqn=replace(
            HIV_DQN, lanes=LANES, hidden=(256, 256), minibatches=2, epsilon_decay=0.99, epsilon_floor=0.02
        ),
        # Twelve parameters vary: five latents cannot tell patients apart.
        dynamics=DynamicsConfig(alpha=0.45, latent_size=12, rounds=30_000),
        # One start: imagined episodes differ only by their context, of which there are 16. Random treatment leaves a
        # patient ill, and shows little of what matters: a policy for the family treats the first episode.
        adaptation=AdaptationConfig(validation_episodes=16, imagined_warm_up=True),
    ),
}
PRESETS = {"default": DEFAULT, "paper": PAPER}
"""By name: the values of the three families; all others have the recipe's, or the settings' own defaults."""


AMORTISE: dict[str, AmortisePreset] = {
    "grid": AmortisePreset(
        # Between the two known latents there is nothing.
        AmortiseConfig(episodes=4000, latent_spread=0.05, latent_noise=0.05, validation_draws=64),
        {"hidden": (128, 128), "epsilon_decay": 0.998, "epsilon_floor": 0.05},
    ),
    "acrobot": AmortisePreset(
        AmortiseConfig(episodes=3000), {"hidden": (128, 128), "epsilon_decay": 0.997, "epsilon_floor": 0.02}
    ),
    "hiv": AmortisePreset(
        # Twelve latents, each of which matters.
        AmortiseConfig(episodes=6000, pools=30, latent_spread=0.35, latent_noise=0.1),
        {"hidden": (256, 256), "batch_size": 128, "minibatches": 2, "epsilon_decay": 0.99, "epsilon_floor": 0.02},
    ),
}


ONLINE_EPISODES = {"acrobot": 300}
"""Imagined episodes of a policy of `online`, fewer than for one that is learned once for good. Acrobot's are long."""
ONLINE_EPISODES_GENERIC, ONLINE_POOLS, ONLINE_ROUNDS = 600, 10, 4000
ONLINE_LAST_EPSILON = 0.015
"""ε falls to this over the imagined episodes."""


TRAINING: dict[str, tuple[Any, int]] = {
    "grid": ("train", 500),
    "acrobot": ("train", 500),
    "acrobot-sd0.25": ("train32", 150),
    "hiv": ("train32", 150),
}
"""Training instances and episodes on each in a study, by the label of the family."""
TRAINING_GENERIC: tuple[Any, int] = ("train", 150)
"""The same for `module:name`: real steps in Python take their time."""


# Faster decay of ε and lanes: what finds good policies soonest when real episodes cost nothing.
SEARCH: dict[str, SearchConfig] = {
    "grid": SearchConfig(replace(GRID_DQN, lanes=4), 800, 50),
    "acrobot": SearchConfig(
        replace(ACROBOT_DQN, lanes=10, hidden=(128, 128), epsilon_decay=0.98, epsilon_floor=0.02), 600, 40
    ),
    "hiv": SearchConfig(replace(HIV_DQN, lanes=10, minibatches=2, epsilon_decay=0.99, epsilon_floor=0.02), 450, 50),
}


def _known(name: str, specification: Specification) -> FamilyPreset | None:
    """The values called `name` for one of the paper's families, with its γ in both DQNs."""
    found = PRESETS[known_name("preset", name, PRESETS)].get(specification.family)
    if found is None and name == "paper":
        found = PAPER_GENERIC
    if found is None:
        return None
    dqn, imagination = (
        replace(config, discount=specification.discount) for config in (found.dqn, found.imagination_dqn)
    )
    return replace(found, dqn=dqn, imagination_dqn=imagination, adaptation=replace(found.adaptation, dqn=imagination))


def dqn_preset(name: str, specification: Specification, episodes: int) -> DDQNConfig:
    """The DQN of so many real episodes."""
    known = _known(name, specification)
    return recipe.real_dqn(specification, episodes) if known is None else known.dqn


def dynamics_preset(name: str, specification: Specification, facts: Facts) -> DynamicsConfig:
    """The model and its fits."""
    known = _known(name, specification)
    return recipe.dynamics(facts) if known is None else known.dynamics


def adaptation_preset(
    name: str, specification: Specification, facts: Facts | None = None, *, refined: bool = False
) -> AdaptationConfig:
    """Algorithm 1; `refined` goes on from a policy, with little exploration."""
    known = _known(name, specification)
    if known is None:
        return recipe.adaptation(specification, facts or unknown_facts(specification), refined=refined)
    config = known.adaptation
    return replace(config, dqn=replace(config.dqn, epsilon_start=REFINED_EPSILON)) if refined else config


def amortise_preset(name: str, specification: Specification, facts: Facts | None = None) -> AmortiseConfig:
    """Q(s, w). The paper has no such policy: its preset differs in the target alone."""
    known, preset = _known(name, specification), AMORTISE.get(specification.family)
    if known is None or preset is None:
        config = recipe.amortise(specification, facts or unknown_facts(specification))
        if known is None:
            return config
        # `refined` goes on from this policy: both hold the same values.
        return replace(config, dqn=replace(config.dqn, reward_scale=known.dqn.reward_scale, squash=known.dqn.squash))
    return replace(preset.config, dqn=replace(known.dqn, lanes=LANES, **preset.dqn))


def growth_preset(specification: Specification, rounds: int = ONLINE_ROUNDS) -> GrowthConfig:
    """The models that `online` tries."""
    known = _known("default", specification)
    dynamics = DynamicsConfig() if known is None else known.dynamics
    return GrowthConfig(dynamics=replace(dynamics, rounds=rounds, held_out_share=0.0))


def online_preset(specification: Specification) -> OnlineConfig:
    """Instances one after the other."""
    own = amortise_preset("default", specification)
    episodes = ONLINE_EPISODES.get(specification.family, ONLINE_EPISODES_GENERIC)
    # No restarts from states met before: they would bring along the w of another member (measured: Q never settles).
    dqn = replace(own.dqn, epsilon_decay=ONLINE_LAST_EPSILON ** (1 / episodes), restart_share=0.0)
    own = replace(own, episodes=episodes, pools=ONLINE_POOLS, dqn=dqn)
    return OnlineConfig(growth_preset(specification), own)


def search_preset(specification: Specification) -> SearchConfig:
    """The search for the best return known."""
    return SEARCH.get(specification.family) or recipe.search(specification)
