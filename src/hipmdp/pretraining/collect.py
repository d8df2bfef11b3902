"""`collect`: the batch 𝒟, by model-free DDQN on each training instance (the paper: 500 episodes each)."""

import dataclasses
import os
import threading
from collections.abc import Callable
from concurrent.futures import ALL_COMPLETED, FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hipmdp._errors import check_episodes, check_jobs
from hipmdp._files import REMOVE, claim_directory, output_directory
from hipmdp._progress import AbandonedError, Progress, interruptible
from hipmdp._random import STREAMS_VERSION, root_key, stream
from hipmdp.control.dqn import DQNState
from hipmdp.control.policies import repeat_theta
from hipmdp.control.train import finished, new_dqn, train
from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from hipmdp.data.experience import LoggedSteps, rows_to_transitions
from hipmdp.data.logs.parquet import load_transitions, save_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.families.instances import resolve_instances
from hipmdp.families.protocol import BaseFamily, Theta, theta_values
from hipmdp.families.rollout import Transition
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.presets import dqn_preset

CHUNK_STEPS = 1000
"""Steps of a lane between two chunk edges: about half a second."""
WAKE_SECONDS = 0.2
"""Between two looks at whether Ctrl-C was pressed, which may have reached another thread."""
CHECKPOINT_CHUNKS = 20
"""Chunks between two checkpoints of a collection that is written to disk."""


def collect(
    family: BaseFamily,
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
    `config` replaces the preset's settings of the DQN.
    """
    check_episodes(episodes, family.horizon)
    check_jobs(jobs)
    thetas = resolve_instances(family, instances, stream(root_key(seed), "collect/instances"))
    config = config or dqn_preset(preset, family.specification, episodes)
    directory = None if out is None else output_directory(Path(out))
    if directory is not None:
        _check_same_work(directory, family, thetas, episodes, seed, config)
    progress = Progress("collect, episode", episodes * len(thetas), quiet=quiet)
    counts = [0] * len(thetas)
    seen: set[int] = set()

    def on_chunk(index: int, done: int, last_return: float) -> None:
        if index not in seen:
            # What an earlier call did (all but this first chunk) says nothing about the speed of this one.
            seen.add(index)
            progress.skip(done - 1)
        counts[index] = done
        progress.show(sum(counts), f"(instance {index}: {done}, return {last_return:.4g})")

    failed = threading.Event()
    pool = ThreadPoolExecutor(jobs or os.cpu_count() or 1)
    with interruptible() as interrupt, progress:

        def is_stopped() -> bool:
            return interrupt.pressed or failed.is_set()

        def work(index: int) -> Transitions:
            return _collect_one(family, thetas[index], index, episodes, seed, config, directory, on_chunk, is_stopped)

        futures = [pool.submit(work, index) for index in range(len(thetas))]
        try:
            _wait_for(futures)
            parts = [future.result() for future in futures]
        except AbandonedError:
            # Threads are inside a chunk, for which nobody waits.
            raise
        except BaseException:
            # After Ctrl-C or a failure the other threads end at their next chunk's edge, with a checkpoint.
            failed.set()
            pool.shutdown(wait=False, cancel_futures=True)
            _wait_for(futures, also_failed=True)
            if interrupt.pressed:
                raise KeyboardInterrupt from None
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        if interrupt.pressed:
            raise KeyboardInterrupt
    batch = parts[0]
    for part in parts[1:]:
        batch = batch.extended(part)
    return batch


def _wait_for(futures: list[Future[Transitions]], also_failed: bool = False) -> None:
    """Wait until all are done, or until one has failed, in short waits: Python notices Ctrl-C when it wakes up."""
    until = ALL_COMPLETED if also_failed else FIRST_EXCEPTION
    while True:
        wait(futures, timeout=WAKE_SECONDS, return_when=until)
        # `wait` never counts a future that was cancelled before it began.
        done = [future for future in futures if future.done()]
        broken = any(not future.cancelled() and future.exception() is not None for future in done)
        if len(done) == len(futures) or (broken and not also_failed):
            return


def _collect_one(
    family: BaseFamily,
    theta: Theta,
    index: int,
    episodes: int,
    seed: int,
    config: DDQNConfig,
    directory: Path | None,
    on_chunk: Any,
    is_stopped: Callable[[], bool],
) -> Transitions:
    """All episodes of one instance, from its checkpoint if there is one."""
    whole = directory / f"instance{index:03d}.parquet" if directory else None
    checkpoint = directory / f"instance{index:03d}.checkpoint" if directory else None
    if whole is not None and checkpoint is not None and whole.exists():
        on_chunk(index, episodes, float("nan"))
        # Left by a kill after the file was written.
        checkpoint.unlink(missing_ok=True)
        return load_transitions(whole, REMOVE)
    if is_stopped():
        raise InterruptedError(f"The collection of instance {index} was not begun.")
    state = new_dqn(family.specification, config, episodes, stream(root_key(seed), "collect/run", index))
    parts: list[LoggedSteps] = []
    if checkpoint is not None and checkpoint.exists():
        state, parts = _load(checkpoint, state)
    ticks = max(1, CHUNK_STEPS // config.steps_per_phase)
    returns: dict[int, float] = {}
    for number, chunk in enumerate(train(config, family, repeat_theta(theta, 1), state, episodes, ticks), start=1):
        state = chunk.state
        parts.append(chunk.rows)
        last = _last_return(chunk.rows, returns)
        stop = is_stopped()
        due = number % CHECKPOINT_CHUNKS == 0 or stop
        if checkpoint is not None and due and not finished(state, episodes):
            _save(checkpoint, state, parts)
        if stop and not finished(state, episodes):
            raise InterruptedError(f"The collection of instance {index} was stopped.")
        on_chunk(index, min(int(state.started), episodes), last)
    result = rows_to_transitions(family, parts, index, theta)
    if whole is not None and checkpoint is not None:
        save_transitions(result, whole)
        checkpoint.unlink(missing_ok=True)
    return result


def _last_return(rows: LoggedSteps, running: dict[int, float]) -> float:
    """Return of the last finished episode; `running` carries the sums of episodes under way."""
    last = float("nan")
    ends = rows.transition.terminated | rows.truncated
    for episode in np.unique(rows.episode):
        mask = rows.episode == episode
        running[int(episode)] = running.get(int(episode), 0.0) + float(np.sum(rows.transition.reward[mask]))
        if ends[mask].any():
            last = running.pop(int(episode))
    return last


def _save(path: Path, state: DQNState, parts: list[LoggedSteps]) -> None:
    rows: LoggedSteps = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    save_checkpoint(path, "collection", (state, rows), {"rows": len(rows.episode)})


def _load(path: Path, state: DQNState) -> tuple[DQNState, list[LoggedSteps]]:
    """The DQN and the steps so far."""

    def template(meta: dict[str, Any]) -> tuple[DQNState, LoggedSteps]:
        def rows(leaf: Any) -> Any:
            return np.zeros((int(meta["rows"]), *leaf.shape[1:]), leaf.dtype)

        transition = Transition(*(rows(leaf) for leaf in state.replay.items))
        number, flag = np.zeros(1, np.int32), np.zeros(1, bool)
        return state, LoggedSteps(transition, *(rows(leaf) for leaf in (flag, number, number, flag)))

    (state, rows), _ = load_checkpoint(path, "collection", template, REMOVE)
    return state, [jax.tree.map(np.asarray, rows)]


def _check_same_work(
    directory: Path, family: BaseFamily, thetas: list[Theta], episodes: int, seed: int, config: DDQNConfig
) -> None:
    """A directory belongs to one collection: refuse to mix another into it."""
    description = {
        "family": repr(family),
        "thetas": [theta_values(theta) for theta in thetas],
        "episodes": episodes,
        "seed": seed,
        "streams": STREAMS_VERSION,
        "config": dataclasses.asdict(config),
    }
    claim_directory(directory / "collection.json", description, "collection")
