"""Two measurements of the paper that are not cells: Figure 1 (joint uncertainty) and Figure 5 (scaling)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipmdp._errors import known_name
from hipmdp._files import read_json, save_json
from hipmdp.data.logs.parquet import load_transitions
from hipmdp.study.cells.files import REMEDY
from hipmdp.study.paper_figures.scaling import measure_scaling
from hipmdp.study.paper_figures.uncertainty import measure_uncertainty
from hipmdp.study.setup import Setup, Variant, parse_setup
from hipmdp.study.store import Task
from hipmdp.study.tasks import BatchTask, StudyTask, training_only


@dataclass(frozen=True)
class UncertaintyTask(StudyTask):
    """Figure 1: how sure is the model where an instance has not been?"""

    @property
    def path(self) -> Path:
        """One file per seed."""
        return Path("extras") / f"uncertainty-seed{self.seed}.json"

    @property
    def needs(self) -> tuple[Task, ...]:
        """The batch of grid."""
        return (BatchTask(training_only(self.setup, Variant()), self.seed),)

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Measure it."""
        save_json(out, measure_uncertainty(load_transitions(inputs[0]), self.seed))

    def check(self, path: Path) -> None:
        """By its digest."""
        read_json(path)


@dataclass(frozen=True)
class ScalingTask(StudyTask):
    """Figure 5: seconds per episode as data grows, GP against BNN."""

    model: str

    @property
    def path(self) -> Path:
        """One file per model."""
        return Path("extras") / f"scaling-{self.model}-seed{self.seed}.json"

    @property
    def needs(self) -> tuple[Task, ...]:
        """Nothing."""
        return ()

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Measure it."""
        save_json(out, measure_scaling(self.model, self.seed))

    def check(self, path: Path) -> None:
        """By its digest."""
        read_json(path)


def extra_tasks(names: list[str], seeds: list[int], preset: str) -> list[StudyTask]:
    """The tasks behind `uncertainty` (one per seed) and `scaling`."""
    setup: Setup = parse_setup("grid", preset=preset)
    made: dict[str, list[StudyTask]] = {
        "uncertainty": [UncertaintyTask(setup, seed) for seed in seeds],
        "scaling": [ScalingTask(setup, seeds[0], model) for model in ("bnn", "gp")],
    }
    return [task for name in names for task in made[known_name("extra measurement", name, made)]]


def read_extras(directories: list[Path], prefix: str) -> list[dict[str, Any]]:
    """What the tasks of that name have measured."""
    paths = [path for directory in directories for path in sorted((directory / "extras").glob(f"{prefix}-*.json"))]
    return [read_json(path, REMEDY) for path in paths if not path.name.endswith(".error.json")]
