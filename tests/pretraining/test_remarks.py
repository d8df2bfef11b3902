"""What the checks of a batch and of its model say."""

import numpy as np
import pytest

from hipmdp.data.transitions import Transitions
from hipmdp.pretraining.remarks import batch_remarks, model_remarks
from tests.systems.corridor import Corridor

SPECIFICATION = Corridor().specification


def batch(rewards, terminated):
    """Two instances of one episode each, with these rewards, of which the last step of some terminates."""
    count = len(rewards[0])
    flags = np.zeros((2, count), bool)
    flags[:, -1] = terminated
    columns = {
        "instance": np.repeat([0, 1], count), "episode": np.repeat([0, 1], count), "time": np.tile(np.arange(count), 2),
        "state": np.zeros((2 * count, 1)), "action": np.zeros(2 * count, int), "reward": np.ravel(rewards),
        "next_state": np.zeros((2 * count, 1)), "terminated": flags.ravel(),
        "truncated": (np.arange(count) == count - 1)[None].repeat(2, 0).ravel() & ~flags.ravel(),
    }  # fmt: skip
    return Transitions(SPECIFICATION, columns, {})


@pytest.mark.parametrize(
    ("rewards", "terminated", "begins"),
    [
        ([[0, 0], [0, 0]], [False, False], "Every reward of the batch is 0"),
        ([[0, 0], [0, 1]], [False, False], "On 1 of 2 instances nothing ever happened"),
        ([[0, 0], [0, 1]], [True, False], None),
        ([[-1, -1], [-1, -1]], [True, True], None),
    ],
)
def test_where_nothing_happens_is_told(rewards, terminated, begins):
    found = batch_remarks(batch(rewards, terminated))
    assert [text[: len(begins)] for text in found] == [begins] if begins else found == []


@pytest.mark.parametrize(
    ("held_out", "training", "word"), [(0.1, 0.05, None), (0.6, 0.05, "too small"), (0.9, 0.8, "Measure more")]
)
def test_a_model_that_explains_little_is_told(held_out, training, word):
    found = model_remarks({"error_on_held_out_episodes": held_out, "error_on_training_episodes": training})
    assert (word in found[0]) if word else found == []


def test_without_held_out_episodes_nothing_is_known():
    assert model_remarks({"error_on_training_episodes": 0.9}) == []
