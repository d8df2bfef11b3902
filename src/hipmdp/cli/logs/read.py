"""Logs of new systems, for a model that remembers its columns."""

from hipmdp._errors import known_name
from hipmdp.cli.logs.options import LogOptions
from hipmdp.data.logs.columns import MissingColumnError
from hipmdp.data.logs.parquet import is_batch, load_transitions
from hipmdp.data.logs.read import read_logs
from hipmdp.data.transitions import Transitions
from hipmdp.pretraining.model import Model


def read_for(model: Model, columns: LogOptions, *, rewarded: bool = False, reward: str | None = None) -> Transitions:
    """The logs, which must fit the model's specification.

    `rewarded`: with what was earned, where a file says it; `reward` names its column where that is another than the
    model remembers. One file that hipmdp itself wrote (a batch, or transitions.parquet of `adapt --out`) needs no
    columns.
    """
    known = model.metadata.get("columns") or {}
    if not isinstance(known, dict):
        raise ValueError("The model does not remember its columns rightly: name them with --state, --action, ….")
    only_files = columns == LogOptions(logs=columns.logs) and reward is None
    if not known and only_files and len(columns.logs) == 1 and is_batch(columns.logs[0]):
        return load_transitions(columns.logs[0])
    meaning = columns.columns(reward, {**known, "reward": known.get("reward") if rewarded else None})
    # The end is needed by no answer: but where it is marked, a wrong episode column shows. The reward was learned
    # before: a new system's log need not have it.
    optional = [name for name, given in (("terminated", columns.terminated), ("reward", reward)) if not given]
    try:
        return read_logs(
            columns.logs, meaning, like=model.specification, optional=optional, least=1, drop=columns.drop,
            split=columns.split,
        )  # fmt: skip
    except MissingColumnError as error:
        raise columns.complaint(error, known) from None


def one_system(transitions: Transitions, only: str | None) -> Transitions:
    """The transitions of the one system that is asked about."""
    if only is not None:
        return named_system(transitions, only)
    names = [transitions.name(i) for i in transitions.instances]
    if len(names) > 1:
        listed = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise ValueError(f"The log holds {len(names)} systems ({listed}): say which one with --only NAME.")
    return transitions


def named_system(transitions: Transitions, name: str) -> Transitions:
    """The transitions of one system of several."""
    names = {transitions.name(i): i for i in transitions.instances}
    return transitions.of_instance(names[known_name("system in the log", name, names)])
