"""Learning curves that can be distinguished."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from hipmdp.report.curves import _magnify, _magnify_long

TOP = {"embedded": 1.0, "linear": 0.99, "blind": 0.97}


@pytest.mark.parametrize(
    ("others", "insets"),
    [({"model_free": 0.2}, 1), ({}, 0), ({"model_free": 0.2, "scratch": 0.6}, 0)],
)
def test_a_crowd_at_the_top_is_enlarged_where_there_is_room(others, insets):
    axes = Figure().add_subplot()
    _magnify(axes, {method: np.full((2, 3, 4), score) for method, score in (TOP | others).items()})
    assert len(axes.child_axes) == insets
    assert all(len(inset.get_lines()) == len(TOP) for inset in axes.child_axes)


def test_two_methods_are_no_crowd():
    axes = Figure().add_subplot()
    _magnify(axes, {"embedded": np.ones((2, 3, 4)), "linear": np.ones((2, 3, 4))})
    assert not axes.child_axes


@pytest.mark.parametrize(
    ("late", "insets"), [([0.1, 0.5, 0.95, 0.95, 0.95, 0.95], 1), ([0.1, 0.5, 0.5, 0.5, 0.95, 0.95], 0)]
)
def test_a_crowd_of_long_runs_is_enlarged_where_the_lower_right_is_free(late, insets):
    axes = Figure().add_subplot()
    _magnify_long(axes, {"model_free": np.asarray(late), **{m: np.full(6, score) for m, score in TOP.items()}})
    assert len(axes.child_axes) == insets
    assert all(len(inset.get_lines()) == len(TOP) for inset in axes.child_axes)
