"""`online`: meet instances one after the other, with no batch at all.

Nothing is known at first, so the first episode is random. From then on all that was lived, 𝒟, makes a model of the
family whose size held-back data choose (`growing`), Q(s, w) is learned inside it, and the next instance is met with
that: infer w, act, infer again. Where the model misjudges a system it is fitted anew at once, with the system as an
instance of its own, and the next episode explores (`grown`).
"""

import dataclasses
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from hipmdp.data.files import claim, output_directory, whole_file
from hipmdp.data.parquet import load_transitions, save_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.model import padded_size
from hipmdp.families.family import AbstractFamily
from hipmdp.families.instance_sets import Instance, frozen_instance, frozen_instances, resolve_instance, unscored
from hipmdp.transfer.growing import Choice, Room, choose_size
from hipmdp.transfer.grown import LOOKING, Met, OnlineConfig, learn_family, online_preset
from hipmdp.transfer.learn import check_imagination
from hipmdp.transfer.model import Model
from hipmdp.transfer.progress import Progress
from hipmdp.transfer.storage import load

DRAWING, LIVING = 4_000_001, 4_000_002
"""Key streams."""
SEEDS_PER_RUN = 100_000
"""Fits of one run have seeds of their own: `seed` times this, and counted from there."""


class Record(NamedTuple):
    """What happened on one instance, episode by episode."""

    returns: list[float]
    model_error: list[float]
    """Mean L2 error of T̂ before it was fitted to the episode, standardised; NaN while there was none."""
    misjudged: list[bool]
    """Whether the model misjudged the system in that episode."""
    fits: int
    """How often the model and the policy were learned anew."""
    choice: Choice
    """The size in use at the end, and what held-back data said when it was chosen."""
    seconds: float


@dataclass(frozen=True)
class OnlineRun:
    """Instances met one after the other, and what is known at the end."""

    instances: list[Instance]
    records: list[Record]
    transitions: Transitions
    """𝒟: everything that was lived; instance b is the b-th meeting."""
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
    family: AbstractFamily,
    instances: Any = 10,
    episodes: int = 5,
    seed: int = 0,
    out: str | Path | None = None,
    config: OnlineConfig | None = None,
    quiet: bool = False,
) -> OnlineRun:
    """Meet `instances` in turn, `episodes` episodes each, and learn from all of them; there is no batch.

    `instances`: n (the first n of `test`, from the first again where there are fewer), a set's name, or a list of θ's,
    dicts, "test:3", or None (drawn). Record b of the result is the b-th meeting; its first return was lived before
    anything was learned from that instance. With `out` (a directory) the same call goes on after the last instance that
    was finished, to the same bits.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}.")
    if family.knows_reward and not family.reward_needs_theta:
        check_imagination(family, "given")
    met = meetings(family, instances, seed)
    settings = config or online_preset(family)
    directory = None if out is None else output_directory(Path(out))
    if directory is not None:
        claim(directory / "online.json", _description(family, met, episodes, seed, settings), "run")
    state = _State(family, met, episodes, seed, settings, directory)
    state.restore()
    progress = Progress("online, episode", episodes * len(met), quiet=quiet)
    progress.skip(episodes * len(state.records))
    while len(state.records) < len(met):
        state.meet(progress)
        state.save()
    progress.close()
    assert state.batch is not None
    assert state.model is not None
    return OnlineRun(met, state.records, state.batch, state.model, settings)


def meetings(family: AbstractFamily, instances: Any, seed: int) -> list[Instance]:
    """Who is met, in order."""
    if isinstance(instances, bool) or (isinstance(instances, int) and instances < 1):
        raise ValueError(f"instances must be at least 1, got {instances}.")
    if isinstance(instances, int):
        members = frozen_instances(family, "test")
        return [members[i % len(members)] for i in range(instances)]
    if isinstance(instances, str):
        return [frozen_instance(family, instances)] if ":" in instances else frozen_instances(family, instances)
    if not isinstance(instances, (list, tuple)) or len(instances) == 0:
        raise ValueError(f"instances must be a number, the name of a set or a list, got {instances!r}.")
    key = jax.random.fold_in(jax.random.key(seed), DRAWING)
    return [_meeting(family, given, jax.random.fold_in(key, i), i) for i, given in enumerate(instances)]


def _meeting(family: AbstractFamily, given: Any, key: Any, position: int) -> Instance:
    if isinstance(given, Instance):
        return given
    if isinstance(given, str):
        return frozen_instance(family, given)
    return unscored(
        f"given:{position}" if given is not None else f"drawn:{position}", resolve_instance(family, given, key)
    )


class _State:
    """Where a run stands between two instances, and how that is kept on disk."""

    def __init__(
        self, family: AbstractFamily, met: list[Instance], episodes: int, seed: int, config: OnlineConfig,
        directory: Path | None,
    ) -> None:  # fmt: skip
        self.family, self.met, self.episodes, self.seed, self.config = family, met, episodes, seed, config
        self.directory = directory
        self.room = Room(max(2, len(met)), padded_size(len(met) * episodes * family.horizon))
        self.key = jax.random.fold_in(jax.random.key(seed), LIVING)
        self.records: list[Record] = []
        self.batch: Transitions | None = None
        self.model: Model | None = None

    def meet(self, progress: Progress) -> None:
        """The next instance, from its first episode to what is learned at its end."""
        begin, number, doubt = time.perf_counter(), len(self.records), False
        choice = self.records[-1].choice if self.records else None
        met = Met(self.family, self.met[number].theta, number, self.config, self.model)
        returns, errors, misjudged, fits = [], [], [], 0
        for episode in range(self.episodes):
            key = jax.random.fold_in(jax.random.fold_in(self.key, number), episode)
            lived = met.live(episode, key)
            self.batch = lived if self.batch is None else self.batch.extended(lived)
            told = met.judge(lived, self.batch, jax.random.fold_in(key, LOOKING))
            returns.append(float(np.sum(lived.reward, dtype=np.float64)))
            errors.append(told.error)
            misjudged.append(told.wrong)
            explores, doubt = told.wrong or number < self.config.young, doubt or told.wrong
            met.chance = 1.0 if told.lost else self.config.epsilon if explores else 0.0
            last = episode == self.episodes - 1
            # What is learned now would not be used in an episode that is random.
            at_once = told.wrong and not told.lost and fits < self.config.refits
            if at_once or (last and (doubt or self._has_grown(met.model))):
                seed = SEEDS_PER_RUN * self.seed + number * self.episodes + episode
                if choice is None or len(self.batch) >= self.config.grown * choice.rows:
                    choice = choose_size(self.batch, self.config.growth, self.room, seed)
                met.become(learn_family(self.family, self.batch, choice, self.config, self.room, seed))
                fits, doubt = fits + 1, False
            progress.show(number * self.episodes + episode + 1, f"({self.met[number].label}: return {returns[-1]:.4g})")
        self.model = met.model
        assert choice is not None
        self.records.append(Record(returns, errors, misjudged, fits, choice, time.perf_counter() - begin))

    def _has_grown(self, model: Model | None) -> bool:
        """Whether there is much more in 𝒟 than the model was fitted to."""
        assert self.batch is not None
        return model is None or len(self.batch) >= self.config.grown * model.about["transitions"]

    def save(self) -> None:
        """The instance that was just finished; its record comes last and says that all is there."""
        if self.directory is None or self.batch is None or self.model is None:
            return
        number = len(self.records) - 1
        save_transitions(self.batch.of_instance(number), self.directory / f"instance{number:03d}.parquet")
        self.model.save(self.directory / f"model{number:03d}.hipmdp")
        record = self.records[-1]
        facts = {**record._asdict(), "choice": record.choice._asdict()}
        facts["model_error"] = [None if np.isnan(v) else v for v in record.model_error]
        with whole_file(self.directory / f"instance{number:03d}.json") as temporary:
            temporary.write_text(json.dumps(facts))
        (self.directory / f"model{number - 1:03d}.hipmdp").unlink(missing_ok=True)

    def restore(self) -> None:
        """Become what was saved."""
        if self.directory is None:
            return
        while (path := self.directory / f"instance{len(self.records):03d}.json").exists():
            try:
                self.records.append(_record(json.loads(path.read_text())))
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"{str(path)!r} is damaged: remove it to meet that instance again.") from None
            lived = load_transitions(path.with_suffix(".parquet"))
            self.batch = lived if self.batch is None else self.batch.extended(lived)
        if self.records:
            self.model = load(self.directory / f"model{len(self.records) - 1:03d}.hipmdp")


def _record(facts: dict[str, Any]) -> Record:
    told = facts["choice"]
    sizes = tuple(tuple(int(units) for units in size) for size in told["sizes"])
    choice = Choice(
        tuple(told["size"]), sizes, tuple(told["likelihoods"]), float(told["error"]), int(told["rows"])
    )  # fmt: skip
    errors = [float("nan") if v is None else float(v) for v in facts["model_error"]]
    return Record(
        [float(v) for v in facts["returns"]], errors, [bool(v) for v in facts["misjudged"]], int(facts["fits"]), choice,
        float(facts["seconds"]),
    )  # fmt: skip


def _description(family: AbstractFamily, met: list[Instance], episodes: int, seed: int, config: OnlineConfig) -> str:
    """What a directory's run is: the same call gives the same text."""
    thetas = [{k: float(v) for k, v in instance.theta._asdict().items()} for instance in met]
    facts = {"family": repr(family), "thetas": thetas, "episodes": episodes, "seed": seed}
    return json.dumps({**facts, "config": dataclasses.asdict(config)})
