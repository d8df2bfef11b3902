"""`learn_policy`: Algorithm 1, from top to bottom."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._errors import known_name
from hipmdp._progress import Progress, interruptible, tell
from hipmdp._random import STREAMS_VERSION, root_key, stream
from hipmdp.adaptation.care import caution_of, check_care
from hipmdp.adaptation.evaluate import evaluate, interact, is_same
from hipmdp.adaptation.method import AbstractMethod, RunnableMethod, Setting
from hipmdp.adaptation.methods import find_method, runnable
from hipmdp.adaptation.resume import Checkpoint, RunRecord
from hipmdp.adaptation.run import Run
from hipmdp.control.policy import Policy
from hipmdp.data.experience import steps_to_transitions
from hipmdp.data.transitions import Transitions, empty_transitions
from hipmdp.data.work import batch_digest
from hipmdp.families.instances import resolve_instance
from hipmdp.families.protocol import BaseFamily, theta_values
from hipmdp.families.rollout import Episode, mean_return, success_rate
from hipmdp.imagination.reward import REWARDS
from hipmdp.pretraining.model import Model
from hipmdp.pretraining.resume import model_digest
from hipmdp.settings import SETTINGS_VERSION
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.limits import RISK, WITHIN, Limits, limits_of


def learn_policy(
    model: Model | Any,
    family: BaseFamily,
    instance: Any = None,
    episodes: int = 10,
    seed: int = 0,
    batch: Transitions | None = None,
    reward: str = "given",
    preset: str = "default",
    out: str | Path | None = None,
    *,
    method: str | AbstractMethod | None = None,
    imagine_in: str = "model",
    config: AdaptationConfig | None = None,
    caution: float | None = None,
    limits: Limits | Iterable[str] = (),
    risk: float = RISK,
    within: int = WITHIN,
    quiet: bool = False,
) -> Run:
    """Learn to control `instance` (θ, a dict by name, "test:3", or None: drawn) over `episodes` real episodes.

    `model` says with which method, unless `method` does: an embedded one that has a Q(s, w) is `refined`, and can also
    be used as `embedded` or `amortised`. `method` may be a method of your own (`AbstractMethod`), whose model is what
    its `prepare` returned, or None to have it prepared from `batch`. The model is never changed. With `batch`, the
    family's model is updated from it and the new episodes at the end. `reward` inside imagination: "given", "learned"
    from the batch, or "true" (what the instance itself would pay). `imagine_in="environment"` learns the policy in the
    true environment. These two are for finding out which part is at fault; so is a model with
    `pretrain(…, latents="true")`. `config` replaces the preset's settings.

    `caution` in [0, 1): where Q(s, w) acts under a belief about w (all episodes of `amortised`, the first of others),
    its values are means over the worst share 1 − caution of the w that the belief allows; by default what `amortise`
    was given, or 0, the plain mean. `limits` on states, such as ("log10_V<=6",), are for `amortised`, which then is the
    default: an action whose predicted chance of breaking one in any of the next `within` states is above `risk` is not
    taken, unless all are such: then the safest is, and `run.remarks` says how often. `run.trace[i]["chances"]` has the
    chances of all decisions.

    With `out` (a directory) the same call goes
    on where it was stopped, to the same bits; a run with a method of your own begins anew.
    """
    key = root_key(seed)
    theta = resolve_instance(family, instance, stream(key, "adaptation/instance"))
    setting = Setting(
        preset=preset, adaptation=config, family=family, theta=theta, episodes=episodes, reward=reward,
        imagine_in=imagine_in, caution=caution_of(caution, model, config), limits=limits_of(limits, risk, within),
        on_chunk=lambda state: checkpoint.at_chunk_edge(state),
    )  # fmt: skip
    chosen = _method(method, model, setting)
    _check(chosen, model, family, episodes, batch, setting)
    check_care(chosen, model, setting, asked=caution is not None)
    if model is None and batch is not None:
        model = chosen.prepare(stream(key, "study/prepare"), batch, family)
    progress = Progress(f"learn_policy {chosen.name}, episode", episodes, quiet=quiet)
    description = _description(chosen, model, batch, setting, seed)
    directory = None if out is None else Path(out)
    checkpoint = Checkpoint(chosen, directory, description, _shown(progress, chosen, episodes))
    with interruptible() as checkpoint.interrupt, progress:
        state, transitions, evaluation = _run(chosen, model, setting, key, checkpoint)
    policy = chosen.public_policy(state, transitions.specification)
    run = _new_run(chosen, model, setting, checkpoint.record, transitions, evaluation, policy)
    if not quiet:
        tell(run.remarks)
    return chosen.completed(run, state, batch=batch, key=key)


def _run(
    method: RunnableMethod, model: Any, setting: Setting, key: PRNGKeyArray, checkpoint: Checkpoint
) -> tuple[Any, Transitions, Episode]:
    """Algorithm 1 for any method."""
    family, theta = setting.family, setting.theta
    assert family is not None
    specification = family.specification
    state = _start(method, model, specification, stream(key, "adaptation/start"), checkpoint)
    transitions = method.instance_data(state) or empty_transitions(specification, {0: theta_values(theta)})
    evaluation, evaluated = None, None
    with family.interaction(theta) as system:
        while checkpoint.record.finished < setting.episodes:
            number = checkpoint.record.finished
            checkpoint.begin()

            # A real episode, with the policy so far.
            if not checkpoint.record.is_learning:
                episode_key = stream(key, "adaptation/episode", number)
                state, steps = interact(method, state, system, specification.horizon, episode_key)
                episode = steps_to_transitions(specification, steps, episode=number, thetas=transitions.thetas)
                transitions = transitions.extended(episode)
                value = float(np.sum(episode.reward, dtype=np.float64))
                checkpoint.record = checkpoint.record.added(learning_returns=value)

            # Learn from it: tune the model of the instance, learn a policy in imagination.
            state, info = method.after_episode(stream(key, "adaptation/after_episode", number), state)
            seconds = checkpoint.spent()

            # Greedy episodes in the real environment; nothing is learned from them.
            policy = method.policy(state)
            if evaluation is None or not is_same(policy, evaluated):
                evaluation, evaluated = evaluate(family, policy, theta, key), policy
            checkpoint.record = dataclasses.replace(
                checkpoint.record.added(
                    returns=mean_return(evaluation),
                    success=success_rate(family, evaluation),
                    model_error=float(info.get("model_error", np.nan)),
                    seconds=seconds,
                ),
                trace=(*checkpoint.record.trace, info),
                seconds=0.0,
            )
            checkpoint.at_chunk_edge(state)
    checkpoint.save(state)
    if evaluation is None:
        # The run was finished by an earlier call.
        evaluation = evaluate(family, method.policy(state), theta, key)
    return state, transitions, evaluation


def _start(method: RunnableMethod, model: Any, specification: Any, key: PRNGKeyArray, checkpoint: Checkpoint) -> Any:
    """The state before the first episode, or that of an earlier call."""
    checkpoint.begin()
    restored = checkpoint.restore(key, model)
    state = method.start(key, model, specification) if restored is None else method.resumed(restored)
    if not checkpoint.record.finished and not checkpoint.record.is_learning:
        checkpoint.record = dataclasses.replace(checkpoint.record, seconds=checkpoint.spent())
    return state


def _method(method: str | AbstractMethod | None, model: Any, setting: Setting) -> RunnableMethod:
    if isinstance(method, AbstractMethod):
        return runnable(method, setting)
    if method is None and not isinstance(model, Model):
        raise ValueError(f"learn_policy needs a hipmdp.Model, or a method of your own; got {type(model).__name__}.")
    return find_method(method or default_method(model, setting), setting, "learn_policy")


def default_method(model: Model, setting: Setting) -> str:
    """The best that is known for a model: `refined` for an embedded one that has a Q(s, w), otherwise its own.

    A model of method `amortised` is one of which somebody has asked that nothing be trained at a new member. Limits are
    kept by `amortised`.
    """
    if setting.limits is not None and model.latent_policy is not None:
        return "amortised"
    given = setting.adaptation is None or setting.adaptation.pqn is not None
    plain = setting.preset == "default" and setting.imagine_in == "model" and given
    refines = plain and model.method == "embedded" and model.latent_policy is not None
    return "refined" if refines else model.method


def _check(
    method: RunnableMethod, model: Any, family: BaseFamily, episodes: int, batch: Transitions | None, setting: Setting
) -> None:
    """One clear sentence for what does not fit together."""
    if isinstance(model, Model) and model.specification != family.specification:
        raise ValueError(
            f"The model is for {model.specification.family!r}, not for {family.name!r}: use a model of this family."
        )
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}.")
    if batch is not None and batch.specification != family.specification:
        raise ValueError(f"The batch is of {batch.specification.family!r}, not of {family.name!r}.")
    known_name("reward", setting.reward, REWARDS)
    known_name("value of imagine_in", setting.imagine_in, ("model", "environment"))
    if setting.imagine_in == "environment" and not method.imagines:
        raise ValueError(f'imagine_in="environment" is for methods that imagine, which {method.name!r} does not.')
    method.check(model, batch)


def _shown(progress: Progress, method: RunnableMethod, episodes: int) -> Any:
    """A line of progress from a state: imagination takes the time, so it is what is counted where there is one."""

    def show(state: Any, record: RunRecord) -> None:
        facts = []
        done, imagined = record.finished, method.imagined_so_far(state, episodes)
        if imagined is not None:
            done, progress.total = imagined
            facts.append(f"imagined, real episode {record.finished}")
        for name, label in (("returns", "return"), ("model_error", "model error before tuning")):
            values = record.metrics[name]
            if values and not np.isnan(values[-1]):
                facts.append(f"{label} {values[-1]:.3g}")
        progress.show(done, f"({', '.join(facts)})" if facts else "")

    return show


def _description(
    method: RunnableMethod, model: Any, batch: Transitions | None, setting: Setting, seed: int
) -> dict[str, Any]:
    """What a directory's run is: the same call gives the same text."""
    config = method.used_config
    return {
        "family": repr(setting.family),
        "method": method.name,
        "model": model_digest(model) if isinstance(model, Model) else None,
        "theta": theta_values(setting.theta),
        "episodes": setting.episodes,
        "seed": seed,
        "streams": STREAMS_VERSION,
        "settings": SETTINGS_VERSION,
        "reward": setting.reward,
        "imagine_in": setting.imagine_in,
        "batch": None if batch is None else batch_digest(batch),
        "config": None if config is None else dataclasses.asdict(config),
    }


def _new_run(
    method: RunnableMethod,
    model: Any,
    setting: Setting,
    record: RunRecord,
    transitions: Transitions,
    evaluation: Episode,
    policy: Policy,
) -> Run:
    """What every method has."""
    metrics: dict[str, Any] = {name: np.asarray(values) for name, values in record.metrics.items()}
    found = [info.get("latent") for info in record.trace]
    latents = [np.asarray(latent, np.float32) for latent in found] if all(v is not None for v in found) else []
    return Run(
        method.name, setting.theta, **metrics, transitions=transitions, evaluation=evaluation, trace=record.trace,
        model=model, policy=policy, latents=latents,
    )  # fmt: skip
