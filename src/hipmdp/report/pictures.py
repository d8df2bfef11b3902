"""Which kind of picture shows a cell: the one that it names, if that is known and the cell's numbers fit it."""

from hipmdp.families.acrobot import AcrobotTheta
from hipmdp.families.compass import CompassTheta
from hipmdp.families.grid import GridTheta
from hipmdp.families.hiv_equations import HIVTheta
from hipmdp.study.cells.record import CellRecord

KINDS: dict[str, tuple[int, tuple[str, ...], tuple[str, ...]]] = {
    "grid": (2, GridTheta._fields, ("beta",)),
    "compass": (2, CompassTheta._fields, ()),
    "acrobot": (4, AcrobotTheta._fields, ()),
    "hiv": (6, HIVTheta._fields, ()),
}
"""By kind: dimensions of the state, parameters and options that the drawing needs."""
CHART = "chart"
"""The kind that shows any numbers."""


def picture_kind(record: CellRecord) -> str:
    """The kind of picture of a cell; `chart` where nothing else fits."""
    facts = record.family_facts
    if facts.picture not in KINDS:
        return CHART
    size, parameters, options = KINDS[facts.picture]
    fits = len(facts.states) == size and tuple(record.theta) == parameters and tuple(facts.options) == options
    return facts.picture if fits else CHART
