"""Double DQN over any step function, real or imagined, in lanes: one jit over a scan.

A *tick* is N_π steps of every lane and then one update phase. A lane whose episode ended starts the next one at
once, as long as episodes below `episode_limit` are left; otherwise it idles. Episode i runs on the instance
i mod n of the n stacked contexts. `run_ticks` is called chunk by chunk.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp._optimise import apply_optimizer
from hipmdp.control.exploration import Events, Held, draw_exploration, epsilon, explore, no_events, nothing_held
from hipmdp.control.q_network import QNetwork, copy_network
from hipmdp.control.reward_unit import RewardUnit, known_unit, unknown_unit
from hipmdp.control.target import double_q_target, td_error
from hipmdp.data import replay as replays
from hipmdp.data.experience import LoggedSteps
from hipmdp.families.rollout import AbstractEnvironment, Transition
from hipmdp.settings.dqn import DDQNConfig


class Lanes(NamedTuple):
    """Where each lane is."""

    state: Float[Array, "lanes state"]
    time: Int[Array, " lanes"]
    episode: Int[Array, " lanes"]
    active: Bool[Array, " lanes"]
    held: Held
    """The random action of each lane that is held."""


class DQNState(NamedTuple):
    """Everything that changes; saving it is enough to go on to the same bits."""

    online: QNetwork
    target: QNetwork
    optimizer: optax.OptState
    replay: replays.Replay
    lanes: Lanes
    started: Int[Array, ""]
    """Episodes started so far."""
    unit: RewardUnit
    """What rewards are divided by, where the settings do not say."""
    events: Events
    """Whether random actions are held."""
    key: PRNGKeyArray


def make_optimizer(config: DDQNConfig) -> optax.GradientTransformation:
    """Adam after clipping by the global norm."""
    return optax.chain(optax.clip_by_global_norm(config.max_gradient_norm), optax.adam(config.learning_rate))


def init(
    network: QNetwork, config: DDQNConfig, capacity: int, key: PRNGKeyArray, *, unit: float | None = None
) -> DQNState:
    """A DQN with an empty replay for `capacity` transitions.

    `unit` is the size of a typical reward, where it is known; otherwise the first rewards say it.
    """
    size = network.centre.shape[0]
    zero = jnp.zeros(size, jnp.float32)
    example = Transition(zero, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.float32), zero, jnp.zeros((), bool))
    lanes = Lanes(
        jnp.zeros((config.lanes, size), jnp.float32),
        jnp.zeros(config.lanes, jnp.int32),
        jnp.zeros(config.lanes, jnp.int32),
        jnp.zeros(config.lanes, bool),
        nothing_held((config.lanes,)),
    )
    optimizer = make_optimizer(config).init(eqx.filter(network, eqx.is_inexact_array))
    # A copy: donated buffers must not be shared between the two networks.
    target = copy_network(network)
    replay = replays.init(example, capacity)
    rewards = unknown_unit() if unit is None else known_unit(unit)
    return DQNState(
        network, target, optimizer, replay, lanes, jnp.zeros((), jnp.int32), rewards, no_events(config.lanes), key
    )


def act(
    config: DDQNConfig, environment: AbstractEnvironment, contexts: Any, state: DQNState, limit: Int[Array, ""]
) -> tuple[DQNState, LoggedSteps]:
    """One ε-greedy step of every lane; lanes without an episode start one if there is one left."""
    lanes = state.lanes
    count = jax.tree.leaves(contexts)[0].shape[0]
    key, reset_key, restart_key, action_key, step_key = jax.random.split(state.key, 5)
    # Hand out the next episode numbers to lanes that want one, in order.
    want = ~lanes.active
    number = state.started + jnp.cumsum(want, dtype=jnp.int32) - 1
    begin = want & (number < limit)
    episode = jnp.where(begin, number, lanes.episode)
    started = state.started + jnp.sum(begin, dtype=jnp.int32)
    active = lanes.active | begin
    context = jax.tree.map(lambda leaf: leaf[episode % count], contexts)
    fresh = jax.vmap(environment.reset)(jax.random.split(reset_key, config.lanes), context)
    if config.restart_share > 0:
        fresh = _restart(config, environment, restart_key, state.replay, fresh, context)
    before = jnp.where(begin[:, None], fresh, lanes.state)
    time = jnp.where(begin, 0, lanes.time)

    values = jax.vmap(state.online)(before)
    greedy = jnp.argmax(values, axis=-1).astype(jnp.int32)
    longest = config.longest_run
    exploration = draw_exploration(action_key, (config.lanes,), values.shape[-1], longest)
    held = lanes.held._replace(left=jnp.where(begin, 0, lanes.held.left))
    action, held = explore(
        exploration, epsilon(config, episode), greedy, held=held, longest=longest, holds=state.events.holds
    )
    outcome = _over_lanes(environment.step, jax.random.split(step_key, config.lanes), before, action, context)
    time = time + 1
    truncated = ~outcome.terminated & ((time >= environment.horizon) | outcome.cut)
    rows = LoggedSteps(
        Transition(before, action, outcome.reward, outcome.state, outcome.terminated),
        truncated,
        episode,
        time - 1,
        active,
    )
    lanes = Lanes(outcome.state, time, episode, active & ~outcome.terminated & ~truncated, held)
    events = state.events.observe(outcome.reward, outcome.terminated, truncated, active)
    return state._replace(lanes=lanes, started=started, events=events, key=key), rows


def _over_lanes(function: Any, *arguments: Any) -> Any:
    """vmap; for one lane the plain function, as XLA's code for scalars is five times as fast as for arrays of one."""
    if jax.tree.leaves(arguments)[0].shape[0] > 1:
        return jax.vmap(function)(*arguments)
    result = function(*jax.tree.map(lambda leaf: leaf[0], arguments))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], result)


def _restart(
    config: DDQNConfig,
    environment: AbstractEnvironment,
    key: PRNGKeyArray,
    replay: replays.Replay,
    fresh: Float[Array, "lanes state"],
    context: Any,
) -> Float[Array, "lanes state"]:
    """Start a share of the new episodes in a state of the replay, or in one of the environment's `restart_states`."""
    share_key, row_key = jax.random.split(key)
    chosen = jax.random.uniform(share_key, (config.lanes,)) < config.restart_share
    states = environment.restart_states
    size = replay.size if states is None else jnp.asarray(states.shape[0], jnp.int32)
    row = jax.random.randint(row_key, (config.lanes,), 0, jnp.maximum(size, 1), jnp.int32)
    again = jax.vmap(environment.restart)((replay.items.state if states is None else states)[row], context)
    return jnp.where((chosen & (size > 0))[:, None], again, fresh)


def update(config: DDQNConfig, state: DQNState) -> DQNState:
    """One mini-batch: sample, step on the weighted squared TD error, move the target net, set priorities."""
    key, sample_key = jax.random.split(state.key)
    batch = replays.sample(state.replay, sample_key, config.batch_size, config.importance_exponent)
    items: Transition = batch.items
    discount = jnp.where(items.terminated, 0, config.discount)
    scale = 1 / state.unit.value if config.reward_scale is None else config.reward_scale
    q_t_online = jax.vmap(state.online)(items.next_state)
    q_t_target = jax.vmap(state.target)(items.next_state)
    target = jax.vmap(double_q_target, in_axes=(0, 0, 0, 0, None))(
        items.reward * scale, discount, q_t_online, q_t_target, config.squash
    )

    def loss(online: QNetwork) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
        errors = jax.vmap(td_error)(jax.vmap(online)(items.state), items.action, target)
        return jnp.mean(batch.weights * errors**2) / 2, errors

    gradient, errors = eqx.filter_grad(loss, has_aux=True)(state.online)
    online, optimizer = apply_optimizer(make_optimizer(config), gradient, state.optimizer, state.online)
    moved = optax.incremental_update(online, state.target, config.target_rate)
    replay = replays.set_priorities(state.replay, batch.indices, errors, config.priority_exponent)
    return state._replace(online=online, target=moved, optimizer=optimizer, replay=replay, key=key)


def tick(
    config: DDQNConfig, environment: AbstractEnvironment, contexts: Any, state: DQNState, limit: Int[Array, ""]
) -> tuple[DQNState, LoggedSteps]:
    """N_π steps of every lane, then an update phase that keeps the paper's ratio of updates to steps."""

    def one(state: DQNState, _: None) -> tuple[DQNState, LoggedSteps]:
        return act(config, environment, contexts, state, limit)

    state, rows = jax.lax.scan(one, state, None, config.steps_per_phase)
    flat: LoggedSteps = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rows)
    return learn(config, state, flat), flat


def copy_state(state: DQNState) -> DQNState:
    """The same DQN in arrays of its own, for a call that donates them."""
    return jax.tree.map(lambda leaf: jax.random.clone(leaf) if _is_key(leaf) else jnp.copy(leaf), state)


def _is_key(leaf: Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


@eqx.filter_jit(donate="all-except-first")
def _learn_from(kept: tuple[DDQNConfig, LoggedSteps], state: DQNState) -> DQNState:
    config, rows = kept
    return learn(config, state, rows)


def learn_from(config: DDQNConfig, rows: LoggedSteps, state: DQNState) -> DQNState:
    """The update phase after steps that were taken elsewhere. `state` is donated: use what is returned."""
    return _learn_from((config, rows), state)


def learn(config: DDQNConfig, state: DQNState, flat: LoggedSteps) -> DQNState:
    """The update phase after these rows."""
    state = state._replace(
        replay=replays.add(state.replay, flat.transition, flat.valid),
        unit=state.unit.observe(flat.transition.reward, flat.valid),
    )

    def body(_: Any, state: DQNState) -> DQNState:
        return update(config, state)

    # A loop of no rounds where nothing happened.
    rounds = jnp.where(jnp.any(flat.valid), config.minibatches * config.lanes, 0)
    return jax.lax.fori_loop(0, rounds, body, state)


Kept = tuple[DDQNConfig, AbstractEnvironment, int, Any, Int[Array, ""]]
"""(config, environment, ticks, contexts, episode limit): the arguments that are not donated."""


@eqx.filter_jit(donate="all-except-first")
def _run(kept: Kept, state: DQNState) -> tuple[DQNState, LoggedSteps]:
    config, environment, ticks, contexts, limit = kept

    def body(state: DQNState, _: None) -> tuple[DQNState, LoggedSteps]:
        return tick(config, environment, contexts, state, limit)

    return jax.lax.scan(body, state, None, ticks)


def run_ticks(
    config: DDQNConfig, environment: AbstractEnvironment, contexts: Any, state: DQNState, limit: int, ticks: int
) -> tuple[DQNState, LoggedSteps]:
    """`ticks` ticks in one jitted call. `state` is donated: use what is returned."""
    return _run((config, environment, ticks, contexts, jnp.asarray(limit, jnp.int32)), state)


def is_finished(state: DQNState, limit: Int[Array, ""] | int) -> Bool[Array, ""]:
    """All episodes below `limit` were started and none is under way."""
    return (state.started >= limit) & ~jnp.any(state.lanes.active)


@eqx.filter_jit(donate="all-except-first")
def _learn_only(kept: Kept, state: DQNState) -> DQNState:
    config, environment, ticks, contexts, limit = kept

    def is_going(carry: tuple[Int[Array, ""], DQNState]) -> Bool[Array, ""]:
        return (carry[0] < ticks) & ~is_finished(carry[1], limit)

    def body(carry: tuple[Int[Array, ""], DQNState]) -> tuple[Int[Array, ""], DQNState]:
        return carry[0] + 1, tick(config, environment, contexts, carry[1], limit)[0]

    return jax.lax.while_loop(is_going, body, (jnp.zeros((), jnp.int32), state))[1]


def learn_only(
    config: DDQNConfig, environment: AbstractEnvironment, contexts: Any, state: DQNState, limit: int, ticks: int
) -> DQNState:
    """Run at most `ticks` ticks without keeping rows, and none while all lanes are idle."""
    return _learn_only((config, environment, ticks, contexts, jnp.asarray(limit, jnp.int32)), state)
