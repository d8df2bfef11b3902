"""The tasks of a study: batches, models made from them, cells that use the models. Each is one file."""

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipmdp._errors import known_name
from hipmdp._files import output_directory
from hipmdp._random import root_key, stream
from hipmdp.adaptation.learn_policy import learn_policy
from hipmdp.adaptation.method import RunnableMethod, Setting
from hipmdp.adaptation.methods import METHODS, find_method
from hipmdp.data.checkpoint import read_checkpoint
from hipmdp.data.digest import load_table
from hipmdp.data.logs.parquet import load_transitions, save_transitions
from hipmdp.data.work import Work
from hipmdp.families.instances import frozen_instance
from hipmdp.imagination.reward import REWARDS, check_reward
from hipmdp.pretraining.collect import collect
from hipmdp.pretraining.model import Model, load
from hipmdp.settings import recipe
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.presets import PRESETS, dqn_preset, dynamics_preset
from hipmdp.study.cells.files import read_records, write_records
from hipmdp.study.cells.record import new_record
from hipmdp.study.setup import PLAIN, Setup, Variant
from hipmdp.study.store import Task


@dataclass(frozen=True)
class StudyTask(Task):
    """A task of one setup and one seed."""

    setup: Setup
    seed: int


@dataclass(frozen=True)
class BatchTask(StudyTask):
    """𝒟: the transitions of model-free learners on the training instances."""

    @property
    def path(self) -> Path:
        """One file per training set, way to collect it and seed."""
        return Path("batches") / f"{_name(self.setup)}-seed{self.seed}.parquet"

    @property
    def needs(self) -> tuple[Task, ...]:
        """Nothing."""
        return ()

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Collect it."""
        setup, family = self.setup, self.setup.make()
        config = dqn_preset(setup.preset, family.specification, setup.training_episodes)
        config = dataclasses.replace(config, **dict(setup.variant.collection))
        args = setup.training, setup.training_episodes, self.seed, setup.preset
        save_transitions(collect(family, *args, work, cores, quiet=True, config=config), out)

    def check(self, path: Path) -> None:
        """By its digest."""
        load_table(path)


@dataclass(frozen=True)
class ModelTask(StudyTask):
    """What a built-in method learns from the batch."""

    method: str

    @property
    def path(self) -> Path:
        """One file per training set, method, seed and variant of the dynamics."""
        return Path("models") / f"{_name(self.setup, self.method)}-seed{self.seed}.hipmdp"

    @property
    def needs(self) -> tuple[Task, ...]:
        """The batch."""
        return (batch_task(self.setup, self.seed),)

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Prepare it."""
        setup, family = self.setup, self.setup.make()
        batch = load_transitions(inputs[0])
        config = dynamics_preset(setup.preset, batch.specification, len(batch.instances))
        config = dataclasses.replace(config, **dict(setup.variant.dynamics))
        policy = None
        if setup.variant.amortise:
            policy = dataclasses.replace(recipe.amortise(batch.specification), **dict(setup.variant.amortise))
        setting = Setting(preset=setup.preset, dynamics=config, amortise=policy, work=Work(output_directory(work)))
        METHODS[self.method](setting).prepare(root_key(self.seed), batch, family).save(out)

    def check(self, path: Path) -> None:
        """By its checksum."""
        read_checkpoint(path, "model")


@dataclass(frozen=True)
class CellTask(StudyTask):
    """One method learns to control one instance."""

    method: str
    """The method's name."""
    source: str
    """The same, or module:Class of a method of the user's own, which every process of the study imports."""
    instance: str

    @property
    def path(self) -> Path:
        """cells/hiv/embedded/plain/test3-seed0.parquet."""
        folder = Path("cells") / self.setup.family_label / self.method / self.setup.variant.name
        return folder / f"{self.instance.replace(':', '')}-seed{self.seed}.parquet"

    @property
    def needs(self) -> tuple[Task, ...]:
        """The model; variants that only differ in imagination share it. A method of the user's own needs the batch."""
        own = self.setup.variant.changes_training
        setup = training_only(self.setup, self.setup.variant if own else Variant())
        model = find_method(self.source, Setting(), "compare").uses_model_of
        return (batch_task(setup, self.seed) if model is None else ModelTask(setup, self.seed, model),)

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Run the method on the instance."""
        setup, family = self.setup, self.setup.make()
        own = find_method(self.source, Setting(), "compare").uses_model_of is None
        model = _prepared(self.source, setup, self.seed, inputs[0]) if own else load(inputs[0])
        method = find_method(self.source, Setting(preset=setup.preset, family=family), "compare")
        run = learn_policy(
            model,
            family,
            self.instance,
            episodes=setup.episodes,
            seed=self.seed,
            reward=setup.reward,
            preset=setup.preset,
            out=work,
            config=self._config(method),
            method=self.source,
            quiet=True,
        )
        settings = {"setup": setup.description()}
        if run.config is not None:
            settings["adaptation"] = dataclasses.asdict(run.config)
        if isinstance(model, Model) and model.dynamics is not None:
            settings["dynamics"] = dataclasses.asdict(model.dynamics.config)
        instance = frozen_instance(family, self.instance)
        write_records(out, [new_record(self.key, run, family=family.facts(), instance=instance, settings=settings)])

    def check(self, path: Path) -> None:
        """By its digest and its key."""
        if [record.name for record in read_records(path, "")] != [self.name]:
            raise ValueError(f"{str(path)!r} is damaged: it is another cell.")

    def _config(self, method: RunnableMethod) -> AdaptationConfig | None:
        """The method's settings with the variant's changes; None: there are none."""
        variant = self.setup.variant
        if not (variant.adaptation or variant.dqn):
            return None
        return method.varied_config(dict(variant.adaptation), dict(variant.dqn))

    @property
    def key(self) -> dict[str, Any]:
        """What distinguishes it from other cells."""
        return {
            "family": self.setup.family_label,
            "method": self.method,
            "variant": self.setup.variant.name,
            "instance": self.instance,
            "seed": self.seed,
        }

    @property
    def name(self) -> tuple[Any, ...]:
        """The values of its key, as `CellRecord.name`."""
        return tuple(self.key.values())


def _name(setup: Setup, *more: str) -> str:
    """What a file is made from: the family, its training data, and the variant if it has one."""
    names = [setup.family_label, setup.training, setup.training_episodes, *more]
    if setup.variant.name != PLAIN:
        names.append(setup.variant.name)
    return "-".join(map(str, names))


@functools.lru_cache(maxsize=2)
def _prepared(source: str, setup: Setup, seed: int, batch: Path) -> Any:
    """What a method of the user's own learned from the batch: once per seed and process, as it cannot be written."""
    key = stream(root_key(seed), "study/prepare")
    return find_method(source, Setting(), "compare").prepare(key, load_transitions(batch), setup.make())


def batch_task(setup: Setup, seed: int) -> BatchTask:
    """The batch of a setup: all variants share one, unless they are about it."""
    return BatchTask(training_only(setup, setup.variant if setup.variant.collection else Variant()), seed)


def plan(setups: list[Setup], methods: list[str], instances: dict[str, list[str]], seeds: list[int]) -> list[CellTask]:
    """All cells, seed by seed, so that the first ones are of every method.

    A method is a name, or module:Class of the user's own.
    """
    found = {source: find_method(source, Setting(), "compare") for source in methods}
    imagines = any(method.imagines for method in found.values())
    for setup in setups:
        known_name("reward", setup.reward, REWARDS)
        known_name("preset", setup.preset, PRESETS)
        if imagines:
            check_reward(setup.reward, setup.make())
    return [
        CellTask(_trained(setup), seed, found[source].name, source, instance)
        for setup in setups
        for seed in seeds
        for source in methods
        for instance in instances[setup.family_label]
    ]


def training_only(setup: Setup, variant: Variant) -> Setup:
    """The setup without what has no part in training: cells that differ only there share batch and model."""
    return dataclasses.replace(setup, variant=variant, episodes=0, reward="")


def _trained(setup: Setup) -> Setup:
    """A variant that says how many training instances there are says it in the setup too."""
    count = setup.variant.training
    if count is None:
        return setup
    family = setup.make()
    complete = count == len(family.instances(family.training_pool))
    return dataclasses.replace(setup, training=family.training_pool if complete else count)
