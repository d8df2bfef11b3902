"""What the player must know of a family to draw it, by the kind of picture that its cells name."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.families.acrobot import TIME_STEP
from hipmdp.families.drawing import CLASS_COLOURS, DRUG_BANDS, GREEN, MARKERS
from hipmdp.families.grid import Grid
from hipmdp.families.hiv import HEALTHY_E
from hipmdp.families.hiv_equations import DAYS_PER_STEP
from hipmdp.families.navigation import BOUND, START_HIGH, START_LOW, STEP_SIZE, WIND_ORIGIN
from hipmdp.families.specification import FamilyFacts
from hipmdp.report.pictures import CHART, picture_kind
from hipmdp.study.cells.record import CellRecord

ARROWS = 10
"""Arrows of wind along one side of the map."""


def scene(record: CellRecord) -> dict[str, Any]:
    """How the family of a cell is drawn: its `kind`, its names, and what that kind needs."""
    facts = record.family_facts
    kind = picture_kind(record)
    names: dict[str, Any] = {
        "kind": kind,
        "states": facts.states,
        "actions": facts.actions,
        "parameters": list(record.theta),
        "meanings": {parameter.name: parameter.meaning for parameter in facts.parameters if parameter.meaning},
    }
    return names | SCENES[kind](facts)


def _chart(facts: FamilyFacts) -> dict[str, Any]:
    return {}


def _acrobot(facts: FamilyFacts) -> dict[str, Any]:
    return {"seconds": TIME_STEP}


def _grid(facts: FamilyFacts) -> dict[str, Any]:
    family = Grid(**facts.options)
    points = jnp.asarray(_points(), jnp.float32)
    classes = []
    for label, colour in enumerate(CLASS_COLOURS):
        theta = family.theta({"theta": float(label)})
        blown = np.asarray(jax.vmap(lambda s, t=theta: family.wind_at(s, t))(points))
        wind = np.concatenate([np.asarray(points), blown], axis=1)
        wall = [[0, 0], [0, BOUND]] if label else [[0, 0], [BOUND, 0]]
        caption = f"class {label}, wind blows {'South' if label else 'West'}"
        classes.append({"caption": caption, "colour": colour, "wall": wall, "wind": wind})
    return _map() | {"classes": classes}


def _compass(facts: FamilyFacts) -> dict[str, Any]:
    return _map() | {"step": STEP_SIZE, "origin": WIND_ORIGIN, "colours": CLASS_COLOURS, "points": _points()}


def _map() -> dict[str, Any]:
    """What the maps of navigation families share."""
    return {"bound": BOUND, "start": [START_LOW, START_HIGH], "goal": GREEN}


def _points() -> np.ndarray:
    """Where arrows show the wind."""
    ticks = np.linspace(-0.9 * BOUND, 0.9 * BOUND, ARROWS)
    return np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)


def _hiv(facts: FamilyFacts) -> dict[str, Any]:
    return {
        "days": DAYS_PER_STEP,
        "last_day": facts.horizon * DAYS_PER_STEP,
        "healthy": float(np.log10(HEALTHY_E)),
        "healthy_colour": GREEN,
        "markers": [{"name": name, "colour": colour} for name, colour in MARKERS],
        # Both drugs together (3) are a bar in either row.
        "treatments": [
            {"name": DRUG_BANDS[action][0], "colour": DRUG_BANDS[action][1], "actions": [action, 3]}
            for action in (1, 2)
        ],
    }


SCENES: dict[str, Callable[[FamilyFacts], dict[str, Any]]] = {
    "grid": _grid,
    "compass": _compass,
    "acrobot": _acrobot,
    "hiv": _hiv,
    CHART: _chart,
}
"""By the kind of picture: the constants that it needs."""
