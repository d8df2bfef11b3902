"""Real episodes of one instance: the three ways in which one is lived and learned from, and those that only judge."""

import jax
from jaxtyping import PRNGKeyArray

from hipmdp.control.config import DDQNConfig
from hipmdp.control.evaluate import EpsilonGreedy, greedy_episodes, repeat_theta
from hipmdp.control.network import QNetwork
from hipmdp.control.train import copied, train_in_stages
from hipmdp.data.episodes import episodes_to_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.play import play, play_lives
from hipmdp.families.rollout import Episode
from hipmdp.transfer.adaptive import Adaptive
from hipmdp.transfer.collect import rows_to_transitions
from hipmdp.transfer.simulate import Student

EVALUATION = 2_000_017
"""Key stream of the episodes that judge."""


def adaptive_episode(
    family: AbstractFamily, theta: Theta, actor: Adaptive, belief: Belief, number: int, key: PRNGKeyArray
) -> tuple[Transitions, Belief]:
    """Episode `number` by Q(s, w), and who it is then believed to be, step by step."""
    lived, beliefs = play_lives(family, actor, belief, key[None], repeat_theta(theta, 1))
    return episodes_to_transitions(family, lived, theta, number), jax.tree.map(lambda leaf: leaf[0], beliefs)


def followed_episode(
    family: AbstractFamily, theta: Theta, policy: EpsilonGreedy, number: int, key: PRNGKeyArray
) -> Transitions:
    """Episode `number` by a policy that was learned elsewhere."""
    lived = play(family, policy, key[None], repeat_theta(theta, 1))
    return episodes_to_transitions(family, lived, theta, number)


def model_free_episode(
    family: AbstractFamily, theta: Theta, config: DDQNConfig, student: Student, number: int
) -> tuple[Transitions, Student]:
    """Episode `number`, ε-greedy, with learning from every step as the paper's model-free baseline does."""
    (chunk,) = train_in_stages(config, family, repeat_theta(theta, 1), student.learner, [number + 1])
    student = student._replace(learner=chunk.state, best=copied(chunk.state.online))
    return rows_to_transitions(family, [chunk.rows], 0, theta), student


def evaluate(family: AbstractFamily, network: QNetwork, theta: Theta, seed: int) -> Episode:
    """Greedy evaluation episodes (20 on grid and acrobot, 1 on HIV), from which nothing is learned."""
    count = family.evaluation_episodes
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), EVALUATION), count)
    return greedy_episodes(family, network, repeat_theta(theta, count), keys)
