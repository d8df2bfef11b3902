"""The settings that a preset stands for: `default`, the recipe for every family, or `paper`, the paper's own."""

from hipmdp._errors import known_name
from hipmdp.families.specification import Specification
from hipmdp.settings import recipe
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import DynamicsConfig
from hipmdp.settings.paper import paper_preset

PRESETS = ("default", "paper")


def _is_paper(name: str) -> bool:
    return known_name("preset", name, PRESETS) == "paper"


def dqn_preset(name: str, specification: Specification, episodes: int) -> DDQNConfig:
    """The DQN of so many real episodes."""
    return paper_preset(specification).dqn if _is_paper(name) else recipe.real_dqn(specification, episodes)


def dynamics_preset(name: str, specification: Specification, instances: int) -> DynamicsConfig:
    """The model of so many training instances, and its fits."""
    return paper_preset(specification).dynamics if _is_paper(name) else recipe.dynamics(instances)


def adaptation_preset(name: str, specification: Specification, *, refined: bool = False) -> AdaptationConfig:
    """Algorithm 1; `refined` goes on from a policy, with little exploration."""
    if not _is_paper(name):
        return recipe.adaptation(specification, refined=refined)
    config = paper_preset(specification).adaptation
    return recipe.with_little_exploration(config) if refined else config
