"""`online`: instances one after the other, with no batch at all.

Nothing is known at first, so the first episode is random. From then on all episodes so far, 𝒟, make a model of the
family whose size held-out data choose (`model_size`), Q(s, w) is learned inside it, and the next instance begins with
that: infer w, act, infer again. Where the model misjudges a system it is fitted anew at once, with the system as an
instance of its own, and the next episode explores (`phases`).
"""

import dataclasses
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._errors import check_episodes, whole
from hipmdp._files import claim_directory, output_directory
from hipmdp._progress import Progress, interruptible
from hipmdp._random import STREAMS_VERSION, root_key, stream
from hipmdp.data.transitions import Transitions
from hipmdp.data.work import Work
from hipmdp.families.instance import Instance, unscored
from hipmdp.families.instances import frozen_instance, resolve_instance
from hipmdp.families.protocol import BaseFamily, theta_values
from hipmdp.online.model_size import Choice
from hipmdp.online.phases import OnlineTask, interact, learn
from hipmdp.online.state import OnlineRecord, OnlineState
from hipmdp.online.store import Store
from hipmdp.pretraining.model import Model
from hipmdp.settings import recipe
from hipmdp.settings.online import OnlineConfig

LAYOUT = 2
"""Of the files in a run's directory."""


@dataclass(frozen=True)
class OnlineRun:
    """Instances one after the other, and what is known at the end."""

    instances: list[Instance]
    records: list[OnlineRecord]
    transitions: Transitions
    """𝒟: every episode; instance b is the b-th of the run."""
    model: Model
    """The family's model with Q(s, w), of method `amortised`."""
    config: OnlineConfig

    @property
    def returns(self) -> np.ndarray:
        """(instances, episodes): undiscounted returns."""
        return np.asarray([record.returns for record in self.records])

    @property
    def scores(self) -> np.ndarray:
        """(instances, episodes): scores; NaN where no best return is known."""
        rows = zip(self.instances, self.records, strict=True)
        return np.asarray([[i.score(v) if i.is_scored else np.nan for v in r.returns] for i, r in rows])

    @property
    def choices(self) -> list[Choice]:
        """The choice of size behind the model after each instance."""
        return [record.choice for record in self.records]


def online(
    family: BaseFamily,
    instances: Any = 10,
    episodes: int = 5,
    seed: int = 0,
    out: str | Path | None = None,
    config: OnlineConfig | None = None,
    quiet: bool = False,
) -> OnlineRun:
    """Learn to control `instances` in turn, `episodes` episodes each, from all of them; there is no batch.

    `instances`: n (the first n of `test`, from the first again where there are fewer), a set's name, or a list of θ's,
    dicts, "test:3", or None (drawn). Record b of the result is the b-th instance; nothing was learned from that
    instance before its first return. With `out` (a directory) the same call goes on where it was stopped, also in the
    middle of an instance or of a fit, to the same bits.
    """
    check_episodes(episodes, family.horizon)
    key, chosen = root_key(seed), chosen_instances(family, instances, seed)
    check_episodes(len(chosen) * episodes, family.horizon, "the number of episodes with all instances")
    settings = config or recipe.online(family.specification)
    directory = None if out is None else output_directory(Path(out))
    if directory is not None:
        claim_directory(directory / "online.json", _description(family, chosen, episodes, seed, settings), "run")
    task = OnlineTask(family, chosen, episodes, settings, key)
    with interruptible() as interrupt, Progress("online, episode", episodes * len(chosen), quiet=quiet) as progress:
        state = run_online(task, Work(directory, interrupt), progress)
    assert state.batch is not None
    assert state.model is not None
    return OnlineRun(chosen, list(state.records), state.batch, state.model, settings)


def run_online(task: OnlineTask, work: Work, progress: Progress) -> OnlineState:
    """Instance after instance, from where an earlier call has stopped."""
    store = Store(work)
    state = store.load()
    progress.skip(task.episodes * state.number + state.episode)
    while state.number < len(task.instances):
        begin = time.perf_counter()

        # An episode with the model so far.
        if not state.is_due and state.episode < task.episodes:
            state, _ = interact(task, state)
            state = _timed(state, begin)
            store.save(state)
            begin = time.perf_counter()

        # Learn from it: the model of the family and its policy.
        if state.is_due:
            state, _ = learn(task, state, work)
            state = _timed(state, begin)

        label, value = task.instances[state.number].label, state.returns[-1]
        progress.show(task.episodes * state.number + state.episode, f"({label}: return {value:.4g})")
        if state.episode == task.episodes:
            state = state.with_next_instance()
        store.save(state)
        if work.interrupt.pressed:
            raise KeyboardInterrupt
    return state


def _timed(state: OnlineState, begin: float) -> OnlineState:
    return replace(state, seconds=state.seconds + time.perf_counter() - begin)


def chosen_instances(family: BaseFamily, instances: Any, seed: int) -> list[Instance]:
    """The instances of a run, in order."""
    if isinstance(instances, int):
        whole("instances", instances)
        members = family.instances("test")
        return [members[i % len(members)] for i in range(instances)]
    if isinstance(instances, str):
        return [frozen_instance(family, instances)] if ":" in instances else family.instances(instances)
    if not isinstance(instances, (list, tuple)) or len(instances) == 0:
        raise ValueError(f"instances must be a number, the name of a set or a list, got {instances!r}.")
    return [_instance(family, given, root_key(seed), i) for i, given in enumerate(instances)]


def _instance(family: BaseFamily, given: Any, key: PRNGKeyArray, position: int) -> Instance:
    if isinstance(given, Instance):
        return given
    if isinstance(given, str):
        return frozen_instance(family, given)
    theta = resolve_instance(family, given, stream(key, "online/instances", position))
    return unscored(f"{'drawn' if given is None else 'given'}:{position}", theta)


def _description(
    family: BaseFamily, instances: list[Instance], episodes: int, seed: int, config: OnlineConfig
) -> dict[str, Any]:
    """What a directory's run is: the same call gives the same text."""
    return {
        "family": repr(family),
        "layout": LAYOUT,
        "thetas": [theta_values(instance.theta) for instance in instances],
        "episodes": episodes,
        "seed": seed,
        "streams": STREAMS_VERSION,
        "config": dataclasses.asdict(config),
    }
