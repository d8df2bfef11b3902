"""`hipmdp info FILE`: what is in a model or a batch."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console

from hipmdp._outputs import try_outputs
from hipmdp.cli.output import say, write_json
from hipmdp.data.logs.parquet import load_transitions
from hipmdp.pretraining.model import Model, load
from hipmdp.settings import recipe

MOST_ROWS = 40
"""Latents that are shown; all of them stand in the JSON."""


def info(
    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    json_: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Print what is in a model file, or in a batch that `hipmdp collect` wrote. Nothing in the file is run.

    Example: hipmdp info fleet.hipmdp

    Args:
        file: A .hipmdp or .parquet file; or grid, compass, acrobot or hiv for the model that comes along.
        json_: File for the same facts, all latents included, as JSON.
    """
    try_outputs(files=[json_])
    model = None if file.endswith(".parquet") else load(file)
    facts = _batch_facts(file) if model is None else _model_facts(model)
    console = Console()
    for name, value in facts.items():
        if not isinstance(value, (dict, list)):
            say(console, f"{name}: {value}")
        elif isinstance(value, dict) and value:
            say(console, f"{name}:")
            for key, part in value.items():
                say(
                    console, f"  {key.replace('_', ' ')}: {part:.4g}" if isinstance(part, float) else f"  {key}: {part}"
                )
    if model is not None and model.has_latent:
        for line in _latents(model):
            say(console, line)
    if model is not None and model.has_latent:
        facts["latents"] = _latent_rows(model)
    write_json(json_, facts)


def _specification(specification: Any) -> dict[str, Any]:
    return {
        "state": ", ".join(specification.state_names),
        "actions": ", ".join(specification.action_names),
        "horizon": specification.horizon,
        "discount": specification.discount,
        "steps": "of different durations" if specification.timed else "all alike",
        "rewards": "in the data" if specification.rewarded else "none",
    }


def _batch_facts(file: str) -> dict[str, Any]:
    batch = load_transitions(file)
    return {
        "batch of": batch.specification.family,
        "transitions": len(batch),
        "episodes": batch.episode_count,
        "instances": ", ".join(batch.name(i) for i in batch.instances),
        "system": _specification(batch.specification),
    }


def _model_facts(model: Model) -> dict[str, Any]:
    metadata = dict(model.metadata)
    columns, remarks = metadata.pop("columns", None), metadata.pop("remarks", [])
    facts: dict[str, Any] = {
        "model of": model.specification.family,
        "method": model.method,
        "policy": _policies(model),
        "learned reward": "yes" if model.reward_head is not None else "no",
        "system": _specification(model.specification),
        "data": metadata,
        "metrics": dict(model.metrics),
    }
    if columns:
        facts["columns of the logs"] = {k: v for k, v in columns.items() if v}
    if metadata.get("preset") == "default":
        size = model.dynamics.config.latent_size if model.has_latent and model.dynamics is not None else None
        facts["chosen by the recipe"] = recipe.explained(
            model.specification, int(metadata.get("instances", 0)), size, metadata.get("policy_unit")
        )
    if remarks:
        facts["remarks"] = " ".join(remarks)
    if model.dynamics is not None:
        config = dataclasses.asdict(model.dynamics.config)
        shown = ("role", "hidden", "latent_size", "alpha", "weight_draws", "rounds", "stochastic_input")
        facts["dynamics"] = {k: str(config[k]) for k in shown}
        facts["dynamics"]["weights"] = str(model.dynamics.posterior.mean.shape[0])
    return facts


def _policies(model: Model) -> str:
    known = {"Q(s, w) for all members": model.latent_policy, "Q(s)": model.policy}
    return ", ".join(name for name, network in known.items() if network is not None) or "no"


def _latent_rows(model: Model) -> list[dict[str, Any]]:
    assert model.dynamics is not None
    latents = np.asarray(model.dynamics.latents, float)
    names = model.names or tuple(str(i) for i in range(len(latents)))
    return [{"name": name, "latent": row.tolist()} for name, row in zip(names, latents, strict=True)]


def _latents(model: Model) -> list[str]:
    """A line for each known system: their numbers are too many for the columns of a table."""
    rows = _latent_rows(model)
    width = max((len(row["name"]) for row in rows), default=0)
    lines = [f"  {row['name']:{width}} " + " ".join(f"{v:6.2f}" for v in row["latent"]) for row in rows[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        lines.append(f"  and {len(rows) - MOST_ROWS} more: --json writes all")
    return ["latents of the known systems:", *lines]
