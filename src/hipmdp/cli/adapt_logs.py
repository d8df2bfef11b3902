"""`hipmdp adapt MODEL --logs NEW`: what a log of one new system says, without an environment."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hipmdp.cli.log_options import LogOptions
from hipmdp.cli.output import say, write_json
from hipmdp.data.files import output_directory
from hipmdp.data.logs import read_logs
from hipmdp.data.transitions import Transitions
from hipmdp.families.checks import known_name, number
from hipmdp.transfer.advise import Advice, advise
from hipmdp.transfer.model import Model
from hipmdp.transfer.outlook import Outlook, outlook
from hipmdp.transfer.progress import Progress
from hipmdp.transfer.recognise import Recognition, recognise
from hipmdp.transfer.rewards import load_reward

NEIGHBOURS = 5
"""Nearest known systems that are shown."""


def adapt_logs(
    model: Model,
    columns: LogOptions,
    instance: str | None,
    only: str | None,
    at: str | None,
    horizon: int,
    reward: str,
    seed: int,
    out: Path | None,
    json_: Path | None,
) -> None:
    """Recognise the system, tell what each action would lead to, and, where there is a reward, what to do."""
    transitions = _one_system(_read(model, columns, instance), only)
    state = _state(model, transitions, at)
    recognition = recognise(model, transitions, seed)
    futures = outlook(model, recognition, state, horizon, seed)
    console = Console()
    _show_recognition(console, transitions, recognition)
    _show_outlook(console, model, state, futures)
    advice = _advice(model, transitions, state, reward, seed)
    if advice is not None:
        _show_advice(console, model, advice)
    else:
        say(console, "No reward, so no policy: give --reward module:function, or pre-train with a reward column.")
    if out is not None:
        tuned = model if advice is None else replace(model, dynamics=advice.dynamics, policy=advice.network)
        tuned.save(output_directory(out) / "model.hipmdp")
        say(console, f"In {out}: model.hipmdp" + ("" if advice is None else " (with the policy)"))
    write_json(json_, _facts(model, transitions, state, recognition, futures, advice))


def _read(model: Model, columns: LogOptions, instance: str | None) -> Transitions:
    known = dict(model.about.get("columns") or {})
    # The reward was learned before: a new system's log need not have it.
    told = columns.columns(instance, None, {**known, "reward": None})
    optional = ("instance", "episode", "terminated") if instance is None else ()
    return read_logs(columns.logs, told, like=model.specification, optional=optional, least=1, drop=columns.drop)


def _one_system(transitions: Transitions, only: str | None) -> Transitions:
    """The system that is meant."""
    names = {transitions.name(i): i for i in transitions.instances}
    if only is not None:
        return transitions.of_instance(names[known_name("system in the log", only, names)])
    if len(names) > 1:
        listed = ", ".join(list(names)[:8]) + (", …" if len(names) > 8 else "")
        raise ValueError(f"The log holds {len(names)} systems ({listed}): say which one with --only NAME.")
    return transitions


def _state(model: Model, transitions: Transitions, at: str | None) -> np.ndarray:
    """Where the system is now: where its log ends, unless it is said."""
    names = model.specification.state_names
    if at is None:
        last = np.lexsort((transitions.time, transitions.episode))[-1]
        return np.asarray(transitions.next_state[last])
    parts = at.split(",")
    if len(parts) != len(names):
        raise ValueError(f"--at must be {len(names)} numbers ({', '.join(names)}), got {at!r}.")
    return np.asarray([number("State", n, p) for n, p in zip(names, parts, strict=True)], np.float32)


def _advice(model: Model, transitions: Transitions, state: np.ndarray, reward: str, seed: int) -> Advice | None:
    """A policy, if there is something to be gained."""
    function = load_reward(reward) if ":" in reward else None
    if function is None:
        known_name("reward with --logs (or module:function)", reward, ("given", "learned", "none"))
        if reward == "learned" and model.reward_head is None:
            raise ValueError(
                "The model has learned no reward: pre-train with --reward COLUMN, or name module:function."
            )
        if reward == "none" or model.reward_head is None:
            return None
    progress = Progress("adapt, imagined episode", 1)

    def report(done: int, total: int) -> None:
        progress.total = total
        progress.show(done)

    advice = advise(model, transitions, state, function, seed, report=report)
    progress.close()
    return advice


def _show_recognition(console: Console, transitions: Transitions, told: Recognition) -> None:
    name = transitions.name(transitions.instances[0])
    say(console, f"System {name}: {len(transitions)} transitions in {transitions.episode_count} episodes")
    pairs = zip(np.asarray(told.latent), told.spread, strict=True)
    say(console, "latent: " + " ".join(f"{value:.3f}±{spread:.3f}" for value, spread in pairs))
    near = ", ".join(f"{n.name} ({n.distance:.2f})" for n in told.neighbours[:NEIGHBOURS])
    say(console, f"nearest known systems (distance in standard deviations): {near}")
    quality = told.held_back
    say(
        console,
        f"on its last {quality.rows} transitions: error {quality.l2:.3g} (with the mean latent {told.mean_error:.3g}, "
        f"on known systems {told.expected_error:.3g}); 95 % intervals held {quality.coverage[-1]:.0%}",
    )
    for doubt in told.warnings:
        say(console, f"Warning: this system is unlike those the model knows: {doubt}.")


def _show_outlook(console: Console, model: Model, state: np.ndarray, futures: Outlook) -> None:
    specification = model.specification
    steps = futures.mean.shape[1] - 1
    table = Table(title=f"after {steps} steps of one action: mean and 95 % interval")
    table.add_column("action")
    for name, value in zip(specification.state_names, state, strict=True):
        table.add_column(f"{name} (now {value:.3g})", justify="right")
    for i, action in enumerate(specification.action_names):
        ends = (part[i, -1] for part in futures)
        cells = [f"{mean:.3g} [{low:.3g}, {high:.3g}]" for mean, low, high in zip(*ends, strict=True)]
        table.add_row(action, *cells)
    console.print(table, markup=False)


def _show_advice(console: Console, model: Model, advice: Advice) -> None:
    names = model.specification.action_names
    table = Table(title="value of each action now, the learned policy afterwards (discounted, imagined)")
    for column in ("action", "value", "95 % interval", "tried near this state"):
        table.add_column(column, justify="left" if column == "action" else "right")
    for a in np.argsort(-advice.values, kind="stable"):
        interval = f"[{advice.low[a]:.4g}, {advice.high[a]:.4g}]"
        table.add_row(names[a], f"{advice.values[a]:.4g}", interval, "yes" if advice.supported[a] else "no")
    console.print(table)
    say(console, f"Recommended now: {names[advice.action]}")
    if not advice.supported[advice.action]:
        say(
            console,
            f"Warning: nobody has tried {names[advice.action]} near this state (the nearest logged one is "
            f"{advice.distances[advice.action]:.2g} spreads away, usual is {advice.reach:.2g}).",
        )


def _facts(
    model: Model,
    transitions: Transitions,
    state: np.ndarray,
    told: Recognition,
    futures: Outlook,
    advice: Advice | None,
) -> dict[str, Any]:
    names = model.specification.action_names
    facts: dict[str, Any] = {
        "system": transitions.name(transitions.instances[0]),
        "transitions": len(transitions),
        "state": dict(zip(model.specification.state_names, map(float, state), strict=True)),
        "latent": np.asarray(told.latent, float).tolist(),
        "latent_spread": told.spread.tolist(),
        "neighbours": [{"name": n.name, "distance": n.distance} for n in told.neighbours],
        "held_back": told.held_back._asdict(),
        "error_with_mean_latent": told.mean_error,
        "error_of_known_systems": told.expected_error,
        "warnings": told.warnings,
        "outlook": {
            name: {part: getattr(futures, part)[i].tolist() for part in futures._fields} for i, name in enumerate(names)
        },
    }
    if advice is not None:
        facts["recommended"] = names[advice.action]
        facts["supported"] = bool(advice.supported[advice.action])
        facts["values"] = {
            name: {"mean": float(advice.values[i]), "low": float(advice.low[i]), "high": float(advice.high[i]),
                   "supported": bool(advice.supported[i])}
            for i, name in enumerate(names)
        }  # fmt: skip
    return facts
