"""A run on disk: what is written at chunk edges, and how the same call goes on from it to the same bits."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jaxtyping import PRNGKeyArray

from hipmdp._files import REMOVE, claim_directory, output_directory
from hipmdp._progress import Interrupt
from hipmdp.adaptation.method import Info, RunnableMethod
from hipmdp.adaptation.run import METRICS
from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint

SAVE_SECONDS = 10.0
"""Time between two checkpoints."""


@dataclass(frozen=True)
class RunRecord:
    """What is known of the episodes so far."""

    metrics: dict[str, tuple[float, ...]] = field(default_factory=lambda: dict.fromkeys(METRICS, ()))
    trace: tuple[Info, ...] = ()
    seconds: float = 0.0
    """Time spent on the episode under way, in earlier calls too."""

    @property
    def finished(self) -> int:
        """Episodes that are learned from and evaluated."""
        return len(self.metrics["returns"])

    @property
    def is_learning(self) -> bool:
        """Whether an episode has been acted, and what is learned from it is still to come."""
        return len(self.metrics["learning_returns"]) > self.finished

    def added(self, **values: float) -> "RunRecord":
        """With one more value of these metrics."""
        return replace(self, metrics={**self.metrics, **{n: (*self.metrics[n], v) for n, v in values.items()}})


class Checkpoint:
    """Where a run stands, in memory and, with a path, on disk."""

    def __init__(
        self,
        method: RunnableMethod,
        directory: Path | None,
        description: dict[str, Any],
        show: Callable[[Any, RunRecord], None],
        save_seconds: float = SAVE_SECONDS,
    ) -> None:
        self.record, self._method, self._show, self._save_seconds = RunRecord(), method, show, save_seconds
        self.path: Path | None = None
        self.interrupt = Interrupt()
        self._saved = self._begun = time.monotonic()
        if directory is not None:
            self.path = output_directory(directory) / "run.checkpoint"
            claim_directory(self.path.with_name("run.json"), description, "run")

    def restore(self, key: PRNGKeyArray, model: Any) -> Any:
        """The state of an earlier call; None: there is none."""
        if self.path is None or not self.path.exists():
            return None
        path = self.path

        def load(template: Callable[[Any], Any]) -> tuple[Any, Any]:
            parts, meta = load_checkpoint(path, "run", lambda meta: template(meta["state"]), REMOVE)
            record = meta["record"]
            metrics = {name: tuple(float(v) for v in record["metrics"][name]) for name in METRICS}
            self.record = RunRecord(metrics, tuple(record["trace"]), float(record["seconds"]))
            return parts, meta["state"]

        return self._method.restored(key, model, load)

    def begin(self) -> None:
        """The clock of an episode runs."""
        self._begun = time.monotonic()

    def spent(self) -> float:
        """Seconds of the episode under way."""
        return self.record.seconds + time.monotonic() - self._begun

    def at_chunk_edge(self, state: Any) -> None:
        """A line of progress; what is due on disk; Ctrl-C, if it was pressed."""
        self._show(state, self.record)
        if self.interrupt.pressed or time.monotonic() - self._saved > self._save_seconds:
            self.save(state)
        if self.interrupt.pressed:
            raise KeyboardInterrupt

    def save(self, state: Any) -> None:
        """Write the checkpoint, if there is to be one."""
        self._saved = time.monotonic()
        saved = None if self.path is None else self._method.saved(state)
        if self.path is None or saved is None:
            return
        parts, meta = saved
        record = self.record
        seconds = self.spent() if record.is_learning or record.finished == 0 else 0.0
        facts = {"metrics": record.metrics, "trace": [plain(info) for info in record.trace], "seconds": seconds}
        save_checkpoint(self.path, "run", parts, {"state": meta, "record": facts})


def plain(info: Info) -> dict[str, Any]:
    """A record as JSON-ready values."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in info.items()}
