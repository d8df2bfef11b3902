"""Pictures of the built-in families: one function per family that draws into Matplotlib axes."""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from hipmdp.families.acrobot import AcrobotTheta
from hipmdp.families.compass import Compass, CompassTheta
from hipmdp.families.grid import Grid, GridTheta
from hipmdp.families.hiv import HEALTHY_E
from hipmdp.families.hiv_equations import DAYS_PER_STEP
from hipmdp.families.navigation import BOUND, START_HIGH, START_LOW, AbstractNavigation

# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442",
)  # fmt: skip
INK, FAINT = "#333333", "#BBBBBB"
CLASS_COLOURS = (RED, BLUE)
ARROW_START = (1.0, -1.2)
"""Where the arrow begins that shows where the action N leads."""
MARKERS = (
    ("T1 healthy T cells", BLUE),
    ("T2 healthy macrophages", SKY),
    ("T1* infected T cells", RED),
    ("T2* infected macrophages", ORANGE),
    ("V virus", PURPLE),
    ("E immune response", GREEN),
)
DRUG_BANDS = {1: ("RTI", SKY), 2: ("PI", YELLOW), 3: ("RTI + PI", GREEN)}


def draw_grid(axes: Axes, family: Grid, theta: GridTheta, path: np.ndarray | None = None) -> None:
    """The map of one class, and the path walked so far."""
    label = int(theta.theta)
    axes.set_title(f"class {label}, wind blows {'South' if label else 'West'}", fontsize=10)
    _draw_map(axes, family, theta, path, CLASS_COLOURS[label])


def draw_compass(axes: Axes, theta: CompassTheta, path: np.ndarray | None = None) -> None:
    """The map of one member, where its action N leads, and the path walked so far."""
    axes.set_title(f"actions turned by {math.degrees(float(theta.angle)):.0f}°", fontsize=10)
    _draw_map(axes, Compass(), theta, path, CLASS_COLOURS[int(theta.wall)])
    north = float(theta.angle) + math.pi / 2
    (x, y), (dx, dy) = ARROW_START, (math.cos(north), math.sin(north))
    axes.annotate("", (x + 0.35 * dx, y + 0.35 * dy), (x, y), arrowprops={"arrowstyle": "->", "color": INK})
    axes.text(x + 0.45 * dx, y + 0.45 * dy, "N", ha="center", va="center", fontsize=9, color=INK)


def _draw_map(
    axes: Axes, family: AbstractNavigation, theta: GridTheta | CompassTheta, path: np.ndarray | None, colour: str
) -> None:
    """Goal, start, wall, wind as arrows that grow with its strength, and the path walked so far."""
    axes.set(xlim=(-BOUND, BOUND), ylim=(-BOUND, BOUND), xlabel="x", ylabel="y")
    axes.set_aspect("equal")
    axes.add_patch(Rectangle((0, 0), BOUND, BOUND, color=GREEN, alpha=0.18, lw=0))
    axes.text(1, 1, "goal", ha="center", va="center", color=GREEN, fontsize=12)
    size = START_HIGH - START_LOW
    axes.add_patch(Rectangle((START_LOW, START_LOW), size, size, color=FAINT, alpha=0.6, lw=0))
    axes.text((START_LOW + START_HIGH) / 2, START_LOW - 0.14, "start", ha="center", fontsize=9, color=INK)

    ticks = np.linspace(-1.8, 1.8, 10)
    points = jnp.asarray(np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2), jnp.float32)
    wind = jax.vmap(lambda s: family.wind_at(s, theta))(points)
    axes.quiver(
        points[:, 0], points[:, 1], wind[:, 0], wind[:, 1], color=FAINT, angles="xy", scale_units="xy", scale=1,
        width=0.004, zorder=1,
    )  # fmt: skip
    below = bool(family.wall_is_below(theta))
    wall = ([0, BOUND], [0, 0]) if below else ([0, 0], [0, BOUND])
    axes.plot(*wall, color=INK, lw=5, solid_capstyle="butt", zorder=2)
    axes.annotate("wall", (1.55, 0.08) if below else (0.06, 1.75), fontsize=9, color=INK)
    if path is not None and len(path):
        axes.plot(path[:, 0], path[:, 1], "-o", color=colour, ms=2.5, lw=1.2, alpha=0.8, zorder=3)
        axes.plot(path[-1, 0], path[-1, 1], "o", color=colour, ms=9, mec="white", zorder=4)


def draw_acrobot(
    axes: Axes, theta: AcrobotTheta, states: np.ndarray, torque: int | None = None, trail: int = 40
) -> None:
    """The pendulum in its last state, its goal line, and the trail of its foot; thickness shows the masses."""
    l1, l2, m1, m2 = (float(v) for v in theta)
    reach = (l1 + l2) * 1.12
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
    axes.set_aspect("equal")
    axes.set_title(f"l1={l1:.2f}  l2={l2:.2f}  m1={m1:.2f}  m2={m2:.2f}", fontsize=10)
    axes.axhline(l1, color=GREEN, lw=1.6, ls="--")
    axes.text(-reach * 0.97, l1 + 0.04, "goal line", color=GREEN, fontsize=9)
    angle1, angle12 = states[:, 0], states[:, 0] + states[:, 1]
    elbow = np.stack([l1 * np.sin(angle1), -l1 * np.cos(angle1)], axis=-1)
    foot = elbow + np.stack([l2 * np.sin(angle12), -l2 * np.cos(angle12)], axis=-1)
    recent = foot[-trail:]
    for i in range(1, len(recent)):
        axes.plot(*recent[i - 1 : i + 1].T, color=ORANGE, lw=1.5, alpha=0.75 * i / len(recent))
    x, y = elbow[-1]
    axes.plot([0, x], [0, y], color=BLUE, lw=5 * math.sqrt(m1) + 1, solid_capstyle="round")
    axes.plot([x, foot[-1, 0]], [y, foot[-1, 1]], color=SKY, lw=5 * math.sqrt(m2) + 1, solid_capstyle="round")
    axes.plot([0, x], [0, y], "o", color=INK, ms=6)
    axes.plot(*foot[-1], "o", color=ORANGE, ms=8)
    if torque:
        turn = "↺" if torque > 0 else "↻"
        axes.text(x + 0.08, y + 0.08, turn, fontsize=18, color=RED, ha="left")


def hiv_handles(axes: Axes) -> list[Any]:
    """What a legend of `draw_hiv` must explain: the markers and the bands."""
    bands: list[Any] = [Patch(color=c, alpha=0.35, label=name) for name, c in DRUG_BANDS.values()]
    return axes.get_legend_handles_labels()[0] + bands


def draw_hiv(axes: Axes, states: np.ndarray, actions: np.ndarray, horizon: int, legend: bool = True) -> None:
    """The six markers over days on a log axis; coloured bands show which drugs were given."""
    days = np.arange(len(states)) * DAYS_PER_STEP
    edges = [*np.flatnonzero(np.diff(actions, prepend=-1)), len(actions)]
    for start, end in itertools.pairwise(edges):
        if int(actions[start]) in DRUG_BANDS:
            colour = DRUG_BANDS[int(actions[start])][1]
            axes.axvspan(start * DAYS_PER_STEP, end * DAYS_PER_STEP, color=colour, alpha=0.22, lw=0)
    for column, (label, colour) in enumerate(MARKERS):
        axes.plot(days, 10.0 ** states[:, column], color=colour, lw=1.8, label=label)
    axes.axhline(HEALTHY_E, color=GREEN, lw=0.8, ls=":")
    axes.set_yscale("log")
    low = 10.0 ** min(-1.0, math.floor(float(states.min())))
    axes.set(xlim=(0, horizon * DAYS_PER_STEP), ylim=(low, 1e7), xlabel="day", ylabel="per ml")
    if legend:
        axes.legend(
            handles=hiv_handles(axes),
            fontsize=7.5,
            ncols=3,
            loc="upper center",
            bbox_to_anchor=(0.5, 1.2),
            frameon=False,
        )
