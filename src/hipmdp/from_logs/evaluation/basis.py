"""Smooth functions of the state, drawn at random: what fitted Q evaluation and the logging policy are linear in."""

from typing import NamedTuple

import numpy as np

from hipmdp.families.specification import Specification


class Places(NamedTuple):
    """States as points whose distances mean something: in spreads of the log, angles as points on a circle."""

    centre: np.ndarray
    scale: np.ndarray
    angles: np.ndarray

    @staticmethod
    def of(states: np.ndarray, specification: Specification) -> "Places":
        """As the states of a log say."""
        spread = states.std(axis=0)
        return Places(states.mean(axis=0), np.where(spread > 0, spread, 1.0), np.asarray(specification.angles))

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """[row, coordinate] of states in natural units."""
        plain = (states - self.centre) / self.scale
        round_ = states[:, self.angles]
        return np.concatenate([plain[:, ~self.angles], np.sin(round_), np.cos(round_)], axis=1)


class Basis(NamedTuple):
    """φ(s): one, the coordinates, and cosines of random directions."""

    places: Places
    directions: np.ndarray
    """[coordinate, cosine]."""
    phases: np.ndarray

    @staticmethod
    def draw(places: Places, states: np.ndarray, count: int, generator: np.random.Generator) -> "Basis":
        """`count` cosines that are as smooth as the states are far from each other, half of them twice as fine."""
        points = places(states)
        pairs = generator.integers(len(points), size=(2, 500))
        gaps = np.sqrt(np.sum((points[pairs[0]] - points[pairs[1]]) ** 2, axis=1))
        length = float(np.median(gaps)) or 1.0
        fine = np.where(np.arange(count) % 2 == 0, 1.0, 2.0)
        directions = generator.standard_normal((points.shape[1], count)) * fine / length
        return Basis(places, directions, generator.uniform(0, 2 * np.pi, count))

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """[row, function]."""
        points = self.places(states)
        waves = np.sqrt(2) * np.cos(points @ self.directions + self.phases)
        return np.concatenate([np.ones((len(points), 1)), points, waves], axis=1)
