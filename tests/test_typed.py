"""Values from files have the types that they are said to have, or are refused in one sentence."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipmdp._typed import typed


class Colour(StrEnum):
    RED = "red"


class Pair(NamedTuple):
    first: int
    second: float | None


@dataclass(frozen=True)
class Thing:
    name: str
    pairs: tuple[Pair, ...] = ()
    colour: Colour = Colour.RED
    weights: dict[str, float] = field(default_factory=dict)
    anything: Any = None
    is_heavy: bool = False


def test_a_thing_is_made_with_all_its_parts():
    values = {"name": "a", "pairs": [{"first": 1, "second": None}, {"first": 2, "second": 3}], "colour": "red"}
    thing = typed(Thing, values | {"weights": {"x": 1}, "anything": [{}]}, "thing")
    assert thing == Thing("a", (Pair(1, None), Pair(2, 3.0)), Colour.RED, {"x": 1.0}, [{}])
    assert isinstance(thing.pairs[1].second, float)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": 1}, "thing.name must be a text, got 1"),
        ({"pairs": {}}, "thing.pairs must be a list"),
        ({"pairs": [{"first": 1}]}, r"thing.pairs\[0\] has no 'second'"),
        ({"pairs": [{"first": True, "second": None}]}, r"thing.pairs\[0\].first must be a whole number, got True"),
        ({"pairs": [{"first": 2**31, "second": None}]}, "too large"),
        ({"pairs": [{"first": 1.0, "second": None}]}, "must be a whole number"),
        ({"pairs": [{"first": 1, "second": float("nan")}]}, "must be a number, got NaN"),
        ({"pairs": [{"first": 1, "second": 10**400}]}, "too large"),
        ({"colour": "blue"}, "thing.colour must be one of red, got 'blue'"),
        ({"colour": []}, "must be one of red"),
        ({"weights": {"x": "1"}}, "thing.weights.x must be a number"),
        ({"is_heavy": 1}, "must be true or false"),
        ({"__class__": "evil"}, "unknown '__class__'"),
    ],
)
def test_what_does_not_fit_is_named(change, told):
    with pytest.raises(ValueError, match=told):
        typed(Thing, {"name": "a"} | change, "thing")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    )
)
def test_anything_else_is_a_value_error(value):
    for kind in (Thing, Pair, Colour, tuple[int, ...], dict[str, float], bool, int | None):
        try:
            typed(kind, value, "it")
        except ValueError as error:
            assert str(error).startswith("it")  # noqa: PT017
