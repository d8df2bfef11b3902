"""`collect`: the batch 𝒟, by model-free DDQN on each training instance (the paper: 500 episodes each)."""

import dataclasses
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hipmdp.control.config import DDQNConfig
from hipmdp.control.evaluate import repeat_theta
from hipmdp.control.learner import Experience, LearnerState, Rows
from hipmdp.control.presets import preset as control_preset
from hipmdp.control.train import finished, new_learner, train
from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from hipmdp.data.files import claim, output_directory
from hipmdp.data.parquet import load_transitions, save_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.instance_sets import resolve_instances
from hipmdp.transfer.progress import Progress

DRAW_STREAM = 1_000_001
"""Key stream of instances that are drawn (`None`), apart from the streams of the runs on them."""
CHUNK_STEPS = 1000
"""Steps of a lane between two chunk edges: about half a second."""
CHECKPOINT_CHUNKS = 20
"""Chunks between two checkpoints of a collection that is written to disk."""


def collect(
    family: AbstractFamily,
    instances: Any = 5,
    episodes: int = 500,
    seed: int = 0,
    preset: str = "default",
    out: str | Path | None = None,
    jobs: int | None = None,
    quiet: bool = False,
    *,
    config: DDQNConfig | None = None,
) -> Transitions:
    """Learn each instance's control with model-free DDQN and keep all it experienced, with instance ids 0, 1, ….

    `instances`: n (the first n of `train32`, or of `train` on grid), a set's name, or a list of θ's, dicts, "test:3".
    With `out` (a directory) finished instances and checkpoints are kept there, and the same call goes on where it was
    stopped, to the same bits. `jobs` threads work on instances side by side (default: the number of cores).
    `config` replaces the preset's settings of the learner.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}.")
    thetas = resolve_instances(family, instances, jax.random.fold_in(jax.random.key(seed), DRAW_STREAM))
    config = config or control_preset(preset, family.specification)
    directory = None if out is None else output_directory(Path(out))
    if directory is not None:
        _check_same_work(directory, family, thetas, episodes, seed, config)
    progress = Progress("collect, episode", episodes * len(thetas), quiet=quiet)
    counts = [0] * len(thetas)
    seen: set[int] = set()

    def report(index: int, done: int, last_return: float) -> None:
        if index not in seen:
            # What an earlier call did (all but this first chunk) says nothing about the speed of this one.
            seen.add(index)
            progress.skip(done - 1)
        counts[index] = done
        progress.show(sum(counts), f"(instance {index}: {done}, return {last_return:.4g})")

    stop = threading.Event()

    def work(index: int) -> Transitions:
        return _collect_one(family, thetas[index], index, episodes, seed, config, directory, report, stop)

    pool = ThreadPoolExecutor(jobs or os.cpu_count() or 1)
    try:
        parts = list(pool.map(work, range(len(thetas))))
    finally:
        # After Ctrl-C or a failure the other threads end at their next chunk's edge, with a checkpoint.
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        progress.close()
    batch = parts[0]
    for part in parts[1:]:
        batch = batch.extended(part)
    return batch


def _collect_one(
    family: AbstractFamily,
    theta: Theta,
    index: int,
    episodes: int,
    seed: int,
    config: DDQNConfig,
    directory: Path | None,
    report: Any,
    stop: threading.Event,
) -> Transitions:
    """All episodes of one instance, from its checkpoint if there is one."""
    whole = directory / f"instance{index:03d}.parquet" if directory else None
    if whole is not None and whole.exists():
        report(index, episodes, float("nan"))
        return load_transitions(whole)
    key = jax.random.fold_in(jax.random.key(seed), index)
    state = new_learner(family.specification, config, episodes, key)
    parts: list[Rows] = []
    checkpoint = directory / f"instance{index:03d}.checkpoint" if directory else None
    if checkpoint is not None and checkpoint.exists():
        state, parts = _load(checkpoint, state)
    ticks = max(1, CHUNK_STEPS // config.steps_per_phase)
    returns: dict[int, float] = {}
    for number, chunk in enumerate(train(config, family, repeat_theta(theta, 1), state, episodes, ticks), start=1):
        state = chunk.state
        parts.append(chunk.rows)
        last = _last_return(chunk.rows, returns)
        due = number % CHECKPOINT_CHUNKS == 0 or stop.is_set()
        if checkpoint is not None and due and not finished(state, episodes):
            _save(checkpoint, state, parts)
        if stop.is_set() and not finished(state, episodes):
            raise InterruptedError(f"The collection of instance {index} was stopped.")
        report(index, min(int(state.started), episodes), last)
    result = rows_to_transitions(family, parts, index, theta)
    if whole is not None and checkpoint is not None:
        save_transitions(result, whole)
        checkpoint.unlink(missing_ok=True)
    return result


def _last_return(rows: Rows, running: dict[int, float]) -> float:
    """Return of the last finished episode; `running` carries the sums of episodes under way."""
    last = float("nan")
    ends = rows.experience.terminated | rows.truncated
    for episode in np.unique(rows.episode):
        mask = rows.episode == episode
        running[int(episode)] = running.get(int(episode), 0.0) + float(np.sum(rows.experience.reward[mask]))
        if ends[mask].any():
            last = running.pop(int(episode))
    return last


def rows_to_transitions(family: AbstractFamily, parts: list[Rows], index: int, theta: Theta) -> Transitions:
    """What the learner lived through on one instance, as a log."""
    rows: Rows = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    # Lanes interleave episodes; a log is read episode by episode.
    order = np.lexsort((rows.time, rows.episode))
    columns = {
        **{name: np.asarray(value)[order] for name, value in rows.experience._asdict().items()},
        "truncated": np.asarray(rows.truncated)[order],
        "episode": np.asarray(rows.episode)[order],
        "time": np.asarray(rows.time)[order],
        "instance": np.full(len(order), index, np.int32),
    }
    return Transitions(family.specification, columns, {index: {k: float(v) for k, v in theta._asdict().items()}})


def _save(path: Path, state: LearnerState, parts: list[Rows]) -> None:
    rows: Rows = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    save_checkpoint(path, "collection", (state, rows), {"rows": len(rows.episode)})


def _load(path: Path, state: LearnerState) -> tuple[LearnerState, list[Rows]]:
    """The learner and the rows so far."""

    def template(meta: dict[str, Any]) -> tuple[LearnerState, Rows]:
        def rows(leaf: Any) -> Any:
            return np.zeros((int(meta["rows"]), *leaf.shape[1:]), leaf.dtype)

        experience = Experience(*(rows(leaf) for leaf in state.replay.items))
        number, flag = np.zeros(1, np.int32), np.zeros(1, bool)
        return state, Rows(experience, *(rows(leaf) for leaf in (flag, number, number, flag)))

    (state, rows), _ = load_checkpoint(path, "collection", template)
    return state, [jax.tree.map(np.asarray, rows)]


def _check_same_work(
    directory: Path, family: AbstractFamily, thetas: list[Theta], episodes: int, seed: int, config: DDQNConfig
) -> None:
    """A directory belongs to one collection: refuse to mix another into it."""
    description = json.dumps(
        {
            "family": repr(family),
            "thetas": [{k: float(v) for k, v in theta._asdict().items()} for theta in thetas],
            "episodes": episodes,
            "seed": seed,
            "config": dataclasses.asdict(config),
        }
    )
    claim(directory / "collection.json", description, "collection")
