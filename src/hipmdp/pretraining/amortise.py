"""`amortise`: one Q(s, w) for the whole family, learned in imagination before a new instance is there.

Every imagined episode has a weight draw and a w of its own, around the training latents, so that the policy is good for
every member that the family may have and for every function that the batch allows. At a new instance nothing is left
to train: infer w, act, infer again.
"""

import dataclasses
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._errors import check_seed
from hipmdp._progress import Progress
from hipmdp._random import root_key, stream
from hipmdp.control import dqn
from hipmdp.control.policy_learner import evaluate_imagined
from hipmdp.control.q_network import QNetwork, copy_network
from hipmdp.control.selection import by_scaled_mean
from hipmdp.data.transitions import Transitions
from hipmdp.data.work import Work, batch_digest
from hipmdp.dynamics.model import Dynamics
from hipmdp.families import FAMILIES, make
from hipmdp.families.protocol import BaseFamily
from hipmdp.imagination.build import Surroundings, conditioned_environment, starts_of_batch
from hipmdp.imagination.contexts import ConditionedContext, sampled_contexts, training_contexts
from hipmdp.imagination.reward import family_reward
from hipmdp.pretraining.model import Model
from hipmdp.pretraining.resume import model_digest, resumable_model
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.presets import amortise_preset


def amortise(
    model: Model,
    batch: Transitions,
    seed: int = 0,
    preset: str = "default",
    config: AmortiseConfig | None = None,
    family: BaseFamily | None = None,
    quiet: bool = False,
    out: str | Path | None = None,
) -> Model:
    """Learn Q(s, w) inside an embedded model; the result is the same model with that policy, method `amortised`.

    Episodes begin where those of `batch` began. The reward is the family's R where that needs no hidden parameter (one
    of ours, or `family`), otherwise the head that `pretrain` learned from the logs.
    With `out` (a directory) checkpoints and, at the end, model.hipmdp are kept there, and the same call goes on where
    it was stopped, to the same bits.
    """
    settings = config or amortise_preset(preset, model.specification, model.facts)
    description = {
        "model": model_digest(model),
        "batch": batch_digest(batch),
        "seed": check_seed(seed),
        "config": dataclasses.asdict(settings),
        "family": None if family is None else repr(family),
    }

    def learn(work: Work) -> Model:
        return learn_latent_policy(model, batch, settings, family=family, key=root_key(seed), quiet=quiet, work=work)

    return resumable_model(out, "amortise", description, learn)


def _known_family(name: str, family: BaseFamily | None) -> BaseFamily | None:
    return family if family is not None else make(name) if name in FAMILIES else None


def learn_latent_policy(
    model: Model,
    batch: Transitions,
    config: AmortiseConfig,
    *,
    family: BaseFamily | None,
    key: PRNGKeyArray,
    quiet: bool = False,
    work: Work | None = None,
) -> Model:
    """`amortise` with settings and a key of the caller's; with `work`, what was done before is not done again."""
    dynamics = _check(model, batch)
    name = model.specification.family
    known = _known_family(name, family)
    starts = starts_of_batch(batch, key=stream(key, "amortise/starts"))
    reward = family_reward(known, model.reward_head, name)
    around = Surroundings(reward, starts, np.asarray(model.low), np.asarray(model.high))
    environment = conditioned_environment(dynamics, around)
    network = _new_network(model, dynamics, config, stream(key, "amortise/network"))
    capacity = min(config.episodes * model.specification.horizon, config.capacity)
    state = dqn.init(network, config.dqn, capacity, stream(key, "amortise/dqn"))
    validation = training_contexts(
        dynamics, key=stream(key, "amortise/validation_contexts"), each=config.validation_draws
    )
    judged = ConditionedContext(validation, validation.latent)
    keys = jax.random.split(stream(key, "amortise/validation"), validation.latent.shape[0])
    ticks = -(-environment.horizon // config.dqn.steps_per_phase)
    progress = Progress("amortise, imagined episode", config.episodes, quiet=quiet)
    file = (work or Work()).file("amortise")
    networks: tuple[QNetwork, ...] = ()
    table: list[list[float]] = []
    kept = file.load(lambda meta: (state, (network,) * len(meta["returns"])))
    if kept is not None:
        (state, networks), table = kept[0], kept[1]["returns"]
        progress.skip(config.episodes * len(table) // config.pools)
    for pool in range(len(table), config.pools):
        goal = config.episodes * (pool + 1) // config.pools
        contexts = sampled_contexts(dynamics, config, key=stream(key, "amortise/contexts", pool))
        while not bool(dqn.is_finished(state, goal)):
            state = dqn.learn_only(config.dqn, environment, contexts, state, goal, ticks)
            file.at_chunk_edge((state, networks), {"returns": table})
        returns = evaluate_imagined(environment, judged, state.target, keys)
        networks = (*networks, copy_network(state.target))
        table = [*table, returns.tolist()]
        progress.show(goal, f"(median imagined return {np.median(returns):.4g})")
    progress.close()
    scale = config.dqn.reward_scale
    metadata = {**model.metadata, "policy_unit": float(state.unit.value) if scale is None else 1 / scale}
    policy = networks[by_scaled_mean(np.asarray(table))]
    return replace(model, method="amortised", latent_policy=policy, metadata=metadata)


def _check(model: Model, batch: Transitions) -> Dynamics:
    dynamics = model.need_dynamics("amortise")
    if not model.has_latent or dynamics.latents.shape[0] < 2:
        raise ValueError(f"amortise needs a model with the latents of two instances or more, not {model!r}.")
    if model.oracle is not None:
        raise ValueError('amortise needs learned latents: with latents="true" there is no w_b to be inferred.')
    dynamics.check(batch)
    return dynamics


def _new_network(model: Model, dynamics: Dynamics, config: AmortiseConfig, key: PRNGKeyArray) -> QNetwork:
    prior = dynamics.latent_prior
    centre = jnp.concatenate([jnp.asarray(model.specification.from_origin(model.centre)), prior.mean])
    scale = jnp.concatenate([jnp.asarray(model.scale, jnp.float32), jnp.sqrt(prior.variance)])
    return QNetwork(centre, scale, model.specification.action_count, config.dqn.hidden, key=key)
