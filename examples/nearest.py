"""A method of your own for hipmdp: act as the nearest transitions on record suggest (episodic control).

hipmdp compare grid --methods embedded nearest:NearestNeighbour --out study
"""

from typing import NamedTuple

import jax
import numpy as np

import hipmdp


class Memory(NamedTuple):
    """Transitions on record, a row each."""

    states: np.ndarray
    actions: np.ndarray
    values: np.ndarray
    """Discounted return from that step to the end of its episode."""
    foreign: np.ndarray
    """1 for rows of other instances, 0 for rows of this one."""

    def plus(self, other: "Memory") -> "Memory":
        """Both, as a new value."""
        return Memory(*(np.concatenate(columns) for columns in zip(self, other, strict=True)))


class State(NamedTuple):
    """What the method knows while it controls one instance."""

    memory: Memory
    specification: hipmdp.Specification
    episode: tuple[hipmdp.Transition, ...] = ()
    """The transitions of the episode under way."""


def returns_to_go(rewards: np.ndarray, discount: float) -> np.ndarray:
    """[t]: Σ_k discount^k r_{t+k}."""
    values, total = np.zeros(len(rewards)), 0.0
    for t in reversed(range(len(rewards))):
        total = rewards[t] + discount * total
        values[t] = total
    return values


class NearestNeighbour(hipmdp.AbstractMethod):
    """The value of an action is the mean value of the nearest transitions in which it was taken."""

    name = "nearest"

    def __init__(self, neighbours: int = 5, epsilon: float = 0.1, doubt: float = 0.5) -> None:
        self.neighbours, self.epsilon = neighbours, epsilon
        self.doubt = doubt
        """Added to the distance of rows of other instances, in standard deviations of the states."""

    def prepare(self, key, batch, family):
        """Put the batch of earlier instances on record; called once per seed."""
        values = np.zeros(len(batch))
        for instance in batch.instances:
            for episode in np.unique(batch.episode[batch.instance == instance]):
                rows = np.flatnonzero((batch.instance == instance) & (batch.episode == episode))
                values[rows] = returns_to_go(batch.reward[rows], family.specification.discount)
        return Memory(batch.state, batch.action, values, np.ones(len(batch)))

    def start(self, key, model, specification):
        """Before the first episode with an instance; `model` is what `prepare` returned."""
        return State(model, specification)

    def act(self, key, state, observation):
        """Explore with probability ε, otherwise take the best action on record."""
        explore_key, action_key = jax.random.split(key)
        if jax.random.uniform(explore_key) < self.epsilon:
            return int(jax.random.randint(action_key, (), 0, state.specification.action_count)), state
        return self.policy(state)(observation), state

    def observe(self, state, transition):
        """Keep the transition until the episode is over."""
        return state._replace(episode=(*state.episode, transition))

    def after_episode(self, key, state):
        """The episode joins the record."""
        rewards = np.asarray([step.reward for step in state.episode], np.float64)
        own = Memory(
            np.stack([step.state for step in state.episode]),
            np.asarray([step.action for step in state.episode]),
            returns_to_go(rewards, state.specification.discount),
            np.zeros(len(rewards)),
        )
        memory = state.memory.plus(own)
        return State(memory, state.specification), {"rows_on_record": len(memory.values)}

    def policy(self, state):
        """The greedy policy: a function from one observation to an action."""
        return lambda observation: int(np.argmax(self.action_values(state, observation)))

    def action_values(self, state, observation):
        """[a]: mean value of the nearest rows in which a was taken; −inf where there are none."""
        memory, scale = state.memory, np.asarray(state.specification.state_scale)
        distance = np.linalg.norm((memory.states - observation) / scale, axis=1) + self.doubt * memory.foreign
        values = np.full(state.specification.action_count, -np.inf)
        for action in range(len(values)):
            rows = np.flatnonzero(memory.actions == action)
            if len(rows):
                nearest = rows[np.argsort(distance[rows], kind="stable")[: self.neighbours]]
                values[action] = memory.values[nearest].mean()
        return values
