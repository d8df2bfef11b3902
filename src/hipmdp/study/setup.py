"""What a study compares: a family with its training data, and one way to change the settings (a variant)."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from hipmdp._errors import check_episodes, known_name, number, whole
from hipmdp._random import root_key
from hipmdp.families import FAMILIES, make
from hipmdp.families.instances import frozen_instance, resolve_instances
from hipmdp.families.protocol import BaseFamily
from hipmdp.settings import recipe
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import DynamicsConfig

LONGEST_NUMBER = 1000
"""Digits that are read of a number: Python refuses some more."""
PLAIN = "plain"
"""The name of the variant that changes nothing."""


@dataclass(frozen=True)
class Variant:
    """Settings that differ from the preset's."""

    name: str = PLAIN
    dynamics: tuple[tuple[str, Any], ...] = ()
    """Fields of `DynamicsConfig`."""
    adaptation: tuple[tuple[str, Any], ...] = ()
    """Fields of `AdaptationConfig`."""
    training: int | None = None
    """Training instances: only the first so many."""
    collection: tuple[tuple[str, Any], ...] = ()
    """Fields of `DDQNConfig`, for the learners that collect the batch."""
    dqn: tuple[tuple[str, Any], ...] = ()
    """Fields of `DDQNConfig`, for the Double DQN in imagination; with ("pqn", None) in `adaptation`."""
    amortise: tuple[tuple[str, Any], ...] = ()
    """Fields of `AmortiseConfig`."""

    @property
    def changes_training(self) -> bool:
        """Whether the model differs, so that it is made for this variant alone."""
        return bool(self.dynamics or self.collection or self.amortise)

    def __post_init__(self) -> None:
        own: list[tuple[Any, type]] = [(self.dynamics, DynamicsConfig), (self.adaptation, AdaptationConfig)]
        own += [(self.collection, DDQNConfig), (self.dqn, DDQNConfig), (self.amortise, AmortiseConfig)]
        for changes, config in own:
            for name, _ in changes:
                known_name(f"setting of {config.__name__}", name, [f.name for f in fields(config)])


@dataclass(frozen=True)
class Setup:
    """A family, its training data, and how a policy for a new instance is learned."""

    family: str
    """A name, or module:name of a user's own family, which every process of the study imports."""
    options: tuple[tuple[str, Any], ...] = ()
    training: Any = None
    """Training instances: a number or the name of a set."""
    training_episodes: int = 0
    """Episodes on each of them."""
    episodes: int = 10
    """Real episodes on a new instance."""
    preset: str = "default"
    reward: str = "given"
    variant: Variant = field(default_factory=Variant)

    @property
    def family_label(self) -> str:
        """`grid`, `acrobot-sd0.25`, `cartpole.family`: fit for names of files."""
        return "-".join([self.family.replace(":", "."), *(f"{name}{value:g}" for name, value in self.options)])

    def make(self) -> BaseFamily:
        """The family itself."""
        return make(self.family, **dict(self.options))

    def description(self) -> dict[str, Any]:
        """All of it, JSON-ready, as it is stored with the cells."""
        return asdict(self)


def parse_setup(
    text: str, training: Any = None, training_episodes: int | None = None, episodes: int = 10, **rest: Any
) -> Setup:
    """`acrobot:sd=0.25` is the wide acrobot, `module:name` and `module:name:sd=0.2` are a user's own.

    What is not given takes the family's own value.
    """
    name, _, options = text.partition(":")
    if options and name not in FAMILIES:
        own, _, options = options.partition(":")
        name = f"{name}:{own}"
    pairs = [part.partition("=") for part in options.split(",")] if options else []
    values = tuple((key.strip(), number(f"Option of {name}", key.strip(), value)) for key, _, value in pairs)
    setup = Setup(name, values, episodes=episodes, **rest)
    family = setup.make()
    # Real steps in Python take their time.
    usual = family.training_pool if family.simulated else "train"
    instances = usual if training is None else training
    if isinstance(instances, str) and instances.removeprefix("-").isdecimal():
        instances = int(instances[:LONGEST_NUMBER])
    members = len(resolve_instances(family, instances, root_key(0)))
    count = (
        recipe.training_episodes(members, simulated=family.simulated)
        if training_episodes is None
        else training_episodes
    )
    for kind, value in (("episodes", episodes), ("training episodes", count)):
        check_episodes(value, family.horizon, kind)
    return Setup(name, values, instances, count, episodes, **rest)


def parse_instances(family: BaseFamily, text: str) -> list[str]:
    """`test`, `10` (the first ten of test), or `test:3,test:4`: frozen instances, as labels."""
    if text.removeprefix("-").isdecimal():
        count = whole("--instances", int(text[:LONGEST_NUMBER]))
        return [member.label for member in family.instances("test")[:count]]
    if ":" not in text:
        return [member.label for member in family.instances(text)]
    return [frozen_instance(family, label.strip()).label for label in text.split(",")]


def check_count(text: str, labels: dict[str, list[str]]) -> None:
    """Raise `ValueError` where a number of instances is more than any of the families has."""
    if not text.isdecimal() or not labels:
        return
    most = max(labels, key=lambda family: len(labels[family]))
    if int(text) > len(labels[most]):
        raise ValueError(f"--instances must be at most {len(labels[most])}, all test instances of {most}, got {text}.")
