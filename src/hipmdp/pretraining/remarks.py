"""What the recipe's own checks say about a batch and the model of it: a sentence each, with what to do."""

from collections.abc import Mapping

import numpy as np

from hipmdp.data.transitions import Transitions

INACCURATE = 0.5
"""Error on held-out episodes above which a model explains too little (1: no better than the mean change)."""
OVERFITTED = 10.0
"""How many times the error on training episodes that on held-out ones may be."""


def batch_remarks(batch: Transitions) -> list[str]:
    """Whether the rewards of the batch tell a good policy from a bad one, and on which instances."""
    if not batch.specification.rewarded:
        return []
    if is_reward_constant(batch):
        return [
            f"Every reward of the batch is {batch.reward[0]:g} and no episode ended by itself: nothing tells a good "
            "policy from a bad one. Collect episodes that reach the goal, or give another reward."
        ]
    dull = [name for name in batch.instances if is_reward_constant(batch.of_instance(name))]
    if not dull:
        return []
    return [
        f"On {len(dull)} of {len(batch.instances)} instances nothing ever happened: one reward, and no episode that "
        "ended by itself. What is worth reaching is known from the others alone: collect more episodes there."
    ]


def model_remarks(metrics: Mapping[str, float]) -> list[str]:
    """Whether the model explains what happens on episodes that it has not seen."""
    held_out, training = metrics.get("error_on_held_out_episodes"), metrics.get("error_on_training_episodes")
    if held_out is None or held_out < INACCURATE:
        return []
    if training is not None and held_out > OVERFITTED * training:
        return [
            f"The model's error is {held_out:.2f} on episodes it has not seen and {training:.2f} on the others: the "
            "batch is too small. Collect more episodes, or more instances."
        ]
    return [
        f"The model's error is {held_out:.2f} of what the mean change would leave: the state does not say what comes "
        "next. Measure more of the system, or record it more often."
    ]


def is_reward_constant(batch: Transitions) -> bool:
    """Whether the batch has rewards that never vary, and no episode that terminates."""
    return batch.specification.rewarded and float(np.ptp(batch.reward)) == 0 and not batch.terminated.any()
