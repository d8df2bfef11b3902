"""Figure 5 of the paper: seconds per episode as data grows, GP against BNN. `python benchmarks/scaling.py [gp bnn]`

Six instances of grid (both classes at β = 0.10, 0.165 and 0.23), 50 episodes each, one instance after the other, as a
model-free learner lived them. Each episode is predicted; after every tenth the model is updated on all data so far: the
GP by 8 steps of Adam on its evidence (latents and hyper-parameters together), the BNN by 500 rounds (one step on W,
one on the latents). The GP stops after 20 minutes or 8 GB. Held-out error: three more episodes of every instance met so
far, mean length of the error vector.
"""

import json
import resource
import sys
import time
from typing import Any

import equinox as eqx
import jax
import numpy as np
from common import PAPER_SIZED, RESULTS, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import hipmdp
from hipmdp.dynamics import fit
from hipmdp.dynamics.gp import fit_gp, predict_gp
from hipmdp.dynamics.model import new_dynamics
from hipmdp.dynamics.network import Gaussian
from hipmdp.dynamics.pretrain import instance_rows
from hipmdp.dynamics.quality import quality
from hipmdp.dynamics.scaling import scaling_of, state_changes
from hipmdp.families.drawing import BLUE, FAINT, ORANGE

EPISODES, EXTRA, EVERY, LIMIT_SECONDS, LIMIT_GB = 50, 3, 10, 1200, 8
INSTANCES = [(c, beta) for beta in (0.10, 0.165, 0.23) for c in (0, 1)]


def logs() -> list[hipmdp.Transitions]:
    result = []
    for number, (c, beta) in enumerate(INSTANCES):
        family = hipmdp.make("grid", beta=beta)
        log = hipmdp.collect(family, [{"theta": c}], episodes=EPISODES + EXTRA, seed=number, quiet=True)
        result.append(log.renumbered(number))
    return result


class BNN:
    """The network, warm-started at every update, with a latent for each of the six instances from the start."""

    def __init__(self, first: hipmdp.Transitions, capacity: int) -> None:
        config = hipmdp.DynamicsConfig(**PAPER_SIZED["grid"])
        self.dynamics = new_dynamics(
            config, first.specification, scaling_of(first), len(INSTANCES), key=jax.random.key(0)
        )
        self.capacity = capacity
        unit = self.dynamics.latents[0] * 0
        self.prior = Gaussian(unit, unit + 1)

    def update(self, seen: hipmdp.Transitions) -> None:
        rows = self.dynamics.rows(seen, instance_rows(seen, list(range(len(INSTANCES)))))
        state = fit.init(self.dynamics, rows, jax.random.key(len(seen)), self.capacity)
        rate = self.dynamics.config.learning_rate
        schedule = fit.Schedule(rate, self.dynamics.config.latent_learning_rate, 500)
        state = fit.run_rounds(self.dynamics, self.dynamics.config, self.prior, schedule, state, 500)
        self.dynamics = fit.fitted(self.dynamics, jax.block_until_ready(state))

    def error(self, log: hipmdp.Transitions) -> float:
        return quality(self.dynamics, log, self.dynamics.latents[log.instances[0]]).l2


class GP:
    """The exact GP, warm-started at every update."""

    def __init__(self) -> None:
        self.model: Any = None

    def update(self, seen: hipmdp.Transitions) -> None:
        self.model = jax.block_until_ready(fit_gp(seen, steps=8, learning_rate=0.1, start=self.model))

    def error(self, log: hipmdp.Transitions) -> float:
        if self.model is None or log.instances[0] not in self.model.instances:
            return float("nan")
        latent = self.model.hyper.latents[self.model.instances.index(log.instances[0])]
        difference = np.asarray(predict_gp(self.model, log, latent).mean) - state_changes(log)
        return float(np.linalg.norm(difference / np.asarray(self.model.scaling.change_scale), axis=1).mean())


def measure(name: str, data: list[hipmdp.Transitions]) -> dict[str, Any]:
    total = sum(len(log) for log in data)
    model: BNN | GP = GP() if name == "gp" else BNN(data[0], 1 << (total - 1).bit_length())
    if isinstance(model, BNN):
        # Compile before the clock runs: what is asked is how the cost grows.
        warm = eqx.tree_at(lambda d: d.latents, model.dynamics, model.dynamics.latents)
        model.update(data[0].select(data[0].episode == 0))
        model.dynamics = warm
    rows: list[dict[str, Any]] = []
    seen, begin, stopped = None, time.perf_counter(), ""
    for number, log in enumerate(data):
        for episode in range(EPISODES):
            start = time.perf_counter()
            lived = log.select(log.episode == episode)
            model.error(lived)
            seen = lived if seen is None else seen.extended(lived)
            updated = (episode + 1) % EVERY == 0
            # Do not begin what cannot end in time: the next update costs (ratio of rows)³ times the last.
            last = next((r for r in reversed(rows) if r["updated"]), None)
            forecast = 0 if last is None else last["seconds"] * (len(seen) / last["rows"]) ** 3
            if name == "gp" and updated and time.perf_counter() - begin + forecast > LIMIT_SECONDS:
                return {"model": name, "stopped_by": "time", **growth(rows), "rows": rows}
            if updated:
                model.update(seen)
            row: dict[str, Any] = {"episode": number * EPISODES + episode, "rows": len(seen), "updated": updated}
            row["seconds"] = time.perf_counter() - start
            if updated:
                tests = [d.select(d.episode >= EPISODES) for d in data[: number + 1]]
                row["held_out_error"] = float(np.mean([model.error(test) for test in tests]))
                gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                row["peak_gb"] = round(gigabytes, 2)
                print(name, {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
                if name == "gp" and (time.perf_counter() - begin > LIMIT_SECONDS or gigabytes > LIMIT_GB):
                    stopped = "time" if gigabytes <= LIMIT_GB else "memory"
            rows.append(row)
            if stopped:
                return {"model": name, "stopped_by": stopped, **growth(rows), "rows": rows}
    return {"model": name, "stopped_by": "end", **growth(rows), "rows": rows}


def growth(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Slope of log seconds against log rows over the later half of the updates."""
    updates = [r for r in rows if r["updated"]]
    half = updates[len(updates) // 2 :]
    slope = np.polyfit(np.log([r["rows"] for r in half]), np.log([r["seconds"] for r in half]), 1)[0]
    return {"exponent": float(slope), "seconds_all": float(sum(r["seconds"] for r in rows))}


def draw(results: list[dict[str, Any]]) -> None:
    figure = Figure(figsize=(4.6, 3.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for result, colour in zip(results, (BLUE, ORANGE), strict=False):
        updates = [r for r in result["rows"] if r["updated"]]
        label = f"{result['model'].upper()} (exponent {result['exponent']:.1f})"
        axes.plot(
            [r["episode"] for r in updates], [r["seconds"] for r in updates], "o-", color=colour, ms=3, label=label
        )
    axes.set(xlabel="episode", ylabel="seconds, episodes with an update", yscale="log")
    axes.grid(color=FAINT, lw=0.4, alpha=0.6)
    axes.legend(fontsize=8, frameon=False)
    figure.savefig(RESULTS / "scaling.png")


if __name__ == "__main__":
    data = logs()
    path = RESULTS / "scaling.json"
    stored = {r["model"]: r for r in json.loads(path.read_text())["rows"]} if path.exists() else {}
    for name in sys.argv[1:] or ["bnn", "gp"]:
        stored[name] = measure(name, data)
    results = [stored[name] for name in sorted(stored)]
    for result in results:
        updates = [r for r in result["rows"] if r["updated"]]
        print(
            f"{result['model']}: {len(result['rows'])} episodes in {result['seconds_all']:.0f} s "
            f"(ended by {result['stopped_by']}), "
            f"updates {updates[0]['seconds']:.2f} → {updates[-1]['seconds']:.2f} s, exponent {result['exponent']:.2f}, "
            f"held-out error {updates[-1]['held_out_error']:.3f}"
        )
    draw(results)
    save("scaling", "python benchmarks/scaling.py", results)
