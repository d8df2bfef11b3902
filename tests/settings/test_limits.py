"""Limits: how they are written, and what is no limit."""

import pytest

import hipmdp
from hipmdp.settings.limits import Limit, Limits, check_caution, limits_of, parsed_limit
from tests.systems.corridor import Corridor

SPECIFICATION = Corridor().specification


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log10_V<=6", Limit("log10_V", 1.0, 6.0, False)),
        (" log10_V < 6e0 ", Limit("log10_V", 1.0, 6.0, True)),
        ("x>=-1.5", Limit("x", -1.0, -1.5, False)),
        ("blood pressure>90", Limit("blood pressure", -1.0, 90.0, True)),
        # A column may be called anything.
        ("a<b<=3", Limit("a<b", 1.0, 3.0, False)),
    ],
)
def test_a_limit_is_a_state_a_relation_and_a_number(text, expected):
    assert parsed_limit(text) == expected


@pytest.mark.parametrize("text", ["x", "x=3", "<=3", "3", "", "x<==3", 3, None, ("x<=3",)])
def test_what_is_no_limit_is_one_sentence(text):
    with pytest.raises(ValueError, match='such as "speed<=3": got'):
        parsed_limit(text)


@pytest.mark.parametrize(("text", "message"), [("x<=", "must be a number"), ("x<=a", "must be a number"),
                                               ("x<=nan", "must be finite"), ("x<inf", "must be finite")])  # fmt: skip
def test_a_bound_is_a_finite_number(text, message):
    with pytest.raises(ValueError, match=message):
        Limits((text,))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"risk": 0}, "risk must be above 0 and below 1"),
        ({"risk": 1.0}, "risk must be above 0 and below 1"),
        ({"risk": float("nan")}, "must be finite"),
        ({"within": 0}, "within must be at least 1"),
    ],
)
def test_risk_and_steps_are_checked_with_and_without_limits(options, message):
    for texts in ((), ("x<=1",)):
        with pytest.raises(ValueError, match=message):
            limits_of(texts, **options)


def test_names_are_those_of_the_specification():
    assert Limits(("x<=1",)).parsed(SPECIFICATION) == (Limit("x", 1.0, 1.0, False),)
    with pytest.raises(ValueError, match=r"Unknown state in a limit 'X'. Did you mean 'x'\? Known: x"):
        Limits(("x<=1", "X>=0")).parsed(SPECIFICATION)


def test_limits_are_one_value():
    found = limits_of(["x<=1", "x>-1"], 0.1, 3)
    assert found == hipmdp.Limits(("x<=1", "x>-1"), 0.1, 3)
    assert str(found) == "x<=1 and x>-1"
    assert limits_of(found, 0.9, 9) is found
    assert limits_of("x<=1") == Limits(("x<=1",))
    assert limits_of(()) is None
    with pytest.raises(ValueError, match="at least one limit"):
        Limits(())


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, float("nan"), "much", None])
def test_caution_is_from_zero_to_below_one(value):
    with pytest.raises(ValueError, match="caution"):
        check_caution(value)
    assert check_caution(0) == 0
    assert check_caution(0.99) == 0.99
