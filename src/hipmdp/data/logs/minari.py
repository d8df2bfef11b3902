"""Minari datasets as tables: a row per moment, as in any other log (needs `hipmdp[minari]`)."""

from typing import Any

import numpy as np
import pyarrow as pa

STATE, ACTION, REWARD, TERMINATED, EPISODE = "x", "action", "reward", "terminated", "episode"
"""Columns: x0, x1, … are the observation; `info.KEY` and `metadata.KEY` are added as they are found."""


def read_minari(name: str) -> pa.Table:
    """The local dataset `name`; observations must be vectors and actions a choice."""
    try:
        import minari
    except ImportError:
        raise ValueError("Minari datasets need the extra: pip install 'hipmdp[minari]'.") from None
    try:
        dataset = minari.load_dataset(name)
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = str(error).splitlines()[0].split(". ")[0].rstrip(".")
        raise ValueError(f"Cannot read the Minari dataset {name!r}: {reason}.") from None
    shape = getattr(dataset.observation_space, "shape", None)
    if shape is None or len(shape) != 1 or shape == (0,):
        raise ValueError(f"Observations of {name!r} must be vectors, got {dataset.observation_space}.")
    if not hasattr(dataset.action_space, "n"):
        raise ValueError(
            f"Actions of {name!r} must be a choice among a few, got {dataset.action_space}: continuous actions cannot "
            "be learned here."
        )
    parts = [_episode(dataset, episode, shape[0]) for episode in dataset.iterate_episodes()]
    if not parts:
        raise ValueError(f"The Minari dataset {name!r} has no episodes.")
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException:
        raise ValueError(
            f"The episodes of {name!r} do not fit together: an info or metadata value is of one kind in one, and of "
            "another in the next."
        ) from None


def _episode(dataset: Any, episode: Any, size: int) -> pa.Table:
    """n + 1 rows: the last one only says where the episode ended."""
    rows = len(episode.rewards) + 1
    observations = np.asarray(episode.observations, np.float64).reshape(-1, size)
    columns: dict[str, Any] = {EPISODE: np.full(rows, episode.id)}
    columns |= {f"{STATE}{i}": observations[:, i] for i in range(size)}
    columns[ACTION] = pa.array([*np.asarray(episode.actions).ravel().tolist(), None], pa.int64())
    columns[REWARD] = pa.array([*np.asarray(episode.rewards, float).tolist(), None], pa.float64())
    columns[TERMINATED] = pa.array([False] * (rows - 1) + [bool(episode.terminations[-1])])
    for key, values in (episode.infos or {}).items():
        # One value per moment; nested infos say nothing about an instance.
        if isinstance(values, (list, np.ndarray)) and len(values) == rows and np.ndim(values) == 1:
            columns[f"info.{key}"] = [_plain(v) for v in values]
    for key, value in next(iter(dataset.storage.get_episode_metadata([episode.id]))).items():
        if isinstance(value, (str, int, float, np.generic)):
            columns[f"metadata.{key}"] = [_plain(value)] * rows
    return pa.table(columns)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
