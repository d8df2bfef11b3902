"""What a log says about its own system: ranges, actions, horizon, and how long its steps take."""

import numpy as np

from hipmdp._units import column_fault, origin_of, reward_unit, single_fault
from hipmdp.data.logs.columns import LogColumns, listed
from hipmdp.data.logs.rows import LogRows
from hipmdp.families.specification import Specification

REGULAR = 0.01
"""Durations that differ from their median by no more than this share are alike."""
LONGEST_EPISODE = 200
"""Steps of an imagined episode, where logged ones are longer and nobody has said."""


def specification_of(
    rows: LogRows, columns: LogColumns, name: str, horizon: int | None, discount: float
) -> Specification:
    """What the logs say about their own system."""
    if len(rows.action_names) < 2:
        raise ValueError(
            f"Column {columns.action!r} holds one action only ({listed(rows.action_names)}): nothing can be chosen."
        )
    if not 0 < discount <= 1:
        raise ValueError(f"The discount must be in (0, 1], got {discount:g}.")
    if horizon is not None and horizon < 1:
        raise ValueError(f"The horizon must be at least 1, got {horizon}.")
    state, changes = unwound(rows.state, columns), _changes(rows)
    low, high, spread = state.min(axis=0), state.max(axis=0), state.std(axis=0)
    angles = np.asarray([c in columns.angles for c in columns.state])
    for i, column in enumerate(columns.state):
        if low[i] == high[i]:
            raise ValueError(f"Column {column!r} is {low[i]:g} in every row: leave it out of the state.")
        fault = column_fault(state[:, i], changes[:, i])
        if fault is not None:
            raise ValueError(f"Column {column!r} {fault}.")
    rewards = np.zeros(1) if rows.reward is None else rows.reward[np.isfinite(rows.reward)]
    fault = single_fault(rewards)
    if fault is not None:
        raise ValueError(f"Column {columns.reward!r} {fault}.")
    slack = high - low
    low, high = (np.where(angles, limit, v) for limit, v in ((-np.pi, low - slack), (np.pi, high + slack)))
    lengths = np.bincount(rows.group) - (0 if columns.next_state else 1)
    durations = durations_of(rows, columns)
    step = None if durations is None else float(np.median(durations))
    return Specification(
        family=f"{name}-logs",
        state_names=columns.state,
        state_low=_floats(low),
        state_high=_floats(high),
        state_centre=_floats(state.mean(axis=0)),
        state_scale=_floats(spread),
        angles=tuple(bool(a) for a in angles),
        action_names=rows.action_names,
        horizon=horizon or min(int(lengths.max()), LONGEST_EPISODE),
        discount=discount,
        step=step,
        timed=durations is not None and step is not None and not is_regular(durations, step),
        rewarded=columns.reward is not None,
        origin=_floats(np.where(angles, 0.0, origin_of(state, changes))),
        reward_unit=reward_unit(rewards),
    )


def _changes(rows: LogRows) -> np.ndarray:
    """s' − s of every transition; angles are not wrapped."""
    if rows.next_state is not None:
        return rows.next_state - rows.state
    return np.diff(rows.state, axis=0)[~rows.last[:-1]]


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(v) for v in values)


def unwound(values: np.ndarray, columns: LogColumns) -> np.ndarray:
    """Angles brought to [−π, π)."""
    angles = np.asarray([c in columns.angles for c in columns.state])
    return np.where(angles, np.mod(values + np.pi, 2 * np.pi) - np.pi, values)


def is_regular(durations: np.ndarray, step: float) -> bool:
    """Whether all steps take the same time, or nearly."""
    return bool(np.all(np.abs(durations - step) <= REGULAR * step))


def durations_of(rows: LogRows, columns: LogColumns) -> np.ndarray | None:
    """How long each transition took; None where the log has no times."""
    if rows.time is None:
        return None
    inner = ~rows.last[:-1]
    # Ticks are subtracted before they become seconds: differences of 100 ns survive beside a date.
    known = np.diff(rows.time)[inner] / rows.rate
    if not columns.next_state:
        return known
    # The last transition of an episode ends at a time that is not in the log.
    durations = np.full(len(rows.time), np.median(known) if len(known) else 1.0)
    durations[:-1][inner] = known
    return durations
