"""An `online` run on disk: its state after every episode and after everything that is learned from it.

online.json says which run it is. state.checkpoint is the state, which names the two files that belong to it:
transitions-<steps>.parquet and model-<steps>.hipmdp. It is written after them and replaced whole, so that a kill leaves
one state or the next. What it does not name is removed.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from hipmdp.data.logs.parquet import load_transitions, save_transitions
from hipmdp.data.work import Work
from hipmdp.dynamics.belief import Belief
from hipmdp.online.model_size import Choice
from hipmdp.online.state import OnlineRecord, OnlineState
from hipmdp.pretraining.model import load

REMEDY = "; remove state.checkpoint, and the run begins again"
"""What to do about a damaged file."""
PLAIN = ("returns", "model_error", "misjudged", "fits", "is_fitted", "epsilon", "in_doubt", "is_due", "seconds")
"""Fields of a state that JSON can hold."""


class Store:
    """The directory of a run; without one nothing is kept."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._path = None if work.directory is None else work.directory / "state.checkpoint"
        self._saved = OnlineState()
        self._files: dict[str, str] = {}
        """Names of the files that belong to the saved state."""

    def load(self) -> OnlineState:
        """The state that an earlier call has left, or the first one."""
        if self._path is None or not self._path.exists():
            self._remove_others()
            return self._saved
        belief, meta = load_checkpoint(self._path, "online", _template, REMEDY)
        try:
            state, files = _from_meta(meta), {str(k): str(v) for k, v in meta["files"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"The header of {str(self._path)!r} is damaged ({error}).") from None
        paths = {kind: self._path.with_name(Path(name).name) for kind, name in files.items()}
        self._saved = replace(
            state,
            belief=belief,
            batch=load_transitions(paths["transitions"], REMEDY) if "transitions" in paths else None,
            model=load(paths["model"]) if "model" in paths else None,
        )
        self._files = files
        self._remove_others()
        return self._saved

    def save(self, state: OnlineState) -> None:
        """Write the state, and what has changed of the files beside it."""
        if self._path is None:
            return
        name = f"{state.number:03d}-{state.episode:03d}-{state.fits}"
        if state.batch is not None and state.batch is not self._saved.batch:
            self._files["transitions"] = f"transitions-{name}.parquet"
            save_transitions(state.batch, self._path.with_name(self._files["transitions"]))
        if state.model is not None and state.model is not self._saved.model:
            self._files["model"] = f"model-{name}.hipmdp"
            state.model.save(self._path.with_name(self._files["model"]))
        save_checkpoint(self._path, "online", state.belief, _meta(state, self._files))
        self._saved = state
        self._remove_others()

    def _remove_others(self) -> None:
        """Files of earlier states, and checkpoints of what is learned by now."""
        if self._path is None:
            return
        for pattern in ("transitions-*.parquet", "model-*.hipmdp"):
            for path in self._path.parent.glob(pattern):
                if path.name not in self._files.values():
                    path.unlink()
        if not self._saved.is_due:
            for name in ("choice", "fit", "amortise"):
                self._path.with_name(f"{name}.checkpoint").unlink(missing_ok=True)


def _meta(state: OnlineState, files: dict[str, str]) -> dict[str, Any]:
    """Everything but arrays, JSON-ready."""
    records = [{**record._asdict(), "choice": record.choice._asdict()} for record in state.records]
    facts = {name: getattr(state, name) for name in PLAIN}
    for values in (*records, facts):
        # JSON knows no NaN.
        values["model_error"] = [None if math.isnan(value) else value for value in values["model_error"]]
    choice = None if state.choice is None else state.choice._asdict()
    belief = None if state.belief is None else [list(leaf.shape) for leaf in state.belief]
    return {"state": facts, "records": records, "choice": choice, "belief": belief, "files": dict(files)}


def _template(meta: dict[str, Any]) -> Belief | None:
    if meta["belief"] is None:
        return None
    return Belief(*(np.zeros(tuple(shape), np.float32) for shape in meta["belief"]))  # type: ignore[arg-type]


def _from_meta(meta: dict[str, Any]) -> OnlineState:
    """The state without its belief, 𝒟 and model."""
    facts = meta["state"]
    return OnlineState(
        records=tuple(_record(values) for values in meta["records"]),
        choice=None if meta["choice"] is None else Choice.from_dict(meta["choice"]),
        **_episodes(facts),
        fits=int(facts["fits"]),
        is_fitted=bool(facts["is_fitted"]),
        epsilon=float(facts["epsilon"]),
        in_doubt=bool(facts["in_doubt"]),
        is_due=bool(facts["is_due"]),
        seconds=float(facts["seconds"]),
    )


def _record(values: dict[str, Any]) -> OnlineRecord:
    return OnlineRecord(
        **_episodes(values),
        fits=int(values["fits"]),
        choice=Choice.from_dict(values["choice"]),
        seconds=float(values["seconds"]),
    )


def _episodes(values: dict[str, Any]) -> dict[str, Any]:
    """What is stored of each episode."""
    return {
        "returns": tuple(float(v) for v in values["returns"]),
        "model_error": tuple(math.nan if v is None else float(v) for v in values["model_error"]),
        "misjudged": tuple(bool(v) for v in values["misjudged"]),
    }
