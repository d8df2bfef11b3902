"""`amortise`: one Q(s, w) for the whole family, learned in imagination before anybody is met.

Every imagined episode has a weight draw and a w of its own, around the training latents, so that the policy is good for
every member that the family may have and for every function that the batch allows. At a new instance nothing is left
to train: infer w, act, infer again.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.control import learner
from hipmdp.control.network import QNetwork
from hipmdp.control.train import copied, finished
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.model import Dynamics
from hipmdp.families import FAMILIES, make
from hipmdp.families.family import AbstractFamily
from hipmdp.transfer.config import AmortiseConfig, amortise_preset
from hipmdp.transfer.imagination import Conditioned, Context, Imagination, Perceived, data_limits, known_contexts
from hipmdp.transfer.model import Model
from hipmdp.transfer.progress import Progress
from hipmdp.transfer.rewards import AbstractReward, GivenReward, LearnedReward
from hipmdp.transfer.simulate import look

STARTS = 256
"""First states of the batch that imagination knows."""


def amortise(
    model: Model,
    batch: Transitions,
    seed: int = 0,
    preset: str = "default",
    config: AmortiseConfig | None = None,
    family: AbstractFamily | None = None,
    quiet: bool = False,
) -> Model:
    """Learn Q(s, w) inside an embedded model; the result is the same model with that policy, method `amortised`.

    Episodes begin where those of `batch` began. The reward is the family's R where that needs no hidden parameter (one
    of ours, or `family`), otherwise the head that `pretrain` learned from the logs.
    """
    dynamics = model.need_dynamics("amortise")
    if not model.has_latent or dynamics.latents.shape[0] < 2:
        raise ValueError(f"amortise needs a model with the latents of two instances or more, not {model!r}.")
    if model.oracle is not None:
        raise ValueError('amortise needs learned latents: with latents="true" there is no w_b to be inferred.')
    dynamics.check(batch)
    settings = config or amortise_preset(preset, model.specification)
    key = jax.random.key(seed)
    network_key, learner_key, pool_key, look_key = jax.random.split(key, 4)
    environment = Conditioned(_imagination(model, batch, family, seed))
    network = _new_network(model, dynamics, settings, network_key)
    capacity = min(settings.episodes * model.specification.horizon, settings.capacity)
    state = learner.init(network, settings.learner, capacity, learner_key)
    known = known_contexts(dynamics, look_key, settings.looks_per_latent)
    judged = Perceived(known, known.latent)
    keys = jax.random.split(look_key, judged.perceived.shape[0])
    ticks = -(-environment.horizon // settings.learner.steps_per_phase)
    progress = Progress("amortise, imagined episode", settings.episodes, quiet=quiet)
    networks, table = [], []
    for pool in range(settings.pools):
        goal = settings.episodes * (pool + 1) // settings.pools
        contexts = draw_members(dynamics, settings, jax.random.fold_in(pool_key, pool))
        while not finished(state, goal):
            state = learner.learn_only(settings.learner, environment, contexts, state, goal, ticks)
        returns = look(environment, judged, state.target, keys)
        networks.append(copied(state.target))
        table.append(returns)
        progress.show(goal, f"(median imagined return {np.median(returns):.4g})")
    progress.close()
    return replace(model, method="amortised", policy=networks[_most_even(np.asarray(table))])


def _most_even(returns: np.ndarray) -> int:
    """The row of (policies, members) with the highest mean, each member's returns scaled to [0, 1] over the policies.

    Returns of members differ by powers of ten. Ranks would cure that too, but prefer a policy that is a little faster
    on most and gets stuck on one.
    """
    low, high = returns.min(axis=0), returns.max(axis=0)
    return int(np.argmax(np.mean((returns - low) / np.maximum(high - low, 1e-9), axis=1)))


def _imagination(model: Model, batch: Transitions, family: AbstractFamily | None, seed: int) -> Imagination:
    first = batch.state[batch.time == 0]
    chosen = np.random.default_rng(seed).permutation(len(first))[:STARTS]
    limits = data_limits(np.asarray(model.low), np.asarray(model.high))
    dynamics = model.need_dynamics("amortise")
    starts = jnp.asarray(first[np.sort(chosen)], jnp.float32)
    return Imagination(dynamics, _reward(model, family), starts, limits)


def _reward(model: Model, family: AbstractFamily | None) -> AbstractReward:
    name = model.specification.family
    known = family if family is not None else make(name) if name in FAMILIES else None
    if known is not None and known.knows_reward and not known.reward_needs_theta:
        return GivenReward(known, None)
    if model.reward_head is None:
        raise ValueError(
            f"amortise needs a reward: {name!r} gives none for all its members, and the batch has none to learn."
        )
    return LearnedReward(model.reward_head)


def _new_network(model: Model, dynamics: Dynamics, config: AmortiseConfig, key: PRNGKeyArray) -> QNetwork:
    prior = dynamics.latent_prior
    centre = jnp.concatenate([jnp.asarray(model.centre, jnp.float32), prior.mean])
    scale = jnp.concatenate([jnp.asarray(model.scale, jnp.float32), jnp.sqrt(prior.variance)])
    return QNetwork(centre, scale, model.specification.action_count, config.learner.hidden, key=key)


def draw_members(dynamics: Dynamics, config: AmortiseConfig, key: PRNGKeyArray) -> Perceived:
    """A pool of imagined members: w around a training latent, a weight draw, and a w that is perceived.

    Half of them are perceived a little wrong: at a new instance w is inferred, never known.
    """
    pick_key, near_key, error_key, weight_key = jax.random.split(key, 4)
    count = config.members
    scale = jnp.sqrt(dynamics.latent_prior.variance)[None]
    # All training instances in turn, in an order of their own.
    order = jax.random.permutation(pick_key, jnp.arange(count, dtype=jnp.int32)) % dynamics.latents.shape[0]

    def normals(key: PRNGKeyArray) -> Float[Array, "members latent"]:
        return scale * jax.random.normal(key, (count, scale.shape[1]), jnp.float32)

    latents = dynamics.latents[order] + config.member_spread * normals(near_key)
    wrong = (jnp.arange(count) % 2 == 1)[:, None]
    perceived = latents + jnp.where(wrong, config.perception_error * normals(error_key), 0.0)
    weights: Array = dynamics.draw_weights(weight_key, count)
    return Perceived(Context(weights[:, None], latents), perceived)
