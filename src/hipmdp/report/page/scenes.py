"""What the player must know of a family to draw it: constants and names that are not in its results."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.families.acrobot import TIME_STEP, Acrobot
from hipmdp.families.drawing import CLASS_COLOURS, DRUG_BANDS, GREEN, MARKERS
from hipmdp.families.family import AbstractFamily
from hipmdp.families.grid import BOUND, START_HIGH, START_LOW, Grid
from hipmdp.families.hiv import HEALTHY_E, HIV
from hipmdp.families.hiv_equations import DAYS_PER_STEP
from hipmdp.report.measured import PARAMETERS
from hipmdp.study.record import Record
from hipmdp.study.results import Results

ARROWS = 10
"""Arrows of wind along one side of the map."""


def scene(results: Results, record: Record) -> dict[str, Any]:
    """How the family of a cell is drawn: its `kind`, its names, and what that kind needs."""
    try:
        family: AbstractFamily | None = results.family(record)
    except (ValueError, KeyError, TypeError):
        # Somebody's own family, which this process does not have: the numbers can still be shown.
        family = None
    names = _names(family, record)
    if isinstance(family, Grid):
        return names | _grid(family)
    if isinstance(family, Acrobot):
        return names | {"kind": "acrobot", "seconds": TIME_STEP}
    if isinstance(family, HIV):
        return names | _hiv(family)
    return names | {"kind": "chart"}


def _names(family: AbstractFamily | None, record: Record) -> dict[str, Any]:
    """State, action and parameter names; without the family: numbers."""
    size = record.states.shape[-1] if record.states.ndim == 2 else 1
    if family is not None and family.specification.state_size == size:
        specification = family.specification
        states, actions = list(specification.state_names), list(specification.action_names)
    else:
        states = [f"state {i + 1}" for i in range(size)]
        actions = [str(i) for i in range(int(record.actions.max(initial=0)) + 1)]
    meanings = {name: told[1] for name, told in PARAMETERS.items()} if isinstance(family, HIV) else {}
    return {
        "states": states,
        "actions": actions,
        "parameters": list(record.about.get("theta") or {}),
        "meanings": meanings,
    }


def _grid(family: Grid) -> dict[str, Any]:
    ticks = np.linspace(-0.9 * BOUND, 0.9 * BOUND, ARROWS)
    points = jnp.asarray(np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2), jnp.float32)
    classes = []
    for label, colour in enumerate(CLASS_COLOURS):
        theta = family.theta({"theta": float(label)})
        west, east = (
            np.asarray(jax.vmap(lambda s, a=a, t=theta: family.displacement(s, jnp.asarray(a), t))(points))
            for a in (0, 2)
        )
        # The wind is what opposite actions have in common.
        wind = np.concatenate([np.asarray(points), (west + east) / 2], axis=1)
        wall = [[0, 0], [0, BOUND]] if label else [[0, 0], [BOUND, 0]]
        told = f"class {label}, wind blows {'South' if label else 'West'}"
        classes.append({"told": told, "colour": colour, "wall": wall, "wind": wind})
    return {"kind": "grid", "bound": BOUND, "start": [START_LOW, START_HIGH], "goal": GREEN, "classes": classes}


def _hiv(family: HIV) -> dict[str, Any]:
    return {
        "kind": "hiv",
        "days": DAYS_PER_STEP,
        "last_day": family.horizon * DAYS_PER_STEP,
        "healthy": float(np.log10(HEALTHY_E)),
        "healthy_colour": GREEN,
        "markers": [{"name": name, "colour": colour} for name, colour in MARKERS],
        # Both drugs together (3) are a bar in either row.
        "treatments": [
            {"name": DRUG_BANDS[action][0], "colour": DRUG_BANDS[action][1], "actions": [action, 3]}
            for action in (1, 2)
        ],
    }
