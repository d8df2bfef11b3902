"""Q(s, w) on the corridor: good in the first episode, updated step by step, refined."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp._random import root_key
from hipmdp.control import dqn
from hipmdp.control.policies import BeliefActor
from hipmdp.control.q_network import QNetwork
from hipmdp.data.work import Work
from hipmdp.dynamics.belief import new_filter
from hipmdp.dynamics.oracle import oracle_latents
from hipmdp.families.rollout import Memoryless
from hipmdp.families.scripted import random_policy
from hipmdp.imagination.build import Surroundings, conditioned_environment, starts_of_batch
from hipmdp.imagination.contexts import sampled_contexts
from hipmdp.imagination.reward import GivenReward
from hipmdp.pretraining.amortise import amortise, learn_latent_policy
from tests.dynamics.toys import random_batch
from tests.systems.corridor import AMORTISE, BOTH, CORRIDOR, DQN, DYNAMICS, TRANSFER
from tests.systems.interrupts import PressedAfter

REFINE = replace(TRANSFER, imagined_episodes=20, validation_episodes=8)


@pytest.fixture(scope="module")
def batch():
    return random_batch(CORRIDOR, BOTH, episodes=30)


@pytest.fixture(scope="module")
def embedded(batch):
    return hipmdp.pretrain(batch, "embedded", config=DYNAMICS, quiet=True, policy=False)


@pytest.fixture(scope="module")
def model(embedded, batch):
    return amortise(embedded, batch, config=AMORTISE, family=CORRIDOR, quiet=True)


def adapt(model, sign, **options):
    settings = {"episodes": 2, "seed": 1, "config": REFINE, "quiet": True, **options}
    return hipmdp.learn_policy(model, CORRIDOR, {"direction": sign}, **settings)


@pytest.fixture(scope="module")
def run(model):
    return adapt(model, -1.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_good_from_the_first_episode(model, sign):
    """8 or 9 is the best there is; one step in the wrong direction costs two more."""
    run = adapt(model, sign)
    assert run.learning_returns[0] >= 5
    assert run.learning_returns[1] >= 8
    assert run.returns.tolist() == [8.0, 8.0]
    assert run.policy(np.zeros(1)) == (1 if sign > 0 else 0)


def test_the_record(run):
    assert run.method == "amortised"
    assert len(run.latents) == 2
    np.testing.assert_array_equal(np.asarray(run.latent), np.asarray(run.belief.best))
    assert float(run.belief.rows) == len(run.transitions)
    assert run.model_error[1] < run.model_error[0]


def test_nothing_is_trained(model, run):
    for mine, theirs in zip(jax.tree.leaves(run.model.dynamics), jax.tree.leaves(model.dynamics), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def test_refinement_goes_on_from_the_policy(model):
    """So few imagined episodes would teach an untrained network nothing."""
    run = adapt(model, -1.0, method="refined")
    assert run.method == "refined"
    assert run.returns.tolist() == [8.0, 8.0]
    assert run.learning_returns[1] >= 8
    assert len(run.latents) == 2


def test_seeds_decide(model, batch, embedded, run):
    same, other = adapt(model, -1.0), adapt(model, -1.0, seed=2)
    np.testing.assert_array_equal(np.asarray(same.latent), np.asarray(run.latent))
    assert not np.array_equal(np.asarray(other.latent), np.asarray(run.latent))
    again, else_ = (amortise(embedded, batch, seed, config=AMORTISE, family=CORRIDOR, quiet=True) for seed in (0, 1))
    np.testing.assert_array_equal(model.latent_policy.layers[0].weight, again.latent_policy.layers[0].weight)
    assert not np.array_equal(model.latent_policy.layers[0].weight, else_.latent_policy.layers[0].weight)


def test_stopped_anywhere_it_goes_on_to_the_same_bits(model, embedded, batch, tmp_path):
    """Stopped after two chunks, again and again; a finished call only reads; another one is refused."""
    stopped = 0
    while True:
        work = Work(tmp_path, PressedAfter(2))
        try:
            again = learn_latent_policy(
                embedded, batch, AMORTISE, family=CORRIDOR, key=root_key(0), quiet=True, work=work
            )
            break
        except KeyboardInterrupt:
            stopped += 1
    assert stopped >= 2
    jax.tree.map(np.testing.assert_array_equal, again.latent_policy, model.latent_policy)
    options = {"config": AMORTISE, "family": CORRIDOR, "quiet": True, "out": tmp_path / "out"}
    whole = amortise(embedded, batch, **options)
    jax.tree.map(np.testing.assert_array_equal, whole.latent_policy, model.latent_policy)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["amortise.json", "model.hipmdp"]
    read = amortise(embedded, batch, **options)
    jax.tree.map(np.testing.assert_array_equal, read.latent_policy, model.latent_policy)
    for change in ({"seed": 1}, {"config": replace(AMORTISE, pools=1)}):
        with pytest.raises(ValueError, match="holds another model"):
            amortise(embedded, batch, **{**options, **change})
    with pytest.raises(ValueError, match="holds another model"):
        amortise(embedded, batch.select(np.arange(len(batch) - 1)), **options)


def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "m.hipmdp")
    loaded = hipmdp.load(tmp_path / "m.hipmdp")
    assert loaded.method == "amortised"
    np.testing.assert_array_equal(loaded.latent_policy.layers[0].weight, model.latent_policy.layers[0].weight)


def test_a_network_at_a_known_w_is_the_same_function():
    centre, scale = jnp.asarray([1.0, -2.0, 0.5], jnp.float32), jnp.asarray([2.0, 0.5, 3.0], jnp.float32)
    known, state = jnp.asarray([0.7, -1.1], jnp.float32), jnp.asarray([0.3], jnp.float32)
    for normalised in (False, True):
        network = QNetwork(centre, scale, 4, (8, 8), normalised=normalised, key=jax.random.key(3))
        np.testing.assert_allclose(network.at(known)(state), network(jnp.concatenate([state, known])), rtol=1e-5)


def test_where_values_are_alike_the_information_decides(model):
    chosen_filter = new_filter(model.dynamics, jax.random.key(0))
    flat = jax.tree.map(jnp.zeros_like, model.latent_policy)
    flat = replace_scale(flat)
    state = jnp.asarray([-1.9], jnp.float32)
    actor = BeliefActor(chosen_filter, flat, jnp.asarray(1.0, jnp.float32))
    gains = eqx.filter_jit(chosen_filter.information)(chosen_filter.start, state)
    chosen = eqx.filter_jit(actor.act)(jax.random.key(0), state, jnp.zeros((), jnp.int32), chosen_filter.start)
    assert int(chosen) == int(jnp.argmax(gains))
    assert float(gains.min()) >= 0


def replace_scale(network):
    return eqx.tree_at(lambda n: n.scale, network, jnp.ones_like(network.scale))


def test_members_are_on_the_way_to_a_neighbour(model):
    """Four latents, the nearest of each worked out by hand: members lie from one towards that one, a tenth at most."""
    row = jnp.asarray([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [6.0, 7.0]], jnp.float32)
    dynamics = eqx.tree_at(lambda d: d.latents, model.dynamics, row)
    many = replace(
        AMORTISE, pqn=replace(AMORTISE.pqn, groups=16), neighbours=1, latent_reach=0.1, latent_spread=0.0,
        latent_noise=0.0,
    )  # fmt: skip
    drawn = np.asarray(sampled_contexts(dynamics, many, key=jax.random.key(0)).context.latent).reshape(-1, 2)
    scale = np.sqrt(np.asarray(dynamics.latent_prior.variance))
    found = set()
    for w in drawn:
        own = int(np.argmin(np.sum(((np.asarray(row) - w) / scale) ** 2, axis=1)))
        way = (w - np.asarray(row[own])) / scale
        assert np.sqrt(np.mean(way**2)) <= 0.1 + 1e-5
        ends = (np.asarray(row) - np.asarray(row[own])) / scale
        across = way[0] * ends[:, 1] - way[1] * ends[:, 0]
        aligned = [j for j in range(4) if j != own and abs(across[j]) < 1e-5 and way @ ends[j] > 0]
        assert np.allclose(way, 0, atol=1e-6) or aligned
        found |= {(own, j) for j in aligned}
    assert found == {(0, 1), (1, 0), (2, 0), (3, 2)}


def test_repeated_latents_have_other_neighbours(model):
    """`online` repeats latents to fill arrays: a copy is no neighbour, and one latent alone has none."""
    for row, moves in (([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]], True), ([[1.0, 2.0]] * 3, False)):
        dynamics = eqx.tree_at(lambda d: d.latents, model.dynamics, jnp.asarray(row, jnp.float32))
        config = replace(AMORTISE, latent_spread=0.0, latent_noise=0.0)
        drawn = np.asarray(sampled_contexts(dynamics, config, key=jax.random.key(0)).context.latent).reshape(-1, 2)
        away = np.min(np.abs(drawn[:, None] - np.asarray(row)[None]).sum(axis=-1), axis=1)
        assert np.isfinite(drawn).all()
        assert bool(away.max() > 0.01) is moves


def test_members_are_drawn_around_the_training_latents(model):
    many = replace(AMORTISE, pqn=replace(AMORTISE.pqn, groups=16))
    members = sampled_contexts(model.dynamics, many, key=jax.random.key(0))
    assert members.context.weights.shape[:2] == (16, 1)
    latents = np.asarray(model.dynamics.latents)
    own = np.asarray(members.context.latent).reshape(64, -1)
    scale = np.sqrt(np.asarray(model.dynamics.latent_prior.variance))
    gaps = np.abs(own[:, None] - latents[None]) / scale
    assert np.median(gaps.max(axis=-1).min(axis=1)) < 0.5
    same = np.all(own == np.asarray(members.latent).reshape(64, -1), axis=1)
    assert same.sum() == 32


def test_an_actor_without_memory_is_a_policy():
    keys = jax.random.split(jax.random.key(0), 3)
    thetas = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (3,)), CORRIDOR.theta({"direction": 1.0}))
    policy = random_policy(CORRIDOR)
    one = CORRIDOR.rollouts(policy, keys, thetas)
    other, _ = CORRIDOR.rollout_actors(Memoryless(policy), None, keys, thetas)
    np.testing.assert_array_equal(one.steps.state, other.steps.state)


def test_bad_input_is_one_sentence(model, embedded, batch):
    scratch = hipmdp.pretrain(batch, "scratch", config=DYNAMICS, quiet=True)
    with pytest.raises(ValueError, match="was trained on a batch"):
        amortise(scratch, batch, config=AMORTISE, family=CORRIDOR)
    with pytest.raises(ValueError, match=r"use hipmdp\.amortise"):
        adapt(embedded, 1.0, method="refined")
    with pytest.raises(ValueError, match="cannot be used as 'linear'"):
        adapt(model, 1.0, method="linear")
    with pytest.raises(ValueError, match="methods that imagine"):
        adapt(model, 1.0, imagine_in="environment")
    with pytest.raises(ValueError, match="needs a reward"):
        amortise(replace(embedded, reward_head=None), batch, config=AMORTISE)
    with pytest.raises(ValueError, match="learned latents"):
        amortise(
            replace(embedded, oracle=oracle_latents(dict(enumerate(BOTH)))), batch, config=AMORTISE, family=CORRIDOR
        )


def test_without_a_family_the_reward_is_learned(embedded, batch):
    """From logs alone: the head that pre-training learned."""
    learned = amortise(embedded, batch, config=AMORTISE, quiet=True)
    assert adapt(learned, 1.0, episodes=1).returns[0] == 8.0


def test_an_episode_that_restarts_keeps_its_own_w(embedded, batch):
    """Where another member has been: its s, not its w."""
    drawn = sampled_contexts(embedded.dynamics, AMORTISE, key=jax.random.key(0))
    # The first member of every group.
    own = drawn.context._replace(latent=drawn.context.latent[:, 0])
    members = drawn._replace(context=own, latent=drawn.latent[:, 0])
    starts = starts_of_batch(batch, key=jax.random.key(0))
    around = Surroundings(GivenReward(CORRIDOR, None), starts, np.asarray(embedded.low), np.asarray(embedded.high))
    environment = conditioned_environment(embedded.dynamics, around)
    first, second = (jax.tree.map(lambda leaf, i=i: leaf[i], members) for i in (0, 1))
    there = environment.reset(jax.random.key(0), first)
    again = environment.restart(there, second)
    np.testing.assert_array_equal(again[:1], there[:1])
    np.testing.assert_array_equal(again[1:], second.latent)
    config = replace(DQN, restart_share=1.0, epsilon_decay=1.0)
    network = QNetwork(jnp.zeros(3, jnp.float32), jnp.ones(3, jnp.float32), 2, (4,), key=jax.random.key(0))
    state = dqn.init(network, config, 1000, jax.random.key(1))
    state, _ = dqn.run_ticks(config, environment, members, state, 40, 20)
    kept = np.asarray(state.replay.items.state)[: int(state.replay.size)]
    known = {tuple(row) for row in np.asarray(members.latent).tolist()}
    assert {tuple(row) for row in kept[:, 1:].tolist()} == known
