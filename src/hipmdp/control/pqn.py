"""Q(λ) in many lanes of a simulator, without a replay and without a target network (PQN, Gallici et al. 2025).

An *iteration* is `steps_per_phase` ε-greedy steps of every lane, and then some epochs of regression on their λ-returns
(y in the units of the values, h the compression of `target.squash`):

    G_t = r_t + γ ((1 − λ) max_a Q(s_{t+1}, a) + λ G_{t+1}),  y_t = h(G_t)

Where an episode terminates nothing follows r_t; where it is cut, or time is up, or the phase ends, λ is 0. Layer
normalisation keeps the regression stable. Imagination is a simulator in which steps cost next to nothing: large
batches of fresh steps learn faster there than small ones from a replay.

ε and the learning rate fall over a *round* of iterations; a further round begins again with less exploration.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp._optimise import apply_optimizer
from hipmdp.control.exploration import Events, Held, draw_exploration, explore, no_events, nothing_held
from hipmdp.control.q_network import QNetwork, scaled_values
from hipmdp.control.reward_unit import RewardUnit, known_unit, unknown_unit
from hipmdp.control.target import squash, unsquash
from hipmdp.families.rollout import AbstractEnvironment, Members
from hipmdp.settings.pqn import PQNConfig

LAST_RATE = 0.01
"""Share of the learning rate that is left at the end."""
FIRST_VALUES = 0.01
"""How much smaller than He's the last layer's weights of an untrained network are: its values are near zero (PQN)."""


class PQNState(NamedTuple):
    """Everything that changes; saving it is enough to go on to the same bits."""

    online: QNetwork
    """c h(Q), of order one; `values_network` gives h(Q)."""
    optimizer: optax.OptState
    state: Float[Array, "lanes state"]
    time: Int[Array, " lanes"]
    held: Held
    """The random action of each lane that is held."""
    unit: RewardUnit
    """What rewards are divided by."""
    events: Events
    """Whether random actions are held."""
    iteration: Int[Array, ""]
    episodes: Int[Array, ""]
    """Episodes that have ended."""
    key: PRNGKeyArray


class Steps(NamedTuple):
    """What happened in a phase; every field has leading axes of steps and lanes."""

    state: Float[Array, "*steps state"]
    action: Int[Array, "*steps"]
    reward: Float[Array, "*steps"]
    next_state: Float[Array, "*steps state"]
    terminated: Bool[Array, "*steps"]
    truncated: Bool[Array, "*steps"]


def _over_lanes(config: PQNConfig, function: Any, members: Members, *arguments: Any) -> Any:
    """`function(*arguments, context)` for every lane; what a group shares is used by its lanes together."""
    shape = (config.groups, config.members)
    split = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), arguments)
    inner = jax.vmap(function, in_axes=(*(0 for _ in arguments), members.axes))
    result = jax.vmap(inner)(*split, members.contexts)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), result)


def _optimizer(config: PQNConfig, iterations: Int[Array, ""] | int) -> optax.GradientTransformation:
    updates = config.epochs * config.minibatches * iterations

    def rate(count: Int[Array, ""]) -> Float[Array, ""]:
        share = (count % updates) / updates
        return jnp.asarray(config.learning_rate * (1 - (1 - LAST_RATE) * share))

    return optax.chain(optax.clip_by_global_norm(config.max_gradient_norm), optax.radam(rate))


def new_state(
    config: PQNConfig, network: QNetwork, state_size: int, *, key: PRNGKeyArray, unit: float | None = None
) -> PQNState:
    """A learner whose network gives c h(Q) (in `unit`s, where they are known) and whose lanes have not begun."""
    known = config.reward_unit if unit is None else unit
    optimizer = _optimizer(config, 1).init(eqx.filter(network, eqx.is_inexact_array))
    return PQNState(
        network,
        optimizer,
        state=jnp.zeros((config.lanes, state_size), jnp.float32),
        time=jnp.zeros((config.lanes,), jnp.int32),
        held=nothing_held((config.lanes,)),
        unit=unknown_unit() if known is None else known_unit(known),
        events=no_events(config.lanes),
        iteration=jnp.zeros((), jnp.int32),
        episodes=jnp.zeros((), jnp.int32),
        key=jnp.copy(key),
    )


@eqx.filter_jit
def begin(config: PQNConfig, environment: AbstractEnvironment, members: Members, state: PQNState) -> PQNState:
    """The same learner with an episode under way in every lane."""
    reset_key, time_key, key = jax.random.split(state.key, 3)
    first = _over_lanes(config, environment.reset, members, jax.random.split(reset_key, config.lanes))
    # Lanes are at different times of their episodes from the beginning.
    time = jax.random.randint(time_key, (config.lanes,), 0, environment.horizon, jnp.int32)
    return state._replace(state=first, time=time, key=key)


@eqx.filter_jit
def with_members(config: PQNConfig, environment: AbstractEnvironment, members: Members, state: PQNState) -> PQNState:
    """The same learner whose lanes go on with other members."""
    return state._replace(state=_over_lanes(config, environment.restart, members, state.state))


def interact(
    config: PQNConfig, environment: AbstractEnvironment, members: Members, state: PQNState, epsilon: Float[Array, ""]
) -> tuple[PQNState, Steps]:
    """One ε-greedy step of every lane; a lane whose episode is over begins the next one."""
    key, explore_key, step_key, reset_key = jax.random.split(state.key, 4)
    values = jax.vmap(state.online)(state.state)
    greedy = jnp.argmax(values, axis=-1).astype(jnp.int32)
    longest = config.longest_run
    exploration = draw_exploration(explore_key, (config.lanes,), values.shape[-1], longest)
    action, held = explore(exploration, epsilon, greedy, held=state.held, longest=longest, holds=state.events.holds)
    outcome = _over_lanes(
        config, environment.step, members, jax.random.split(step_key, config.lanes), state.state, action
    )
    time = state.time + 1
    truncated = ~outcome.terminated & ((time >= environment.horizon) | outcome.cut)
    over = outcome.terminated | truncated
    fresh = _over_lanes(config, environment.reset, members, jax.random.split(reset_key, config.lanes))
    steps = Steps(state.state, action, outcome.reward, outcome.state, outcome.terminated, truncated)
    after = jnp.where(over[:, None], fresh, outcome.state)
    held = held._replace(left=jnp.where(over, 0, held.left))
    episodes = state.episodes + jnp.sum(over, dtype=jnp.int32)
    events = state.events.observe(outcome.reward, outcome.terminated, truncated, jnp.ones_like(over))
    time = jnp.where(over, 0, time)
    return state._replace(state=after, time=time, held=held, episodes=episodes, events=events, key=key), steps


def lambda_returns(
    reward: Float[Array, "steps lanes"],
    next_value: Float[Array, "steps lanes"],
    terminated: Bool[Array, "steps lanes"],
    truncated: Bool[Array, "steps lanes"],
    *,
    discount: float,
    trace_decay: float,
) -> Float[Array, "steps lanes"]:
    """G of every step, from the last to the first; `next_value` is max_a Q(s', a)."""

    def back(following: Float[Array, " lanes"], row: Any) -> tuple[Array, Array]:
        reward, value, terminated, truncated = row
        mixed = jnp.where(truncated, value, (1 - trace_decay) * value + trace_decay * following)
        total = reward + discount * jnp.where(terminated, 0, mixed)
        return total, total

    rows = (reward, next_value, terminated, truncated)
    return jax.lax.scan(back, next_value[-1], rows, reverse=True)[1]


def learn(config: PQNConfig, state: PQNState, steps: Steps, optimizer: optax.GradientTransformation) -> PQNState:
    """Some epochs of regression on the λ-returns of a phase."""
    valid = jnp.ones(steps.reward.size, bool)
    unit = state.unit.observe(steps.reward.reshape(-1), valid)
    c = config.squash
    next_value = unsquash(jnp.max(jax.vmap(jax.vmap(state.online))(steps.next_state), axis=-1) / c, c)
    returns = lambda_returns(
        steps.reward / unit.value,
        next_value,
        steps.terminated,
        steps.truncated,
        discount=config.discount,
        trace_decay=config.trace_decay,
    )
    flat = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (steps.state, steps.action, c * squash(returns, c))
    )
    key, order_key = jax.random.split(state.key)

    def minibatch(carry: Any, rows: Int[Array, " rows"]) -> tuple[Any, None]:
        online, optimizer_state = carry
        states, actions, targets = jax.tree.map(lambda leaf: leaf[rows], flat)

        def loss(online: QNetwork) -> Float[Array, ""]:
            values = jax.vmap(online)(states)
            chosen = jnp.take_along_axis(values, actions[:, None], axis=1)[:, 0]
            return jnp.mean((chosen - targets) ** 2) / 2

        return apply_optimizer(optimizer, eqx.filter_grad(loss)(online), optimizer_state, online), None

    def epoch(carry: Any, key: PRNGKeyArray) -> tuple[Any, None]:
        order = jax.random.permutation(key, jnp.arange(config.steps, dtype=jnp.int32))
        return jax.lax.scan(minibatch, carry, order.reshape(config.minibatches, -1))

    carry = (state.online, state.optimizer)
    (online, optimizer_state), _ = jax.lax.scan(epoch, carry, jax.random.split(order_key, config.epochs))
    return state._replace(online=online, optimizer=optimizer_state, unit=unit, key=key)


def exploration_rate(config: PQNConfig, iteration: Int[Array, ""], total: Int[Array, ""]) -> Float[Array, ""]:
    """ε: it falls over a share of every round of `total` iterations."""
    start = jnp.where(iteration < total, config.epsilon_start, min(config.epsilon_start, config.epsilon_again))
    share = (iteration % total) / total / config.exploring_share
    return jnp.maximum(config.epsilon_floor, start - (start - config.epsilon_floor) * share)


Kept = tuple[PQNConfig, AbstractEnvironment, Members, Int[Array, ""], Int[Array, ""]]
"""(config, environment, members, iterations of this call, iterations of a round): what is not donated."""


@eqx.filter_jit(donate="all-except-first")
def _run(kept: Kept, state: PQNState) -> PQNState:
    config, environment, members, count, total = kept
    optimizer = _optimizer(config, total)

    def one(_: Any, state: PQNState) -> PQNState:
        epsilon = exploration_rate(config, state.iteration, total)

        def step(state: PQNState, _: None) -> tuple[PQNState, Steps]:
            return interact(config, environment, members, state, epsilon)

        state, steps = jax.lax.scan(step, state, None, config.steps_per_phase)
        state = learn(config, state, steps, optimizer)
        return state._replace(iteration=state.iteration + 1)

    return jax.lax.fori_loop(0, count, one, state)


def run_iterations(
    config: PQNConfig,
    environment: AbstractEnvironment,
    members: Members,
    state: PQNState,
    *,
    iterations: int,
    total: int,
) -> PQNState:
    """`iterations` iterations in one jitted call, in rounds of `total`. `state` is donated: use what is returned."""
    counts = (jnp.asarray(iterations, jnp.int32), jnp.asarray(total, jnp.int32))
    return _run((config, environment, members, *counts), state)


def values_network(config: PQNConfig, network: QNetwork) -> QNetwork:
    """The network of h(Q), as a DQN holds it: the outputs divided by c, in arrays of its own."""
    return scaled_values(network, 1 / config.squash)
