"""Checkpoints of long computations: written at chunk edges, and read by the same call when it is made again."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hipmdp._files import REMOVE
from hipmdp._progress import Interrupt
from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from hipmdp.data.transitions import COLUMNS, Transitions

SAVE_SECONDS = 10.0
"""Time between two checkpoints, at least."""
SAVE_SHARE = 0.03
"""Share of the time that may be spent on writing them."""
Tree = TypeVar("Tree")


class WorkFile:
    """The checkpoint of one computation; without a path nothing is kept."""

    def __init__(self, path: Path | None, kind: str, interrupt: Interrupt) -> None:
        self.path, self._kind, self._interrupt = path, kind, interrupt
        self._due = time.monotonic() + SAVE_SECONDS

    def load(self, template: Callable[[dict[str, Any]], Tree]) -> tuple[Tree, dict[str, Any]] | None:
        """What an earlier call kept, shaped like `template(meta)`; None: nothing."""
        if self.path is None or not self.path.exists():
            return None
        return load_checkpoint(self.path, self._kind, template, REMOVE)

    def at_chunk_edge(self, tree: Any, meta: dict[str, Any]) -> None:
        """Write what is due; on Ctrl-C, write it and end."""
        pressed = self._interrupt.pressed
        if pressed or time.monotonic() >= self._due:
            self.save(tree, meta)
        if pressed:
            raise KeyboardInterrupt

    def save(self, tree: Any, meta: dict[str, Any]) -> None:
        """Write the checkpoint, if there is to be one."""
        if self.path is None:
            return
        begin = time.monotonic()
        save_checkpoint(self.path, self._kind, tree, meta)
        now = time.monotonic()
        self._due = now + max(SAVE_SECONDS, (now - begin) / SAVE_SHARE)


@dataclass(frozen=True)
class Work:
    """Where computations keep their checkpoints, and whether Ctrl-C was pressed."""

    directory: Path | None = None
    interrupt: Interrupt = field(default_factory=Interrupt)

    def file(self, name: str) -> WorkFile:
        """The checkpoint of the computation `name`."""
        path = None if self.directory is None else self.directory / f"{name}.checkpoint"
        return WorkFile(path, name, self.interrupt)

    def unkept(self) -> WorkFile:
        """No checkpoint: only Ctrl-C is noticed at chunk edges."""
        return WorkFile(None, "", self.interrupt)

    def clear(self) -> None:
        """Remove all checkpoints: what they led to is kept elsewhere."""
        for path in [] if self.directory is None else self.directory.glob("*.checkpoint"):
            path.unlink()


def batch_digest(batch: Transitions) -> str:
    """What identifies a batch in the description of a piece of work."""
    facts = [batch.specification.to_dict(), batch.thetas, batch.names]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in COLUMNS:
        digest.update(np.ascontiguousarray(getattr(batch, name)).tobytes())
    return digest.hexdigest()
