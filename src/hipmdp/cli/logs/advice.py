"""How an advice is shown: a table and sentences, and the same facts for a JSON file."""

from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console

from hipmdp._tables import plain_table
from hipmdp.cli.output import say
from hipmdp.from_logs.advice import Advice
from hipmdp.pretraining.model import Model


def show_advice(console: Console, model: Model, advice: Advice) -> None:
    """Values of all actions, the recommended one, and what speaks against it."""
    names, limits = model.specification.action_names, advice.limits
    columns = ["action", "value", "95 % interval"]
    if advice.caution:
        columns.insert(2, f"worst {100 * (1 - advice.caution):.2g} %")
    if limits is not None:
        columns.append("chance")
    rows = []
    for a in np.argsort(-advice.cautious, kind="stable"):
        cells = [names[a], f"{advice.values[a]:.4g}", f"[{advice.low[a]:.4g}, {advice.high[a]:.4g}]"]
        if advice.caution:
            cells.insert(2, f"{advice.cautious[a]:.4g}")
        if limits is not None:
            cells.append(f"{advice.chances[a]:.2g}" + ("" if advice.allowed[a] else " (high)"))
        rows.append([*cells, "yes" if advice.supported[a] else "no"])
    title = "value of each action now, the learned policy afterwards (discounted, imagined)"
    if limits is not None:
        title += f"\nchance: of breaking {limits} within {limits.within} steps"
    console.print(plain_table(title, [*columns, "tried near this state"], rows, left=["action"]))
    say(console, f"Recommended now: {names[advice.action]}")
    for remark in advice.remarks:
        say(console, f"Note: {remark}")
    if not advice.supported[advice.action]:
        say(
            console,
            f"Warning: no log has {names[advice.action]} near this state (the nearest logged one is "
            f"{advice.distances[advice.action]:.2g} spreads away, usual is {advice.reach:.2g}).",
        )


def advice_facts(names: tuple[str, ...], advice: Advice) -> dict[str, Any]:
    """What is shown, by name."""
    values: dict[str, dict[str, Any]] = {
        name: {"mean": float(advice.values[i]), "low": float(advice.low[i]), "high": float(advice.high[i]),
               "supported": bool(advice.supported[i])}
        for i, name in enumerate(names)
    }  # fmt: skip
    facts: dict[str, Any] = {
        "recommended": names[advice.action],
        "supported": bool(advice.supported[advice.action]),
        "remarks": advice.remarks,
        "values": values,
    }
    if advice.caution:
        facts["caution"] = advice.caution
        for i, name in enumerate(names):
            values[name]["cautious"] = float(advice.cautious[i])
    if advice.limits is not None:
        facts["limits"] = asdict(advice.limits)
        for i, name in enumerate(names):
            values[name] |= {"chance": float(advice.chances[i]), "allowed": bool(advice.allowed[i])}
    return facts
