"""Logs of 60 electric water heaters whose tank, insulation and element nobody has measured, and of a 61st.

    python water_heaters.py
    hipmdp pretrain --logs heaters.parquet --instance-column unit --episode day --time minute \
        --state temperature,ambient --action level --actions off,low,medium,high,full --reward reward
    hipmdp adapt heaters.hipmdp --logs new_heater.parquet

hipmdp sees the logs alone. `score` is the simulator behind them: it says what a policy is worth on one heater, such as
that of `hipmdp.advise` for unit60, or a proportional controller tuned on a known one:

    score(heater(60), hipmdp.advise(model, log).policy)
    score(heater(60), proportional(tuned_gain(heater(0))))
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LEVELS = ("off", "low", "medium", "high", "full")
"""Actions: 0, 1/4, 1/2, 3/4 and all of the power."""
TARGET, COLD = 60.0, 10.0
"""°C: what is wanted in the tank, and what comes in from the main."""
CUT_OUT = 85.0
"""°C: above it the safety switch keeps the element off."""
MINUTES, STEPS = 30, 48
"""Of a step; steps of a day, which is an episode."""
HEAT = 4186.0
"""J to warm a litre of water by 1 K."""
PRICE, DISCOMFORT = 0.3, 0.01
"""Per kWh; per K² and step."""
GAINS = np.geomspace(0.01, 0.5, 12)
"""Of the proportional controllers: share of the power per K below the target."""


class Heater(NamedTuple):
    """The hidden parameters."""

    volume: float
    """l"""
    loss: float
    """W/K"""
    power: float
    """W"""


def heater(number: int) -> Heater:
    """Unit `number` of the fleet, always the same."""
    rng = np.random.default_rng([0, number])
    return Heater(rng.uniform(80, 250), rng.uniform(1, 4), rng.uniform(1500, 4500))


def warmed(unit: Heater, temperature: float, ambient: float, level: int, litres: float) -> tuple[float, float]:
    """Temperature after one step in which `litres` of hot water were drawn, and the energy that it took in kWh."""
    power = 0.0 if temperature > CUT_OUT else unit.power * level / (len(LEVELS) - 1)
    heat = (power - unit.loss * (temperature - ambient)) * 60 * MINUTES
    mixed = temperature + litres / unit.volume * (COLD - temperature)
    return mixed + heat / (HEAT * unit.volume), power * MINUTES / 60 / 1000


def reward(temperature: float, energy: float) -> float:
    """What a step that ends at this temperature and took this energy is worth."""
    return -DISCOMFORT * (temperature - TARGET) ** 2 - PRICE * energy


def day(unit: Heater, policy: Callable[[np.ndarray], int], rng: np.random.Generator) -> list[tuple[float, ...]]:
    """One day: rows (temperature, ambient, level, reward), and a last one that says where it ended."""
    temperature, ambient = rng.uniform(45, 65), rng.uniform(8, 22)
    rows = []
    for _ in range(STEPS):
        level = policy(np.array([temperature, ambient]))
        litres = rng.uniform(5, 30) if rng.random() < 0.3 else 0.0
        after, energy = warmed(unit, temperature, ambient, level, litres)
        rows.append((temperature, ambient, level, reward(after, energy)))
        temperature, ambient = after, ambient + 0.05 * (15 - ambient) + rng.normal(0, 0.3)
    return [*rows, (temperature, ambient, 0, 0.0)]


def thermostat(rng: np.random.Generator) -> Callable[[np.ndarray], int]:
    """Who wrote the logs: full below 55 °C and off above it, but any level in three steps of ten."""

    def policy(state: np.ndarray) -> int:
        usual = len(LEVELS) - 1 if state[0] < 55 else 0
        return int(rng.integers(len(LEVELS))) if rng.random() < 0.3 else usual

    return policy


def write_logs(path: str | Path, units: Iterable[int], days: int = 4, seed: int = 0) -> None:
    """A Parquet file with a row per moment; the hidden parameters are not in it."""
    rows = []
    for number in units:
        rng = np.random.default_rng([1, seed, number])
        for i in range(days):
            for step, (temperature, ambient, level, paid) in enumerate(day(heater(number), thermostat(rng), rng)):
                place = {"unit": f"unit{number:02d}", "day": i, "minute": MINUTES * step}
                seen = {"temperature": temperature, "ambient": ambient, "level": LEVELS[int(level)], "reward": paid}
                rows.append(place | seen)
    pq.write_table(pa.Table.from_pylist(rows), path)


def score(unit: Heater, policy: Callable[[np.ndarray], int], days: int = 10, seed: int = 0) -> float:
    """Mean true reward of a day; the draws and the weather of a seed are the same for every policy and heater."""
    total = 0.0
    for i in range(days):
        total += sum(row[3] for row in day(unit, policy, np.random.default_rng([2, seed, i])))
    return total / days


def proportional(gain: float) -> Callable[[np.ndarray], int]:
    """The level nearest to `gain` times the degrees that are missing."""
    most = len(LEVELS) - 1
    return lambda state: int(np.clip(np.rint(most * gain * (TARGET - state[0])), 0, most))


def tuned_gain(unit: Heater) -> float:
    """The gain that is best on this heater."""
    return float(max(GAINS, key=lambda gain: score(unit, proportional(gain))))


if __name__ == "__main__":
    write_logs("heaters.parquet", range(60))
    write_logs("new_heater.parquet", [60])
