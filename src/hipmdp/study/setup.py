"""What a study compares: a family with its training data, and one way to change the settings (a variant)."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import jax

from hipmdp.control.config import DDQNConfig
from hipmdp.dynamics.config import DynamicsConfig
from hipmdp.families import FAMILIES, make
from hipmdp.families.checks import known_name, number
from hipmdp.families.family import AbstractFamily
from hipmdp.families.instance_sets import frozen_instance, frozen_instances, resolve_instances
from hipmdp.transfer.config import TransferConfig

TRAINING: dict[str, tuple[Any, int]] = {
    "grid": ("train", 500),
    "acrobot": ("train", 500),
    "acrobot-sd0.25": ("train32", 150),
    "hiv": ("train32", 150),
}
"""Training instances and episodes on each, by the label of the family."""
OWN_TRAINING: tuple[Any, int] = ("train", 150)
"""The same for a family of users' own: real steps in Python take their time."""
PLAIN = "plain"
"""The name of the variant that changes nothing."""


@dataclass(frozen=True)
class Variant:
    """Settings that differ from the preset's."""

    name: str = PLAIN
    dynamics: tuple[tuple[str, Any], ...] = ()
    """Fields of `DynamicsConfig`."""
    transfer: tuple[tuple[str, Any], ...] = ()
    """Fields of `TransferConfig`."""
    training: int | None = None
    """Training instances: only the first so many."""
    collection: tuple[tuple[str, Any], ...] = ()
    """Fields of `DDQNConfig`, for the learners whose experience is the batch."""
    learner: tuple[tuple[str, Any], ...] = ()
    """Fields of `DDQNConfig`, for the learner in imagination."""

    def __post_init__(self) -> None:
        own: list[tuple[Any, type]] = [(self.dynamics, DynamicsConfig), (self.transfer, TransferConfig)]
        for changes, config in [*own, (self.collection, DDQNConfig), (self.learner, DDQNConfig)]:
            for name, _ in changes:
                known_name(f"setting of {config.__name__}", name, [f.name for f in fields(config)])


@dataclass(frozen=True)
class Setup:
    """A family, its training data, and how a new instance is met."""

    family: str
    """A name, or module:name of a family of one's own: every process that works on the study makes it anew."""
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

    def make(self) -> AbstractFamily:
        """The family itself."""
        return make(self.family, **dict(self.options))

    def description(self) -> dict[str, Any]:
        """All of it, as it stands beside the cells.

        Settings that came later are named only where they are used: studies begun before them can go on.
        """
        about = asdict(self)
        for name in ("collection", "learner"):
            if not about["variant"][name]:
                del about["variant"][name]
        return about


def parse_setup(
    text: str, training: Any = None, training_episodes: int | None = None, episodes: int = 10, **rest: Any
) -> Setup:
    """`acrobot:sd=0.25` is the wide acrobot, `module:name` and `module:name:sd=0.2` are users' own.

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
    usual = TRAINING.get(setup.family_label, OWN_TRAINING if ":" in name else ("train32", 150))
    instances = usual[0] if training is None else training
    count = usual[1] if training_episodes is None else training_episodes
    if isinstance(instances, str) and instances.isdigit():
        instances = int(instances)
    resolve_instances(family, instances, jax.random.key(0))
    for kind, value in (("episodes", episodes), ("training episodes", count)):
        if value < 1:
            raise ValueError(f"{kind} must be at least 1, got {value}.")
    return Setup(name, values, instances, count, episodes, **rest)


def parse_instances(family: AbstractFamily, text: str) -> list[str]:
    """`test`, `10` (the first ten of test), or `test:3,test:4`: frozen instances, as labels."""
    if text.isdigit():
        members = frozen_instances(family, "test")
        if int(text) < 1:
            raise ValueError(f"--instances must be at least 1, got {text}.")
        return [member.label for member in members[: int(text)]]
    if ":" not in text:
        return [member.label for member in frozen_instances(family, text)]
    return [frozen_instance(family, label.strip()).label for label in text.split(",")]
