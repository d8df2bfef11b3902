"""Draw the pictures of the user pages: `python docs/draw_pictures.py [NAME …]` writes docs/pictures/NAME.png.

Everything is computed from the models that come with the package; `fleet` trains one, which takes a minute.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import hipmdp
from hipmdp.families.drawing import BLUE, FAINT, GREEN, INK, ORANGE, RED, draw_grid, draw_hiv, hiv_handles
from hipmdp.report.style import COLUMN, FONTS, new_figure, tidy

PICTURES = Path(__file__).with_name("pictures")
FORCES = {"left": -1.0, "none": 0.0, "right": 1.0}


def controlled_path(policy: Callable[[np.ndarray], int], theta: dict[str, float], seed: int) -> np.ndarray:
    """States of one greedy episode of the grid robot θ."""
    env = gymnasium.make("hipmdp/Grid-v0", theta=theta)
    state, _ = env.reset(seed=seed)
    path, over = [state], False
    while not over:
        state, _, terminated, truncated, _ = env.step(policy(state))
        path.append(state)
        over = terminated or truncated
    return np.asarray(path)


def two_robots() -> Figure:
    """The same model, two robots: each with the policy of its own latent, and one with the policy of the other."""
    family, model = hipmdp.make("grid"), hipmdp.load("grid")
    runs = [hipmdp.learn_policy(model, family, {"theta": kind}, episodes=1, quiet=True) for kind in (0, 1)]
    figure = new_figure(3 * COLUMN, 3.7)
    panels = [
        (0, 0, "robot 0 with the policy for robot 0"),
        (1, 1, "robot 1 with the policy for robot 1"),
        (1, 0, "robot 1 with the policy for robot 0"),
    ]
    for axes, (kind, owner, title) in zip(figure.subplots(1, 3), panels, strict=True):
        theta = {"theta": float(kind)}
        draw_grid(axes, family, family.theta(theta), controlled_path(runs[owner].policy, theta, seed=1))
        axes.set_title(title, fontsize=9, color=INK if kind == owner else RED)
    return figure


def identification() -> Figure:
    """How the latent of an unknown robot is found from its first transitions, and what knowing it is worth."""
    family, model = hipmdp.make("grid"), hipmdp.load("grid")
    batch = hipmdp.collect(family, instances=["test:0", "test:1"], episodes=2, seed=3, quiet=True)
    figure = new_figure(2 * COLUMN, 2.6)
    left, right = figure.subplots(1, 2)
    known = np.asarray(model.dynamics.latents)
    x, y = np.argsort(-np.ptp(known, axis=0))[:2]
    left.scatter(known[:, x], known[:, y], s=120, facecolors="none", edgecolors=[RED, BLUE], linewidths=1.6)
    for i, instance in enumerate(batch.instances):
        own = batch.of_instance(instance)
        rows = np.flatnonzero(own.episode == own.episode[0])
        w = np.asarray(hipmdp.infer_latent(model, own.select(rows[:10])).value)
        left.scatter(w[x], w[y], marker="x", s=40, color=(RED, BLUE)[i])
        _errors(right, model, own, rows, (RED, BLUE)[i], f"robot {i}")
    left.set(xlabel=f"latent dimension {x}", ylabel=f"latent dimension {y}")
    left.set_title(
        "circles: latents of the training robots\ncrosses: w_b of a new robot after 10 transitions", fontsize=8
    )
    left.margins(0.3)
    right.set(
        xlabel="transitions of its first episode that were used", ylabel="error on its second episode", ylim=(0, None)
    )
    right.set_title("RMSE per dimension; 1: predicting the mean change", fontsize=8)
    right.legend(frameon=False)
    for axes in (left, right):
        tidy(axes)
    return figure


def _errors(
    axes: Axes, model: "hipmdp.Model", own: "hipmdp.Transitions", rows: np.ndarray, colour: str, label: str
) -> None:
    """Error on the second episode with the w_b inferred from the first n transitions; n = 0: the mean latent."""
    second = own.select(own.episode != own.episode[0])
    counts = [0, 1, 2, 5, 10, 20]
    latents = [
        hipmdp.infer_latent(model, own.select(rows[:n])).value if n else model.dynamics.latent_prior.mean
        for n in counts
    ]
    axes.plot(counts, [model.quality(second, w).error for w in latents], "-o", color=colour, ms=4, label=label)


def patient() -> Figure:
    """The first episode of a patient whom the shipped model has never seen."""
    family, model = hipmdp.make("hiv"), hipmdp.load("hiv")
    run = hipmdp.learn_policy(model, family, "test:3", episodes=1, method="amortised", quiet=True)
    states = np.concatenate([run.transitions.state, run.transitions.next_state[-1:]])
    figure = new_figure(2 * COLUMN, 3.0)
    axes = figure.add_subplot()
    draw_hiv(axes, states, run.transitions.action, family.specification.horizon, legend=False)
    figure.legend(handles=hiv_handles(axes), loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    axes.set_title("test:3, the first episode, controlled by the shipped model", fontsize=8.5)
    return figure


def limits() -> Figure:
    """One patient with and without a limit on the virus, and what was predicted of every decision."""
    family, model, limit = hipmdp.make("hiv"), hipmdp.load("hiv"), 5.0
    figure = new_figure(2 * COLUMN, 4.0)
    top, bottom = figure.subplots(2, 1, sharex=True)
    days = 5.0 * np.arange(1, family.specification.horizon + 1)
    virus = family.specification.state_names.index("log10_V")
    for colour, label, given in ((FAINT, "free", ()), (BLUE, "within the limit", (f"log10_V<={limit:g}",))):
        options = {"episodes": 1, "method": "amortised", "limits": given, "quiet": True}
        run = hipmdp.learn_policy(model, family, "validation:6", **options)
        shown = INK if colour == FAINT else colour
        top.plot(days, run.transitions.next_state[:, virus], color=shown, lw=1.3, label=label)
        if given:
            for action, name in enumerate(family.specification.action_names):
                chances = run.trace[0]["chances"][:, action]
                bottom.plot(days, chances, ".", ms=3, color=(RED, GREEN, ORANGE, BLUE)[action], label=name)
    top.axhspan(limit, top.get_ylim()[1], color=FAINT, alpha=0.5, lw=0)
    top.set(ylabel="log10 virus per ml")
    bottom.axhline(0.05, color=INK, lw=0.8, ls="--")
    bottom.set(xlabel="days", ylabel="chance of breaking\nthe limit in 50 days")
    for axes in (top, bottom):
        axes.legend(frameon=False, fontsize=7, loc="upper right")
        tidy(axes)
    return figure


def fleet() -> Figure:
    """What the model of the 40 carts predicts for the 41st, for each action."""
    with tempfile.TemporaryDirectory() as directory:
        logs, new = Path(directory) / "fleet.parquet", Path(directory) / "new.parquet"
        write_logs(logs, [f"cart{i:02d}" for i in range(40)], seed=0)
        write_logs(new, ["cart40"], seed=9)
        columns = hipmdp.LogColumns(state=("x", "v"), action="push", instance="machine", episode="run", time="t")
        model = hipmdp.pretrain(hipmdp.read_logs(logs, columns), quiet=True)
        log = hipmdp.read_logs(new, columns, like=model.specification)
    futures = hipmdp.forecast(model, hipmdp.identify(model, log), log.next_state[-1], steps=20)
    figure = new_figure(2 * COLUMN, 2.5)
    for axes, dimension, name in zip(figure.subplots(1, 2), (0, 1), ("position x", "speed v"), strict=True):
        for action, colour in enumerate((BLUE, FAINT, ORANGE)):
            label = model.specification.action_names[action]
            mean, low, high = (part[action, :, dimension] for part in futures)
            axes.fill_between(np.arange(21), low, high, color=colour, alpha=0.3, lw=0)
            axes.plot(mean, color=INK if colour == FAINT else colour, label=label, lw=1.3)
        axes.set(xlabel="steps from now", ylabel=name)
        tidy(axes)
    axes.legend(frameon=False, title="action held")
    return figure


def write_logs(path: Path, machines: list[str], seed: int) -> None:
    """The logs of docs/your-logs.md."""
    generator = np.random.default_rng(seed)
    rows = []
    for machine in machines:
        mass, friction = generator.uniform(0.5, 2.0), generator.uniform(0.1, 1.0)
        for run in range(4):
            x, v = generator.uniform(-1, 1), 0.0
            for i in range(51):
                push = str(generator.choice(["left", "none", "right"]))
                row = {"machine": machine, "run": run, "t": 0.2 * i, "x": x, "v": v, "push": push, "gain": -(x**2)}
                rows.append(row)
                v += 0.2 * (FORCES[push] - friction * v) / mass
                x += 0.2 * v
    pq.write_table(pa.Table.from_pylist(rows), path)


def poles() -> Figure:
    """Three poles, the same pushes."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from cartpole import make

    figure = new_figure(2 * COLUMN, 2.4)
    axes = figure.add_subplot()
    pushes = [1, 0, 0, 1, 1, 0, 1, 0] * 4
    for (length, mass), colour in zip(((0.25, 0.05), (0.5, 0.1), (1.0, 0.5)), (ORANGE, GREEN, BLUE), strict=True):
        env = make({"length": length, "masspole": mass})
        state, _ = env.reset(seed=0)
        angles = [state[2]]
        for push in pushes:
            state, _, fallen, _, _ = env.step(push)
            angles.append(state[2])
            if fallen:
                break
        axes.plot(np.degrees(angles), color=colour, lw=1.4, label=f"length {length}, mass {mass}")
    axes.axhspan(12, 20, color=FAINT, alpha=0.5, lw=0)
    axes.axhspan(-20, -12, color=FAINT, alpha=0.5, lw=0)
    axes.set(xlabel="step", ylabel="angle of the pole (degrees)", ylim=(-20, 20), xlim=(0, len(pushes)))
    axes.legend(frameon=False, loc="upper right")
    tidy(axes)
    return figure


DRAWN = {
    "two-robots": two_robots,
    "identification": identification,
    "patient": patient,
    "limits": limits,
    "fleet": fleet,
    "poles": poles,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or DRAWN:
        with rc_context(FONTS):
            DRAWN[name]().savefig(PICTURES / f"{name}.png", dpi=130)
