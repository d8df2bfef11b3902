"""Figure 5 of the paper: seconds per episode as data grows, GP against BNN.

Six instances of grid (both classes at β = 0.10, 0.165 and 0.23), 50 episodes each, one instance after the other, as a
model-free learner produced them. Each episode is predicted; after every tenth the model is updated on all data so far:
the GP by 8 steps of Adam on its evidence (latents and hyper-parameters together), the BNN by 500 rounds (one step on
W, one on the latents). The GP stops after 20 minutes or 8 GB. Held-out error: three more episodes of every instance so
far, RMSE of the standardised state difference per dimension.
"""

import time
from typing import Any

import jax
import numpy as np

from hipmdp._random import host_seed, root_key, stream
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics import fit
from hipmdp.dynamics.gp import GPDynamics, fit_gp, predict_gp
from hipmdp.dynamics.model import instance_rows, new_dynamics
from hipmdp.dynamics.network import Gaussian
from hipmdp.dynamics.quality import quality
from hipmdp.dynamics.standardise import scaling_of, state_changes
from hipmdp.families import make
from hipmdp.pretraining.collect import collect
from hipmdp.settings.dynamics import DynamicsConfig
from hipmdp.study.memory import peak_gb

EPISODES, EXTRA, EVERY, LIMIT_SECONDS, LIMIT_GB = 50, 3, 10, 1200, 8
NETWORK = DynamicsConfig(
    hidden=(25, 25, 25), rounds=16_000, largest_count=1000, rho_rate_factor=10.0, weight_draws=10, learning_rate=2e-3,
    tune_widening=1000.0, tune_rounds=3000,
)  # fmt: skip
"""The paper's size."""
INSTANCES = [(c, beta) for beta in (0.10, 0.165, 0.23) for c in (0, 1)]


def _logs(seed: int, episodes: int) -> list[Transitions]:
    result = []
    for number, (c, beta) in enumerate(INSTANCES):
        family, key = make("grid", beta=beta), stream(root_key(seed), "study/scaling", number)
        log = collect(family, [{"theta": c}], episodes + EXTRA, host_seed(key), quiet=True)
        result.append(log.renumbered(number))
    return result


class _BNN:
    """The network, warm-started at every update, with a latent for each of the six instances from the start."""

    def __init__(self, first: Transitions, capacity: int) -> None:
        model_key, fit_key = jax.random.split(stream(root_key(0), "study/scaling"))
        self.dynamics = new_dynamics(NETWORK, first.specification, scaling_of(first), len(INSTANCES), key=model_key)
        self.capacity = capacity
        self.key = fit_key

    def update(self, seen: Transitions) -> None:
        """500 rounds on all data."""
        rows = self.dynamics.rows(seen, instance_rows(seen, list(range(len(INSTANCES)))))
        self.key, fit_key = jax.random.split(self.key)
        state = fit.init(self.dynamics, rows, fit_key, self.capacity)
        config = self.dynamics.config
        schedule = fit.Schedule(config.learning_rate, config.latent_learning_rate, 500)
        prior = Gaussian.unit(config.latent_size)
        state = fit.run_rounds(self.dynamics, state, latent_prior=prior, schedule=schedule, chunk=500)
        self.dynamics = fit.fitted(self.dynamics, jax.block_until_ready(state))

    def error(self, log: Transitions) -> float:
        """RMSE on one instance's log."""
        self.key, error_key = jax.random.split(self.key)
        return quality(self.dynamics, log, self.dynamics.latents[log.instances[0]], key=error_key).error


class _GP:
    """The exact GP, warm-started at every update."""

    def __init__(self) -> None:
        self.model: GPDynamics | None = None
        self.key = stream(root_key(0), "study/scaling")

    def update(self, seen: Transitions) -> None:
        """8 steps on all data."""
        self.key, fit_key = jax.random.split(self.key)
        fitted = fit_gp(seen, key=fit_key, steps=8, learning_rate=0.1, start=self.model)
        self.model = jax.block_until_ready(fitted)

    def error(self, log: Transitions) -> float:
        """RMSE on one instance's log."""
        if self.model is None or log.instances[0] not in self.model.instances:
            return float("nan")
        latent = self.model.hyper.latents[self.model.instances.index(log.instances[0])]
        difference = np.asarray(predict_gp(self.model, log, latent).mean) - state_changes(log)
        return float(np.sqrt(np.mean((difference / np.asarray(self.model.scaling.change_scale)) ** 2)))


def measure_scaling(name: str, seed: int = 0, episodes: int = EPISODES) -> dict[str, Any]:
    """The rows of one model ("bnn" or "gp"), and how fast its updates grow."""
    data = _logs(seed, episodes)
    total = sum(len(log) for log in data)
    model: _BNN | _GP = _GP() if name == "gp" else _BNN(data[0], 1 << (total - 1).bit_length())
    if isinstance(model, _BNN):
        # Compile before the clock runs: what is asked is how the cost grows.
        before = model.dynamics
        model.update(data[0].select(data[0].episode == 0))
        model.dynamics = before
    rows: list[dict[str, Any]] = []
    stopped = _run_episodes(name, model, data, rows, episodes)
    return {"model": name, "stopped_by": stopped, **_growth(rows), "rows": rows}


def _run_episodes(name: str, model: Any, data: list[Transitions], rows: list[dict[str, Any]], episodes: int) -> str:
    """All episodes, or as many as the limits allow; returns what ended it."""
    seen, begin = None, time.perf_counter()
    for number, log in enumerate(data):
        for episode in range(episodes):
            start = time.perf_counter()
            episode_log = log.select(log.episode == episode)
            model.error(episode_log)
            seen = episode_log if seen is None else seen.extended(episode_log)
            updated = (episode + 1) % EVERY == 0
            # Do not begin what cannot end in time: the next update costs (ratio of rows)³ times the last.
            last = next((r for r in reversed(rows) if r["updated"]), None)
            forecast = 0 if last is None else last["seconds"] * (len(seen) / last["rows"]) ** 3
            if name == "gp" and updated and time.perf_counter() - begin + forecast > LIMIT_SECONDS:
                return "time"
            if updated:
                model.update(seen)
            row: dict[str, Any] = {"episode": number * episodes + episode, "rows": len(seen), "updated": updated}
            row["seconds"] = time.perf_counter() - start
            rows.append(row)
            if updated:
                tests = [d.select(d.episode >= episodes) for d in data[: number + 1]]
                row["held_out_error"] = float(np.mean([model.error(test) for test in tests]))
                row["peak_gb"] = round(peak_gb(), 2)
                if name == "gp" and row["peak_gb"] > LIMIT_GB:
                    return "memory"
    return "end"


def _growth(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Slope of log seconds against log rows over the later half of the updates."""
    updates = [r for r in rows if r["updated"]]
    half = updates[len(updates) // 2 :]
    slope = np.polyfit(np.log([r["rows"] for r in half]), np.log([r["seconds"] for r in half]), 1)[0]
    return {"exponent": float(slope), "seconds_all": float(sum(r["seconds"] for r in rows))}
