"""The files of examples/, which are no package, and their environments step by step."""

import runpy
from pathlib import Path

import numpy as np

DIRECTORY = Path(__file__).parents[2] / "examples"


def example(name):
    """The names that a file defines."""
    return runpy.run_path(str(DIRECTORY / f"{name}.py"))


def transitions(env, choose, seed, most=1000):
    """(s, a, s', reward, terminated) of one episode; `choose` is a function of the observation."""
    observation, _ = env.reset(seed=seed)
    for _ in range(most):
        action = choose(observation)
        after, reward, terminated, truncated, _ = env.step(action)
        yield observation, action, after, reward, terminated
        observation = after
        if terminated or truncated:
            return


def random_choice(actions, seed=0):
    """Uniformly random actions."""
    rng = np.random.default_rng(seed)
    return lambda observation: int(rng.integers(actions))
