"""The pieces of a study: batches, models made from them, cells that use the models. Each is one file."""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from hipmdp.control.presets import preset as control_preset
from hipmdp.data.parquet import load_transitions, save_transitions
from hipmdp.dynamics.presets import preset as dynamics_preset
from hipmdp.families.checks import known_name
from hipmdp.families.family import AbstractFamily
from hipmdp.families.host import HostFamily
from hipmdp.families.instance_sets import frozen_instances, resolve_instances, training_pool
from hipmdp.study.record import write_record
from hipmdp.study.setup import PLAIN, Setup, Variant
from hipmdp.transfer.amortise import amortise
from hipmdp.transfer.blind import LOOKS, train_blind
from hipmdp.transfer.collect import collect
from hipmdp.transfer.config import PRESETS
from hipmdp.transfer.config import preset as transfer_preset
from hipmdp.transfer.episodes import evaluate
from hipmdp.transfer.learn import check_imagination, learn_policy
from hipmdp.transfer.methods import AMORTISED, BLIND, EMBEDDED, METHODS
from hipmdp.transfer.pretrain import pretrain
from hipmdp.transfer.rewards import REWARDS
from hipmdp.transfer.storage import load

BLIND_EPISODES = 2000


@dataclass(frozen=True)
class Piece(ABC):
    """One file of a study, and what it is made from."""

    setup: Setup
    seed: int

    @property
    @abstractmethod
    def path(self) -> Path:
        """Where it lies in the study's directory."""

    @property
    @abstractmethod
    def needs(self) -> "tuple[Piece, ...]":
        """The pieces it is made from."""

    @abstractmethod
    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Make it from the files of `needs`, into the file `out`. `work` is a directory to go on from."""


@dataclass(frozen=True)
class BatchPiece(Piece):
    """𝒟: what model-free learners experienced on the training instances."""

    @property
    def path(self) -> Path:
        """One file per training set, way to collect it and seed."""
        return Path("batches") / f"{_name(self.setup)}-seed{self.seed}.parquet"

    @property
    def needs(self) -> tuple[Piece, ...]:
        """Nothing."""
        return ()

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Collect it."""
        setup, family = self.setup, self.setup.make()
        config = control_preset(setup.preset, family.specification)
        config = dataclasses.replace(config, **dict(setup.variant.collection))
        args = setup.training, setup.training_episodes, self.seed, setup.preset
        save_transitions(collect(family, *args, work, cores, quiet=True, config=config), out)


@dataclass(frozen=True)
class ModelPiece(Piece):
    """What a method knows before it meets anybody."""

    method: str

    @property
    def path(self) -> Path:
        """One file per training set, method, seed and variant of the dynamics."""
        return Path("models") / f"{_name(self.setup, self.method)}-seed{self.seed}.hipmdp"

    @property
    def needs(self) -> tuple[Piece, ...]:
        """The batch; a blind policy is trained on the family itself, Q(s, w) inside the embedded model."""
        if METHODS[self.method] is BLIND:
            return ()
        # All variants share a batch, unless they are about it.
        variant = self.setup.variant if self.setup.variant.collection else Variant()
        batch = BatchPiece(training_only(self.setup, variant), self.seed)
        if METHODS[self.method].amortised:
            return batch, ModelPiece(self.setup, self.seed, EMBEDDED.name)
        return (batch,)

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Train it."""
        setup = self.setup
        if METHODS[self.method] is BLIND:
            family = setup.make()
            episodes = _blind_episodes(family, setup)
            model = train_blind(family, setup.training, episodes, self.seed, setup.preset, quiet=True)
        elif METHODS[self.method].amortised:
            batch, embedded = load_transitions(inputs[0]), load(inputs[1])
            model = amortise(embedded, batch, self.seed, setup.preset, family=setup.make(), quiet=True)
        else:
            batch = load_transitions(inputs[0])
            config = dynamics_preset(setup.preset, batch.specification)
            config = dataclasses.replace(config, **dict(setup.variant.dynamics))
            model = pretrain(batch, self.method, self.seed, setup.preset, config, quiet=True)
        model.save(out)


@dataclass(frozen=True)
class CellPiece(Piece):
    """One method meets one instance."""

    method: str
    instance: str

    @property
    def path(self) -> Path:
        """cells/hiv/embedded/plain/test3-seed0.parquet."""
        folder = Path("cells") / self.setup.family_label / self.method / self.setup.variant.name
        return folder / f"{self.instance.replace(':', '')}-seed{self.seed}.parquet"

    @property
    def needs(self) -> tuple[Piece, ...]:
        """The model; variants that only differ in imagination share it."""
        own = self.setup.variant.dynamics or self.setup.variant.collection
        variant = self.setup.variant if own else Variant()
        # Refined ones begin with what is amortised.
        method = AMORTISED.name if METHODS[self.method].amortised else self.method
        return (ModelPiece(training_only(self.setup, variant), self.seed, method),)

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Meet the instance."""
        setup, family = self.setup, self.setup.make()
        model = load(inputs[0])
        config = None
        variant = setup.variant
        if (variant.transfer or variant.learner) and METHODS[self.method].role is not None:
            config = transfer_preset(setup.preset, family.specification, METHODS[self.method].amortised)
            learner = dataclasses.replace(config.learner, **dict(variant.learner))
            config = dataclasses.replace(config, learner=learner, **dict(variant.transfer))
        run = learn_policy(
            model, family, self.instance, setup.episodes, self.seed, None, setup.reward, setup.preset, work,
            config=config, method=self.method, quiet=True,
        )  # fmt: skip
        settings = {"setup": setup.description()}
        if run.config is not None:
            settings["transfer"] = dataclasses.asdict(run.config)
        if model.dynamics is not None:
            settings["dynamics"] = dataclasses.asdict(model.dynamics.config)
        greedy = evaluate(family, run.network, run.theta, self.seed)
        write_record(out, self.facts, run, greedy, settings)

    @property
    def facts(self) -> dict[str, Any]:
        """What stands in every row of its results."""
        return {
            "family": self.setup.family_label,
            "method": self.method,
            "variant": self.setup.variant.name,
            "instance": self.instance,
            "seed": self.seed,
        }


def _name(setup: Setup, *more: str) -> str:
    """What a file is made from: the family, its training data, and the variant if it has one."""
    names = [setup.family_label, setup.training, setup.training_episodes, *more]
    if setup.variant.name != PLAIN:
        names.append(setup.variant.name)
    return "-".join(map(str, names))


def _blind_episodes(family: AbstractFamily, setup: Setup) -> int:
    """Where Python takes the steps: as many as there are in the batch, so that both have cost the same."""
    if not isinstance(family, HostFamily):
        return BLIND_EPISODES
    return max(LOOKS, setup.training_episodes * len(resolve_instances(family, setup.training, jax.random.key(0))))


def plan(setups: list[Setup], methods: list[str], instances: dict[str, list[str]], seeds: list[int]) -> list[CellPiece]:
    """All cells, seed by seed: what is there early says something about every method."""
    for method in methods:
        known_name("method of compare", method, METHODS)
    for setup in setups:
        known_name("reward", setup.reward, REWARDS)
        known_name("preset", setup.preset, PRESETS)
        if any(METHODS[method].role is not None for method in methods):
            check_imagination(setup.make(), setup.reward)
    return [
        CellPiece(_trained(setup), seed, method, instance)
        for setup in setups
        for seed in seeds
        for method in methods
        for instance in instances[setup.family_label]
    ]


def training_only(setup: Setup, variant: Variant) -> Setup:
    """The setup without what has no part in training: cells that differ only there share their pieces."""
    return dataclasses.replace(setup, variant=variant, episodes=0, reward="")


def _trained(setup: Setup) -> Setup:
    """A variant that says how many training instances there are says it in the setup too."""
    count = setup.variant.training
    if count is None:
        return setup
    everybody = training_pool(setup.make())
    whole = count == len(frozen_instances(setup.make(), everybody))
    return dataclasses.replace(setup, training=everybody if whole else count)
