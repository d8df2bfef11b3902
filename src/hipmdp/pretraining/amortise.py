"""`amortise`: one Q(s, w) for the whole family, learned in imagination before a new instance is there.

Every imagined episode has a weight draw and a w of its own, between the training latents, so that the policy is good
for every member that the family may have and for every function that the batch allows. At a new instance nothing is
left to train: infer w, act, infer again.
"""

import dataclasses
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from hipmdp._errors import check_seed
from hipmdp._progress import Progress
from hipmdp._random import root_key, stream
from hipmdp.control import pqn
from hipmdp.control.policies import Greedy, Lookahead
from hipmdp.control.policy_learner import evaluate_imagined
from hipmdp.control.pqn import FIRST_VALUES
from hipmdp.control.q_network import QNetwork, copy_network, scaled_values
from hipmdp.control.selection import by_scaled_mean
from hipmdp.data.transitions import Transitions
from hipmdp.data.work import Work, batch_digest
from hipmdp.dynamics.model import Dynamics
from hipmdp.families import FAMILIES, make
from hipmdp.families.protocol import BaseFamily
from hipmdp.families.rollout import Members, rollout
from hipmdp.imagination.build import Surroundings, conditioned_environment, mean_environment, starts_of_batch
from hipmdp.imagination.contexts import SHARED_WEIGHTS, ConditionedContext, sampled_contexts, training_contexts
from hipmdp.imagination.environment import ConditionedImagination
from hipmdp.imagination.reward import family_reward
from hipmdp.pretraining.model import Model
from hipmdp.pretraining.resume import model_digest, resumable_model
from hipmdp.settings import recipe
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.limits import check_caution

CHUNK_ITERATIONS = 8
"""Update phases between two chunk edges: about a second."""


def amortise(
    model: Model,
    batch: Transitions,
    seed: int = 0,
    config: AmortiseConfig | None = None,
    family: BaseFamily | None = None,
    quiet: bool = False,
    out: str | Path | None = None,
    *,
    caution: float = 0.0,
) -> Model:
    """Learn Q(s, w) inside an embedded model; the result is the same model with that policy, method `amortised`.

    Episodes begin where those of `batch` began. The reward is the family's R where that needs no hidden parameter (one
    of ours, or `family`), otherwise the head that `pretrain` learned from the logs.
    `caution` is how the policy acts under a belief, unless `learn_policy` has another: by the mean of Q(s, w) over the
    worst share 1 − caution of the w that are possible.
    With `out` (a directory) checkpoints and, at the end, model.hipmdp are kept there, and the same call goes on where
    it was stopped, to the same bits.
    """
    settings = config or recipe.amortise(model.specification)
    description = {
        "model": model_digest(model),
        "batch": batch_digest(batch),
        "seed": check_seed(seed),
        "config": dataclasses.asdict(settings),
        "family": None if family is None else repr(family),
    }
    if check_caution(caution):
        description["caution"] = float(caution)

    def learn(work: Work) -> Model:
        key = root_key(seed)
        learned = learn_latent_policy(model, batch, settings, family=family, key=key, quiet=quiet, work=work)
        cautious = {"caution": float(caution)} if caution else {}
        return replace(learned, method="amortised", metadata={**learned.metadata, **cautious})

    return resumable_model(out, "amortise", description, learn)


def known_family(model: Model, family: BaseFamily | None) -> BaseFamily | None:
    """The family whose R counts as known: the one that is given, or the built-in one that the model is of."""
    name = model.specification.family
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
    """The model with a Q(s, w): `amortise` with settings and a key of the caller's.

    With `work`, what was done before is not done again. Without a latent in T̂, w is zero for all members.
    """
    dynamics = _check(model, batch)
    if not model.has_latent:
        dynamics = eqx.tree_at(lambda d: d.latents, dynamics, jnp.zeros_like(dynamics.latents))
        config = replace(config, latent_spread=0.0, latent_noise=0.0)
    name, known = model.specification.family, known_family(model, family)
    starts = starts_of_batch(batch, key=stream(key, "amortise/starts"))
    reward = family_reward(known, model.reward_head, name)
    around = Surroundings(reward, starts, np.asarray(model.low), np.asarray(model.high))
    environment = conditioned_environment(dynamics, around)
    network = _new_network(model, dynamics, config, stream(key, "amortise/network"))

    def members(pool: int) -> Members:
        return Members(sampled_contexts(dynamics, config, key=stream(key, "amortise/contexts", pool)), SHARED_WEIGHTS)

    state = pqn.new_state(config.pqn, network, network.centre.shape[0], key=stream(key, "amortise/pqn"))
    state = pqn.begin(config.pqn, environment, members(0), state)
    validation = training_contexts(
        dynamics, key=stream(key, "amortise/validation_contexts"), each=config.validation_draws
    )
    judged = ConditionedContext(validation, validation.latent)
    keys = jax.random.split(stream(key, "amortise/validation"), validation.latent.shape[0])
    total = config.iterations
    progress = Progress("amortise, imagined step", total * config.pqn.steps, quiet=quiet)
    file = (work or Work()).file("amortise")
    networks: tuple[QNetwork, ...] = ()
    table: list[list[float]] = []
    kept = file.load(lambda meta: (state, (network,) * len(meta["returns"])))
    if kept is not None:
        (state, networks), table = kept[0], kept[1]["returns"]
        progress.skip(int(state.iteration) * config.pqn.steps)
    for pool in range(len(table), config.pools):
        drawn, goal = members(pool), total * (pool + 1) // config.pools
        state = pqn.with_members(config.pqn, environment, drawn, state)
        while (done := int(state.iteration)) < goal:
            count = min(goal - done, CHUNK_ITERATIONS)
            state = pqn.run_iterations(config.pqn, environment, drawn, state, iterations=count, total=total)
            progress.show(int(state.iteration) * config.pqn.steps)
            file.at_chunk_edge((state, networks), {"returns": table})
        returns = evaluate_imagined(environment, judged, state.online, keys)
        networks = (*networks, copy_network(state.online))
        table = [*table, returns.tolist()]
        progress.show(goal * config.pqn.steps, f"(median imagined return {np.median(returns):.4g})")
    progress.close()
    best = pqn.values_network(config.pqn, networks[by_scaled_mean(np.asarray(table))])
    lookahead = Lookahead(
        mean_environment(dynamics, around),
        unit=state.unit.value,
        discount=config.pqn.discount,
        squash=config.pqn.squash,
        steps=recipe.steps_ahead(model.specification.action_count),
    )
    error = float(_value_error(environment, judged, best, lookahead, jax.random.clone(keys)))
    metadata = {**model.metadata, "policy_unit": float(state.unit.value), "policy_error": error}
    return replace(model, latent_policy=best, metadata=metadata)


@eqx.filter_jit
def _value_error(
    environment: ConditionedImagination,
    members: ConditionedContext,
    network: QNetwork,
    lookahead: Lookahead,
    keys: Key[Array, " members"],
) -> Float[Array, ""]:
    """Standard deviation of V_n − Q along greedy imagined episodes: how far values of different states disagree."""
    size = environment.imagination.dynamics.specification.state_size

    def one(row: tuple[PRNGKeyArray, ConditionedContext]) -> tuple[Array, Array]:
        key, context = row
        rollout_key, ahead_key = jax.random.split(key)
        episode = rollout(environment, Greedy(network), rollout_key, context)

        def residual(state: Float[Array, " conditioned"]) -> Float[Array, ""]:
            values = network(state)
            ahead = lookahead(network, ahead_key, state[:size], state[size:])
            return (ahead - values)[jnp.argmax(values)]

        return jax.vmap(residual)(episode.steps.state), episode.valid

    residuals, valid = jax.lax.map(one, (keys, members))
    count = jnp.sum(valid, dtype=residuals.dtype)
    mean = jnp.sum(jnp.where(valid, residuals, 0)) / count
    return jnp.sqrt(jnp.sum(jnp.where(valid, (residuals - mean) ** 2, 0)) / count)


def _check(model: Model, batch: Transitions) -> Dynamics:
    dynamics = model.need_dynamics("amortise")
    if dynamics.latents.shape[0] < 1:
        raise ValueError(f"amortise needs a model that was trained on a batch, not {model!r}.")
    if model.oracle is not None:
        raise ValueError('amortise needs learned latents: with latents="true" there is no w_b to be inferred.')
    dynamics.check(batch)
    return dynamics


def _new_network(model: Model, dynamics: Dynamics, config: AmortiseConfig, key: PRNGKeyArray) -> QNetwork:
    prior = dynamics.latent_prior
    centre = jnp.concatenate([jnp.asarray(model.specification.from_origin(model.centre)), prior.mean])
    scale = jnp.concatenate([jnp.asarray(model.scale, jnp.float32), jnp.sqrt(prior.variance)])
    actions = model.specification.action_count
    network = QNetwork(centre, scale, actions, config.pqn.hidden, normalised=True, key=key)
    return scaled_values(network, FIRST_VALUES)
