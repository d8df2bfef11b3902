"""`hipmdp adapt MODEL --logs NEW`: what a log of one new system says, without an environment."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from hipmdp._errors import known_name, number
from hipmdp._files import output_directory
from hipmdp._progress import Progress
from hipmdp._tables import plain_table
from hipmdp.adaptation.guarding import check_limits
from hipmdp.cli.limits import Care
from hipmdp.cli.logs.advice import advice_facts, show_advice
from hipmdp.cli.logs.options import LogOptions
from hipmdp.cli.logs.read import one_system, read_for
from hipmdp.cli.output import say, write_json
from hipmdp.data.transitions import Transitions
from hipmdp.from_logs.advice import Advice
from hipmdp.from_logs.advise import advise
from hipmdp.from_logs.forecast import Forecast, forecast
from hipmdp.from_logs.identify import Identification, identify
from hipmdp.imagination.reward import load_reward
from hipmdp.pretraining.model import Model

NEIGHBOURS = 5
"""Nearest known systems that are shown."""


def adapt_logs(
    model: Model,
    columns: LogOptions,
    only: str | None,
    at: str | None,
    horizon: int,
    reward: str,
    seed: int,
    out: Path | None,
    json_: Path | None,
    care: Care,
) -> None:
    """Identify the system, forecast what each action would lead to, and advise an action where there is a reward."""
    transitions = one_system(read_for(model, columns), only)
    check_limits(model, care.limits, transitions)
    state = _state(model, transitions, at)
    identification = identify(model, transitions, seed)
    futures = forecast(model, identification, state, horizon, seed)
    console = Console()
    _show_identification(console, transitions, identification)
    _show_forecast(console, model, state, futures)
    advice = _advice(model, transitions, state, reward, seed, care)
    if advice is not None:
        show_advice(console, model, advice)
    else:
        say(console, "No reward, so no policy: give --reward module:function, or pre-train with a reward column.")
    if out is not None:
        tuned = model if advice is None else replace(model, dynamics=advice.dynamics, policy=advice.network)
        tuned.save(output_directory(out) / "model.hipmdp")
        kept = "" if advice is None else " (with the policy)"
        if advice is not None and advice.limits is not None:
            kept = " (with the policy, which does not know the limits)"
        say(console, f"In {out}: model.hipmdp{kept}")
    write_json(json_, _facts(model, transitions, state, identification, futures, advice))


def _state(model: Model, transitions: Transitions, at: str | None) -> np.ndarray:
    """The state to ask about: where the log ends, unless --at gives another."""
    names = model.specification.state_names
    if at is None:
        last = np.lexsort((transitions.time, transitions.episode))[-1]
        return np.asarray(transitions.next_state[last])
    parts = at.split(",")
    if len(parts) != len(names):
        raise ValueError(f"--at must be {len(names)} numbers ({', '.join(names)}), got {at!r}.")
    return np.asarray([number("State", n, p) for n, p in zip(names, parts, strict=True)])


def _advice(
    model: Model, transitions: Transitions, state: np.ndarray, reward: str, seed: int, care: Care
) -> Advice | None:
    """A policy, if there is a reward."""
    function = load_reward(reward) if ":" in reward else None
    if function is None:
        known_name("reward with --logs (or module:function)", reward, ("given", "learned", "none"))
        if reward == "learned" and model.reward_head is None:
            raise ValueError(
                "The model has learned no reward: pre-train with --reward COLUMN, or name module:function."
            )
        if reward == "none" or model.reward_head is None:
            return None
    progress = Progress("adapt, imagined step", 1)

    def report(done: int, total: int) -> None:
        progress.total = total
        progress.show(done)

    advice = advise(
        model, transitions, state, function, seed, on_progress=report, caution=care.caution, limits=care.limits or ()
    )
    progress.close()
    return advice


def _show_identification(console: Console, transitions: Transitions, found: Identification) -> None:
    name = transitions.name(transitions.instances[0])
    say(console, f"System {name}: {len(transitions)} transitions in {transitions.episode_count} episodes")
    pairs = zip(np.asarray(found.latent), found.spread, strict=True)
    say(console, "latent: " + " ".join(f"{value:.3f}±{spread:.3f}" for value, spread in pairs))
    near = ", ".join(f"{n.name} ({n.distance:.2f})" for n in found.neighbours[:NEIGHBOURS])
    say(console, f"nearest known systems (distance in standard deviations): {near}")
    quality = found.held_out
    say(
        console,
        f"on its last {quality.rows} transitions: error {quality.error:.3g} (RMSE; 1: no better than the mean "
        f"change; with the mean latent {found.mean_error:.3g}, on known systems {found.expected_error:.3g}); "
        f"95 % intervals held {quality.coverage[-1]:.0%}",
    )
    for doubt in found.warnings:
        say(console, f"Warning: this system is unlike those the model knows: {doubt}.")


def _show_forecast(console: Console, model: Model, state: np.ndarray, futures: Forecast) -> None:
    specification = model.specification
    steps = futures.mean.shape[1] - 1
    digits = [_digits(value, scale) for value, scale in zip(state, model.scale, strict=True)]
    named = zip(specification.state_names, state, digits, strict=True)
    columns, rows = ["action", *(f"{name} (now {value:.{count}g})" for name, value, count in named)], []
    for i, action in enumerate(specification.action_names):
        ends = (part[i, -1] for part in futures)
        cells = [f"{mean:.{n}g} [{low:.{n}g}, {high:.{n}g}]" for mean, low, high, n in zip(*ends, digits, strict=True)]
        rows.append([action, *cells])
    title = f"after {steps} steps of one action: mean and 95 % interval"
    console.print(plain_table(title, columns, rows, left=["action"]))


def _digits(value: float, scale: float) -> int:
    """Three, and more where a column lies so far from zero that they would not tell its values apart."""
    return 3 + max(0, math.ceil(math.log10(max(abs(value) / scale, 1e-9)) - 1))


def _facts(
    model: Model,
    transitions: Transitions,
    state: np.ndarray,
    found: Identification,
    futures: Forecast,
    advice: Advice | None,
) -> dict[str, Any]:
    names = model.specification.action_names
    facts: dict[str, Any] = {
        "system": transitions.name(transitions.instances[0]),
        "transitions": len(transitions),
        "state": dict(zip(model.specification.state_names, map(float, state), strict=True)),
        "latent": np.asarray(found.latent, float).tolist(),
        "latent_spread": found.spread.tolist(),
        "neighbours": [{"name": n.name, "distance": n.distance} for n in found.neighbours],
        "held_out": found.held_out._asdict(),
        "error_with_mean_latent": found.mean_error,
        "error_of_known_systems": found.expected_error,
        "warnings": found.warnings,
        "forecast": {
            name: {part: getattr(futures, part)[i].tolist() for part in futures._fields} for i, name in enumerate(names)
        },
    }
    if advice is not None:
        facts |= advice_facts(names, advice)
    return facts
