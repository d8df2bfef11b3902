"""Where a run of Algorithm 1 stands: everything that changes, and how it is kept on disk."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from hipmdp.control.network import QNetwork
from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from hipmdp.data.transitions import COLUMNS, Transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.dynamics.model import Dynamics
from hipmdp.transfer.simulate import Student

RECORDS = ("returns", "success", "learning_returns", "model_error", "seconds")
"""What is recorded of every episode; see `Run`."""


class Phase(StrEnum):
    """What comes next in the episode under way."""

    REHEARSE = "rehearse"
    """Imagined episodes with the family's known members, before the first real one."""
    LIVE = "live"
    """A real episode."""
    TUNE = "tune"
    """If it is due: `tune_model`."""
    IMAGINE = "imagine"
    """Imagined episodes, up to the number that is wanted."""
    EVALUATE = "evaluate"
    """Greedy episodes in the real environment, from which nothing is learned."""


@dataclass
class Meeting:
    """One instance, met episode by episode."""

    student: Student
    dynamics: Dynamics | None
    """T̂, tuned to the instance so far."""
    latent: Float[Array, " latent"] | None
    """w_b."""
    lived: Transitions
    """𝒟_b."""
    belief: Belief | None = None
    """p(w_b | what was seen), for methods that follow it step by step."""
    episode: int = 0
    phase: Phase = Phase.LIVE
    imagined: int = 0
    """Imagined episodes that the student is to see so far."""
    forgotten: int = 0
    """Those of the students before."""
    tunings: int = 0
    to_beat: float | None = None
    """What the policy there was is worth in a model just tuned, until the student who goes on has found better."""
    earlier: list[QNetwork] = field(default_factory=list)
    """[i]: the policy when T̂ had been tuned i + 1 times; the last one's is the student's."""
    followed: list[int] = field(default_factory=list)
    """[i]: after how many tunings the policy was found that episode i was lived by."""
    seconds: float = 0.0
    """Time spent on the episode under way."""
    records: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in RECORDS})
    latents: list[Float[Array, " latent"]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write everything, whole or not at all."""
        columns = {name: getattr(self.lived, name) for name in COLUMNS}
        meta = {
            "episode": self.episode,
            "phase": self.phase.value,
            "imagined": self.imagined,
            "forgotten": self.forgotten,
            "tunings": self.tunings,
            "to_beat": self.to_beat,
            "seconds": self.seconds,
            "rows": len(self.lived),
            "records": self.records,
            "latents": len(self.latents),
            "earlier": len(self.earlier),
            "followed": self.followed,
        }
        tree = (self.student, self.dynamics, self.latent, columns, self.latents, self.belief, self.earlier)
        save_checkpoint(path, "meeting", tree, meta)

    def restore(self, path: Path) -> None:
        """Become what was saved; `self` is a fresh meeting with the same settings."""

        def template(meta: dict[str, Any]) -> Any:
            columns = {
                name: np.zeros(
                    (int(meta["rows"]), *getattr(self.lived, name).shape[1:]), getattr(self.lived, name).dtype
                )
                for name in COLUMNS
            }
            latents = [self.latent] * int(meta["latents"])
            earlier = [self.student.best] * int(meta["earlier"])
            return self.student, self.dynamics, self.latent, columns, latents, self.belief, earlier

        tree, meta = load_checkpoint(path, "meeting", template)
        self.student, self.dynamics, self.latent, columns, self.latents, self.belief, self.earlier = tree
        lived = {name: np.asarray(column) for name, column in columns.items()}
        self.lived = Transitions(self.lived.specification, lived, self.lived.thetas)
        self.records = {name: [float(v) for v in meta["records"][name]] for name in RECORDS}
        self.episode, self.phase = int(meta["episode"]), Phase(meta["phase"])
        self.imagined, self.forgotten = int(meta["imagined"]), int(meta["forgotten"])
        self.tunings, self.seconds = int(meta["tunings"]), float(meta["seconds"])
        self.to_beat = None if meta["to_beat"] is None else float(meta["to_beat"])
        self.followed = [int(number) for number in meta["followed"]]


def no_rows(specification: Any, thetas: dict[int, dict[str, float]]) -> Transitions:
    """An empty log."""
    size = specification.state_size
    columns: dict[str, Any] = {name: np.zeros(0) for name in COLUMNS}
    columns |= {"state": np.zeros((0, size)), "next_state": np.zeros((0, size))}
    return Transitions(specification, columns, thetas)
