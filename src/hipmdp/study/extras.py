"""Two measurements of the paper that are not cells: Figure 1 (joint uncertainty) and Figure 5 (scaling)."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipmdp.data.parquet import load_transitions
from hipmdp.families.checks import known_name
from hipmdp.study.pieces import BatchPiece, Piece, training_only
from hipmdp.study.scaling import measure_scaling
from hipmdp.study.setup import Setup, Variant, parse_setup
from hipmdp.study.uncertainty import measure_uncertainty


@dataclass(frozen=True)
class UncertaintyPiece(Piece):
    """Figure 1: how sure is the model where an instance has not been?"""

    @property
    def path(self) -> Path:
        """One file per seed."""
        return Path("extras") / f"uncertainty-seed{self.seed}.json"

    @property
    def needs(self) -> tuple[Piece, ...]:
        """The batch of grid."""
        return (BatchPiece(training_only(self.setup, Variant()), self.seed),)

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Measure it."""
        out.write_text(json.dumps(measure_uncertainty(load_transitions(inputs[0]), self.seed)))


@dataclass(frozen=True)
class ScalingPiece(Piece):
    """Figure 5: seconds per episode as data grows, GP against BNN."""

    model: str

    @property
    def path(self) -> Path:
        """One file per model."""
        return Path("extras") / f"scaling-{self.model}-seed{self.seed}.json"

    @property
    def needs(self) -> tuple[Piece, ...]:
        """Nothing."""
        return ()

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Measure it."""
        out.write_text(json.dumps(measure_scaling(self.model, self.seed)))


def extra_pieces(names: list[str], seeds: list[int], preset: str) -> list[Piece]:
    """The pieces behind `uncertainty` (one per seed) and `scaling`."""
    setup: Setup = parse_setup("grid", preset=preset)
    made: dict[str, list[Piece]] = {
        "uncertainty": [UncertaintyPiece(setup, seed) for seed in seeds],
        "scaling": [ScalingPiece(setup, seeds[0], model) for model in ("bnn", "gp")],
    }
    return [piece for name in names for piece in made[known_name("extra measurement", name, made)]]


def read_extras(directories: list[Path], prefix: str) -> list[dict[str, Any]]:
    """What the pieces of that name have measured."""
    paths = [path for directory in directories for path in sorted((directory / "extras").glob(f"{prefix}-*.json"))]
    return [json.loads(path.read_text()) for path in paths if not path.name.endswith(".error.json")]
