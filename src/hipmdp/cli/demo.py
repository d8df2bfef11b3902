"""`hipmdp demo`: a random and a scripted policy on members of each family, as a table and a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from hipmdp.data.files import output_directory, whole_file
from hipmdp.families import FAMILIES, make
from hipmdp.families.acrobot import Acrobot, foot_height
from hipmdp.families.drawing import BLUE, FAINT, GREEN, INK, draw_grid, draw_hiv
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.hiv import HIV
from hipmdp.families.instance_sets import Instance
from hipmdp.families.rollout import Episode, mean_return, rollouts, success_rate
from hipmdp.families.scripted import SCRIPTED, Schedule, constant_policy, random_policy

EPISODES = 100


@dataclass(frozen=True)
class _Row:
    family: AbstractFamily
    label: str
    theta: Theta
    random: Episode
    scripted: Episode


def demo(out: Path = Path("demo"), seed: int = 0) -> None:
    """Roll a random and a scripted policy through members of each family; print a table, write a picture.

    Example: hipmdp demo --out demo

    Args:
        out: Directory for demo.png.
        seed: Seed of the drawn members and the episodes.
    """
    directory = output_directory(out)
    rows = [row for name in FAMILIES for row in _run(make(name), seed)]
    Console().print(_table(rows))
    with whole_file(directory / "demo.png") as path:
        figure = _picture(rows)
        FigureCanvasAgg(figure)
        figure.savefig(path)
    Console().print(f"The same rule on different members: {directory / 'demo.png'}")


def _members(family: AbstractFamily, seed: int) -> list[tuple[str, Theta]]:
    if family.name == "grid":
        return [(f"class {c}", family.theta({"theta": c})) for c in (0, 1)]
    drawn = family.draw_instances(jax.random.key(seed), 2)
    pick = [jax.tree.map(lambda leaf, i=i: leaf[i], drawn) for i in range(2)]
    return [("baseline", family.theta()), ("drawn 1", pick[0]), ("drawn 2", pick[1])]


def _run(family: AbstractFamily, seed: int) -> list[_Row]:
    members = _members(family, seed)
    thetas = jax.tree.map(lambda *leaves: jnp.repeat(jnp.stack(leaves), EPISODES), *[theta for _, theta in members])
    keys = jax.random.split(jax.random.key(seed + 1), len(members) * EPISODES)
    runs = [rollouts(family, policy, keys, thetas) for policy in (random_policy(family), SCRIPTED[family.name][1])]

    def part(run: Episode, i: int) -> Episode:
        return Episode(*(np.asarray(leaf)[i * EPISODES : (i + 1) * EPISODES] for leaf in run))  # type: ignore[arg-type]

    return [_Row(family, label, theta, part(runs[0], i), part(runs[1], i)) for i, (label, theta) in enumerate(members)]


def _table(rows: list[_Row]) -> Table:
    table = Table(title=f"Mean undiscounted return over {EPISODES} episodes (share of episodes that succeed)")
    for column, justify in (
        ("family", "left"),
        ("member", "left"),
        ("random", "right"),
        ("scripted", "right"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    table.add_column("the scripted rule")
    for i, row in enumerate(rows):
        first = i == 0 or rows[i - 1].family.name != row.family.name
        cells = [
            f"{_short(mean_return(run))} ({success_rate(row.family, run):.0%})" for run in (row.random, row.scripted)
        ]
        rule = SCRIPTED[row.family.name][0] if first else ""
        last = i + 1 == len(rows) or rows[i + 1].family.name != row.family.name
        table.add_row(row.family.name if first else "", row.label, *cells, rule, end_section=last)
    return table


def _short(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 1e4 else f"{value:.3g}"


def _path(episode: Episode, lane: int) -> np.ndarray:
    steps = int(np.sum(episode.valid[lane]))
    return np.concatenate([episode.states[lane, :1], episode.next_states[lane, :steps]])


def _one_lane(theta: Theta) -> tuple[Any, Theta]:
    return jax.random.split(jax.random.key(0), 1), jax.tree.map(lambda leaf: leaf[None], theta)


def _follow(family: AbstractFamily, patient: Instance) -> Episode:
    """The best schedule known for a patient, replayed."""
    actions = jnp.asarray([int(a) for a in patient.source["actions"]], jnp.int32)
    return rollouts(family, Schedule(actions), *_one_lane(patient.theta))


def _picture(rows: list[_Row]) -> Figure:
    figure = Figure(figsize=(13, 8.2), dpi=110, layout="constrained")
    axes: Any = figure.subplots(2, 3)
    grid = [row for row in rows if row.family.name == "grid"]
    for ax, row in zip(axes[0, :2], grid, strict=True):
        draw_grid(ax, row.family, row.theta, _path(row.scripted, 0))  # type: ignore[arg-type]
        ax.set_title(
            f"grid, {row.label}: the rule {'succeeds' if success_rate(row.family, row.scripted) > 0.5 else 'fails'}"
        )
    acrobot = [row for row in rows if isinstance(row.family, Acrobot)]
    ax = axes[0, 2]
    for row, colour in zip(acrobot, (INK, BLUE, GREEN), strict=True):
        for run, style in ((row.random, ":"), (row.scripted, "-")):
            path = _path(run, 0)
            height = foot_height(jnp.asarray(path.T), row.theta) / row.theta.l1
            label = row.label if style == "-" else None
            ax.plot(np.arange(len(path)) * 0.2, height, style, color=colour, lw=1.3, label=label)
    ax.axhline(1, color=GREEN, ls="--", lw=1)
    ax.set(
        xlabel="seconds",
        ylabel="height of the foot / l1",
        xlim=(0, 30),
        title="acrobot: pump (solid), random (dotted)",
    )
    ax.legend(frameon=False, fontsize=8)
    hiv = next(row.family for row in rows if isinstance(row.family, HIV))
    baseline = next(row for row in rows if isinstance(row.family, HIV)).random
    patient = hiv.instances("test")[0]
    healed = _follow(hiv, patient)
    untreated = rollouts(hiv, constant_policy(0), *_one_lane(patient.theta))
    for ax, title, run in (
        (axes[1, 0], "baseline patient, random treatment", baseline),
        (axes[1, 1], f"{patient.label}, untreated", untreated),
        (axes[1, 2], f"{patient.label}, best schedule known", healed),
    ):
        run = Episode(*(np.asarray(leaf) for leaf in run))  # type: ignore[arg-type]
        middle = ax is axes[1, 1]
        draw_hiv(ax, _path(run, 0), np.asarray(run.actions[0]), hiv.horizon, legend=middle)
        ax.set_title(f"HIV, {title}", pad=44 if middle else 6)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_color(FAINT)
    return figure
