"""How figures look: one column wide, Okabe and Ito's colours, each method with a marker of its own; PNG and SVG."""

from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hipmdp._files import atomic_write
from hipmdp.families.drawing import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RED, SKY, YELLOW

COLUMN = 3.5
"""Inches: one column of a two-column page."""
METHOD_STYLES: dict[str, tuple[str, str]] = {
    "embedded": (BLUE, "o"),
    "linear": (ORANGE, "s"),
    "average": (GREEN, "^"),
    "scratch": (PURPLE, "D"),
    "model_free": (RED, "v"),
    "blind": (INK, ""),
    "amortised": (SKY, "P"),
    "refined": (YELLOW, "X"),
}
"""Colour and marker of each method."""
FONTS: Any = {
    "font.size": 8, "axes.labelsize": 8, "axes.titlesize": 8.5, "legend.fontsize": 7, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "svg.hashsalt": "hipmdp",
}  # fmt: skip


def new_figure(width: float = COLUMN, height: float = 2.5) -> Figure:
    """An empty figure."""
    figure = Figure(figsize=(width, height), dpi=200, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes) -> None:
    """A faint grid, no box."""
    axes.grid(color=FAINT, lw=0.4, alpha=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)


def style_of(method: str) -> dict[str, Any]:
    """Line settings of a method."""
    colour, marker = METHOD_STYLES.get(method, (FAINT, "."))
    line: dict[str, Any] = {"color": colour, "lw": 1.3, "label": method.replace("_", "-")}
    if method == "embedded":
        # On top of others, whose larger hollow markers still show where curves coincide.
        return line | {"marker": marker, "ms": 3, "zorder": 5}
    return line | ({"marker": marker, "ms": 5, "mfc": "white"} if marker else {"ls": "--"})


def save_figure(figure: Figure, directory: Path, name: str) -> list[Path]:
    """`name`.png and `name`.svg."""
    paths = [directory / f"{name}{suffix}" for suffix in (".png", ".svg")]
    for path in paths:
        # Without a date the same figure is the same file.
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        with atomic_write(path) as temporary, rc_context(FONTS):
            figure.savefig(temporary, metadata=metadata)
    return paths
