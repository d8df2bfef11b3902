"""Values that were read from a file, as the types that they are said to have; anything else is a `ValueError`."""

import dataclasses
import math
import types
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

LARGEST_INTEGER = 2**31 - 1
"""Counts and sizes in files are below this."""


def typed(kind: Any, value: Any, what: str, *, nan: bool = False) -> Any:
    """`value`, which came from JSON, as a `kind`: a dataclass, a named tuple (all of it), an enum, or of plain types.

    Lists become tuples and dicts become dataclasses, checked field by field. NaN is refused unless `nan`.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return None if value is None else typed(inner, value, what, nan=nan)
    if origin is tuple:
        rows = _of((list, tuple), value, what, "a list")
        return tuple(typed(arguments[0], part, f"{what}[{i}]", nan=nan) for i, part in enumerate(rows))
    if origin is dict:
        items = _of(dict, value, what, "a mapping").items()
        return {name: typed(arguments[1], part, f"{what}.{name}", nan=nan) for name, part in items}
    if dataclasses.is_dataclass(kind):
        required = [f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
        return _made(kind, required, value, what, nan=nan)
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _made(kind, list(kind._fields), value, what, nan=nan)
    if isinstance(kind, type) and issubclass(kind, Enum):
        if value not in [member.value for member in kind]:
            raise ValueError(f"{what} must be one of {', '.join(str(m.value) for m in kind)}, got {_short(value)}")
        return kind(value)
    return _plain(kind, value, what, nan=nan)


def _made(kind: Any, required: list[str], value: Any, what: str, *, nan: bool) -> Any:
    given, hints = _of(dict, value, what, "a mapping"), get_type_hints(kind)
    unknown = [name for name in given if name not in hints]
    missing = [name for name in required if name not in given]
    if unknown or missing:
        raise ValueError(f"{what} has no {missing[0]!r}" if missing else f"{what} has an unknown {_short(unknown[0])}")
    return kind(**{name: typed(hints[name], part, f"{what}.{name}", nan=nan) for name, part in given.items()})


def _plain(kind: Any, value: Any, what: str, *, nan: bool) -> Any:
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(value, float) and math.isnan(value) and not nan:
            raise ValueError(f"{what} must be a number, got NaN")
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER**2:
            raise ValueError(f"{what} is too large")
        return float(value)
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    if type(value) is not kind or kind not in names:
        raise ValueError(f"{what} must be {names.get(kind, kind)}, got {_short(value)}")
    if kind is int and abs(value) > LARGEST_INTEGER:
        raise ValueError(f"{what} is too large")
    return value


def _of(kind: Any, value: Any, what: str, words: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{what} must be {words}, got {_short(value)}")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
