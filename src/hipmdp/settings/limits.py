"""Caution and limits: how what is not known counts when an action is chosen."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from hipmdp._errors import known_name, number, whole
from hipmdp.families.specification import Specification

RISK, WITHIN = 0.05, 10
"""The chance with which a limit may be broken, and within how many steps, unless the user says otherwise."""
MOST_WITHIN = 1_000
"""Steps that are imagined for every action of every decision, at most."""
_LIMIT = re.compile(r"\s*(.+?)\s*(<=|>=|<|>)([^<>=]*)")
"""A name, a relation, a number."""


class Limit(NamedTuple):
    """One limit: sign · state ≤ sign · bound, or < where the bound itself breaks it."""

    name: str
    """Of the state dimension."""
    sign: float
    """1 where values above the bound break it, −1 where values below do."""
    bound: float
    """In natural units."""
    strict: bool
    """Whether the bound itself breaks it."""


@dataclass(frozen=True)
class Limits:
    """Limits on states, and the chance with which they may be broken within so many steps."""

    limits: tuple[str, ...]
    """Each a state's name, <=, <, >= or >, and a number in natural units: "log10_V<=6"."""
    risk: float = RISK
    """An action is allowed where its predicted chance of breaking a limit is at most this."""
    within: int = WITHIN
    """How many next states count: the present one does not, even where it breaks a limit."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", tuple(self.limits))
        for text in self.limits:
            parsed_limit(text)
        if not self.limits:
            raise ValueError('Limits need at least one limit, such as "speed<=3".')
        object.__setattr__(self, "risk", _risk(self.risk))
        object.__setattr__(self, "within", whole("within", self.within, 1, MOST_WITHIN))

    def __str__(self) -> str:
        return " and ".join(self.limits)

    def parsed(self, specification: Specification) -> tuple[Limit, ...]:
        """The limits; a name that is none of the specification's states is a `ValueError`."""
        found = tuple(parsed_limit(text) for text in self.limits)
        for limit in found:
            known_name("state in a limit", limit.name, specification.state_names)
        return found


def parsed_limit(text: Any) -> Limit:
    """`text` as a limit, otherwise a `ValueError` that shows how one is written."""
    match = _LIMIT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f'A limit is a state, <=, <, >= or >, and a number, such as "speed<=3": got {text!r}.')
    name, relation, value = match.groups()
    bound = number("The number of limit", text, value.strip())
    return Limit(name, 1.0 if "<" in relation else -1.0, bound, "=" not in relation)


def limits_of(limits: Limits | Iterable[str], risk: float = RISK, within: int = WITHIN) -> Limits | None:
    """What a caller says about limits, as one value; None where there are none."""
    if isinstance(limits, Limits):
        return limits
    texts = (limits,) if isinstance(limits, str) else tuple(limits)
    # Numbers are checked whether or not they matter.
    _risk(risk)
    whole("within", within, 1, MOST_WITHIN)
    return Limits(texts, risk, within) if texts else None


def check_caution(caution: Any) -> float:
    """`caution` as a float in [0, 1), otherwise a `ValueError`."""
    value = number("The number", "caution", caution)
    if not 0 <= value < 1:
        raise ValueError(f"caution must be at least 0 (the mean) and below 1, got {value:g}.")
    return value


def _risk(risk: Any) -> float:
    value = number("The number", "risk", risk)
    if not 0 < value < 1:
        raise ValueError(f"risk must be above 0 and below 1, as it is a chance, got {value:g}.")
    return value
