"""`learn_policy`: meet one instance, episode by episode."""

import dataclasses
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hipmdp.control.evaluate import greedy_episodes, repeat_theta
from hipmdp.control.presets import preset as control_preset
from hipmdp.data.episodes import episodes_to_transitions
from hipmdp.data.files import claim, output_directory
from hipmdp.data.transitions import Transitions
from hipmdp.families.checks import known_name
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.host import HostFamily, no_reward
from hipmdp.families.instance_sets import resolve_instance
from hipmdp.families.rollout import mean_return, success_rate
from hipmdp.transfer.algorithm import Algorithm
from hipmdp.transfer.config import TransferConfig
from hipmdp.transfer.config import preset as transfer_preset
from hipmdp.transfer.episodes import evaluate
from hipmdp.transfer.interrupt import interruptible
from hipmdp.transfer.meeting import Meeting, Phase
from hipmdp.transfer.methods import METHODS, find_method
from hipmdp.transfer.model import Model
from hipmdp.transfer.progress import Progress
from hipmdp.transfer.rewards import REWARDS
from hipmdp.transfer.run import Run
from hipmdp.transfer.update import update_from_batch

MEETING_STREAM, LIVING_STREAM = 2_000_001, 2_000_003
"""Key streams of the drawn instance and of a fixed policy's episodes."""
SAVE_SECONDS = 10
"""Time between two checkpoints."""


def learn_policy(
    model: Model,
    family: AbstractFamily,
    instance: Any = None,
    episodes: int = 10,
    seed: int = 0,
    batch: Transitions | None = None,
    reward: str = "given",
    preset: str = "default",
    out: str | Path | None = None,
    *,
    dynamics: str = "learned",
    config: TransferConfig | None = None,
    method: str | None = None,
    quiet: bool = False,
) -> Run:
    """Learn to control `instance` (θ, a dict by name, "test:3", or None: drawn) over `episodes` real episodes.

    `model` says with which method, unless `method` does: an amortised model can also be used as `embedded` or
    `refined`. It is never changed. With `batch`, the model is updated from it and the new episodes at the end. `reward`
    inside imagination: "given", "learned" from the batch, or "true" (what the instance itself would pay).
    `dynamics="true"` imagines in the real environment. Both "true"s are for finding out which part is at fault; so is a
    model with `pretrain(…, latents="true")`. `config` replaces the preset's settings. With `out` (a directory) the same
    call goes on where it was stopped, to the same bits.
    """
    model = model if method is None else model.used_as(method)
    chosen = find_method(model.method, "learn_policy")
    _check(model, family, episodes, batch, reward, dynamics)
    theta = resolve_instance(family, instance, jax.random.fold_in(jax.random.key(seed), MEETING_STREAM))
    if not chosen.learns:
        return _follow_blind(model, family, theta, episodes, seed)
    settings = config or transfer_preset(preset, family.specification, chosen.amortised)
    if chosen.role is None and dynamics == "learned":
        # Real life has one lane, and starts where it starts.
        learner = control_preset(preset, family.specification) if config is None else config.learner
        settings = dataclasses.replace(settings, learner=dataclasses.replace(learner, lanes=1, restart_share=0.0))
    progress = _Report(settings, episodes, quiet)
    algorithm = Algorithm(model, family, theta, episodes, seed, settings, reward, dynamics, progress.show)
    progress.imagines = algorithm.imagines
    meeting = algorithm.begin()
    if out is not None:
        progress.path = output_directory(Path(out)) / "meeting.checkpoint"
        claim(progress.path.with_name("meeting.json"), _description(algorithm, batch), "run")
        if progress.path.exists():
            meeting.restore(progress.path)
            progress.line.skip(meeting.forgotten + int(meeting.student.learner.started))
    with interruptible() as progress.interrupt:
        while meeting.episode < episodes:
            algorithm.advance(meeting)
            progress.show(meeting)
        progress.save(meeting)
    progress.line.close()
    return _record(algorithm, meeting, batch)


def _check(
    model: Model, family: AbstractFamily, episodes: int, batch: Transitions | None, reward: str, dynamics: str
) -> None:
    if model.specification != family.specification:
        raise ValueError(
            f"The model is for {model.specification.family!r}, not for {family.name!r}: use a model of this family."
        )
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}.")
    known_name("reward", reward, REWARDS)
    known_name("dynamics", dynamics, ("learned", "true"))
    method = METHODS[model.method]
    if dynamics == "true" and not method.imagines:
        raise ValueError(f'dynamics="true" is for methods that imagine, which {method.name!r} does not.')
    if method.role is not None and method.imagines:
        check_imagination(family, reward, dynamics)
    if reward == "learned" and method.pretrained and method.role is not None and model.reward_head is None:
        raise ValueError('reward="learned" needs a model that `pretrain` gave a reward head: pre-train it again.')
    if batch is not None and batch.specification != family.specification:
        raise ValueError(f"The batch is of {batch.specification.family!r}, not of {family.name!r}.")


def check_imagination(family: AbstractFamily, reward: str, dynamics: str = "learned") -> None:
    """One clear sentence where a Gymnasium environment cannot give what is asked of it."""
    if not isinstance(family, HostFamily):
        return
    if "true" in (reward, dynamics):
        what = 'dynamics="true"' if dynamics == "true" else 'reward="true"'
        raise ValueError(
            f"{what} needs a family in JAX: the Gymnasium environment {family.name} cannot be imagined in."
        )
    if reward == "given" and not family.knows_reward:
        raise ValueError(no_reward(family.name))


class _Report:
    """Progress, checkpoints and Ctrl-C: all that happens at chunk edges."""

    def __init__(self, config: TransferConfig, episodes: int, quiet: bool) -> None:
        self.config, self.episodes = config, episodes
        self.line = Progress("learn_policy, episode", episodes, quiet=quiet)
        self.imagines = True
        self.path: Path | None = None
        self.interrupt: Any = None
        self._saved = time.monotonic()

    def show(self, meeting: Meeting) -> None:
        """A line of progress; what is due on disk."""
        done, facts = meeting.episode, []
        if self.imagines:
            # Imagined episodes take the time, so they are what is counted.
            done = meeting.forgotten + int(meeting.student.learner.started)
            facts.append(f"imagined, real episode {meeting.episode}")
            # What has been asked for so far, and what will be if T̂ stays accurate.
            begun = meeting.episode + (meeting.phase in (Phase.IMAGINE, Phase.EVALUATE))
            first = 0 if meeting.tunings else self.config.imagined_episodes
            asked = meeting.forgotten + meeting.imagined + first
            self.line.total = asked + self.config.few_imagined(self.episodes, begun)
        for name, label in (("returns", "return"), ("model_error", "model error")):
            values = meeting.records[name]
            if values and not np.isnan(values[-1]):
                facts.append(f"{label} {values[-1]:.3g}")
        self.line.show(done, f"({', '.join(facts)})" if facts else "")
        if self.interrupt.pressed or time.monotonic() - self._saved > SAVE_SECONDS:
            self.save(meeting)
        if self.interrupt.pressed:
            raise KeyboardInterrupt

    def save(self, meeting: Meeting) -> None:
        """Write the checkpoint, if there is to be one."""
        if self.path is not None:
            meeting.save(self.path)
        self._saved = time.monotonic()


def _description(algorithm: Algorithm, batch: Transitions | None) -> str:
    """What a directory's run is: the same call gives the same text."""
    model = algorithm.model
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves((model.dynamics, model.policy, model.reward_head)):
        digest.update(np.asarray(leaf).tobytes())
    return json.dumps(
        {
            "family": repr(algorithm.family),
            "method": model.method,
            "model": digest.hexdigest(),
            "theta": {k: float(v) for k, v in algorithm.theta._asdict().items()},
            "episodes": algorithm.episodes,
            "seed": algorithm.seed,
            "reward": algorithm.reward,
            "dynamics": algorithm.dynamics,
            "batch": None if batch is None else len(batch),
            "config": dataclasses.asdict(algorithm.config),
        }
    )


def _record(algorithm: Algorithm, meeting: Meeting, batch: Transitions | None) -> Run:
    model = algorithm.model
    if meeting.dynamics is not None and meeting.latent is not None:
        model = model.with_dynamics(meeting.dynamics)
        if batch is not None and METHODS[model.method].pretrained:
            rounds, lived = algorithm.config.update_rounds, meeting.lived
            model = update_from_batch(algorithm.model, batch, lived, meeting.latent, rounds, algorithm.seed)
    return Run(
        model.method,
        algorithm.theta,
        **{name: np.asarray(values) for name, values in meeting.records.items()},
        transitions=meeting.lived,
        model=model,
        network=algorithm.policy(meeting),
        config=algorithm.config,
        imagination=algorithm.imagination(meeting) if algorithm.imagines else None,
        latents=meeting.latents if model.has_latent else [],
        belief=meeting.belief,
    )


def _follow_blind(model: Model, family: AbstractFamily, theta: Theta, episodes: int, seed: int) -> Run:
    """One policy for all: nothing is learned on the instance."""
    assert model.policy is not None
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), LIVING_STREAM), episodes)
    begin = time.perf_counter()
    lived = greedy_episodes(family, model.policy, repeat_theta(theta, episodes), keys)
    learning = np.sum(np.asarray(lived.rewards, np.float64), axis=-1)
    spent = time.perf_counter() - begin
    greedy = evaluate(family, model.policy, theta, seed)
    returns, successes = np.full(episodes, mean_return(greedy)), np.full(episodes, success_rate(family, greedy))
    return Run(
        "blind", theta, returns, successes, learning,
        np.full(episodes, np.nan), np.full(episodes, spent / episodes), episodes_to_transitions(family, lived, theta),
        model, model.policy,
    )  # fmt: skip
