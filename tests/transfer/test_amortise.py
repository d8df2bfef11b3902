"""Q(s, w) on the corridor: good in the first episode, followed step by step, refined and resumed."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.control import learner
from hipmdp.control.network import QNetwork
from hipmdp.dynamics.belief import new_filter
from hipmdp.dynamics.oracle import oracle_latents
from hipmdp.families.play import play, play_lives
from hipmdp.families.rollout import Memoryless
from hipmdp.families.scripted import random_policy
from hipmdp.transfer import learn
from hipmdp.transfer.adaptive import Adaptive
from hipmdp.transfer.amortise import _imagination, _most_even, amortise, draw_members
from hipmdp.transfer.config import AmortiseConfig
from hipmdp.transfer.imagination import Conditioned
from tests.dynamics.toys import random_batch
from tests.transfer.corridor import BOTH, CORRIDOR, DYNAMICS, LEARNER, TRANSFER

AMORTISE = AmortiseConfig(
    learner=LEARNER, episodes=300, pools=5, members=8, member_spread=0.1, perception_error=0.1, looks_per_latent=4
)
REFINE = replace(TRANSFER, imagined_episodes=20, look_episodes=8)


@pytest.fixture(scope="module")
def batch():
    return random_batch(CORRIDOR, BOTH, episodes=30)


@pytest.fixture(scope="module")
def embedded(batch):
    return hipmdp.pretrain(batch, "embedded", config=DYNAMICS, quiet=True)


@pytest.fixture(scope="module")
def model(embedded, batch):
    return amortise(embedded, batch, config=AMORTISE, family=CORRIDOR, quiet=True)


def meet(model, sign, **options):
    settings = {"episodes": 2, "seed": 1, "config": REFINE, "quiet": True, **options}
    return hipmdp.learn_policy(model, CORRIDOR, {"direction": sign}, **settings)


@pytest.fixture(scope="module")
def run(model):
    return meet(model, -1.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_good_from_the_first_episode(model, sign):
    """8 or 9 is the best there is; one step in the wrong direction costs two more."""
    run = meet(model, sign)
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
    run = meet(model, -1.0, method="refined")
    assert run.method == "refined"
    assert run.returns.tolist() == [8.0, 8.0]
    assert run.learning_returns[1] >= 8
    assert len(run.latents) == 2


@pytest.mark.parametrize("method", ["amortised", "refined"])
def test_a_run_that_was_stopped_goes_on_to_the_same_numbers(model, tmp_path, monkeypatch, method):
    whole = meet(model, -1.0, method=method)
    monkeypatch.setattr(learn, "SAVE_SECONDS", -1)
    shows = []

    def stop(self, meeting):
        shows.append(meeting.episode)
        if self.path is not None:
            meeting.save(self.path)
        if meeting.episode == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(learn._Report, "show", stop)
        with pytest.raises(KeyboardInterrupt):
            meet(model, -1.0, method=method, out=tmp_path)
    assert shows
    again = meet(model, -1.0, method=method, out=tmp_path)
    for name in ("returns", "learning_returns", "model_error"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(again, name))
    for mine, theirs in zip(jax.tree.leaves(whole.belief), jax.tree.leaves(again.belief), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def test_seeds_decide(model, batch, embedded, run):
    same, other = meet(model, -1.0), meet(model, -1.0, seed=2)
    np.testing.assert_array_equal(np.asarray(same.latent), np.asarray(run.latent))
    assert not np.array_equal(np.asarray(other.latent), np.asarray(run.latent))
    again, else_ = (amortise(embedded, batch, seed, config=AMORTISE, family=CORRIDOR, quiet=True) for seed in (0, 1))
    np.testing.assert_array_equal(model.policy.layers[0].weight, again.policy.layers[0].weight)
    assert not np.array_equal(model.policy.layers[0].weight, else_.policy.layers[0].weight)


def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "m.hipmdp")
    loaded = hipmdp.load(tmp_path / "m.hipmdp")
    assert loaded.method == "amortised"
    np.testing.assert_array_equal(loaded.policy.layers[0].weight, model.policy.layers[0].weight)


def test_a_network_at_a_known_w_is_the_same_function():
    centre, scale = jnp.asarray([1.0, -2.0, 0.5], jnp.float32), jnp.asarray([2.0, 0.5, 3.0], jnp.float32)
    network = QNetwork(centre, scale, 4, (8, 8), key=jax.random.key(3))
    known, state = jnp.asarray([0.7, -1.1], jnp.float32), jnp.asarray([0.3], jnp.float32)
    np.testing.assert_allclose(network.at(known)(state), network(jnp.concatenate([state, known])), rtol=1e-5)


def test_curiosity_prefers_the_action_that_tells_more(model):
    """With values that are all alike, what is told decides; where nothing can be told, values do."""
    told = new_filter(model.dynamics, jax.random.key(0))
    flat = jax.tree.map(jnp.zeros_like, model.policy)
    flat = replace_scale(flat)
    state = jnp.asarray([-1.9], jnp.float32)
    actor = Adaptive(told, flat, jnp.asarray(1.0, jnp.float32))
    gains = eqx.filter_jit(told.information)(told.start, state)
    chosen = eqx.filter_jit(actor.act)(jax.random.key(0), state, jnp.zeros((), jnp.int32), told.start)
    assert int(chosen) == int(jnp.argmax(gains))
    assert float(gains.min()) >= 0


def replace_scale(network):
    return eqx.tree_at(lambda n: n.scale, network, jnp.ones_like(network.scale))


def test_members_are_drawn_around_the_training_latents(model):
    members = draw_members(model.dynamics, replace(AMORTISE, members=64), jax.random.key(0))
    latents = np.asarray(model.dynamics.latents)
    scale = np.sqrt(np.asarray(model.dynamics.latent_prior.variance))
    gaps = np.abs(np.asarray(members.context.latent)[:, None] - latents[None]) / scale
    assert np.median(gaps.max(axis=-1).min(axis=1)) < 0.3
    same = np.all(np.asarray(members.context.latent) == np.asarray(members.perceived), axis=1)
    assert same.sum() == 32


def test_an_actor_without_memory_is_a_policy():
    keys = jax.random.split(jax.random.key(0), 3)
    thetas = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (3,)), CORRIDOR.theta({"direction": 1.0}))
    policy = random_policy(CORRIDOR)
    one = play(CORRIDOR, policy, keys, thetas)
    other, _ = play_lives(CORRIDOR, Memoryless(policy), None, keys, thetas)
    np.testing.assert_array_equal(one.states, other.states)


def test_bad_input_is_one_sentence(model, embedded, batch):
    average = hipmdp.pretrain(batch, "scratch", config=DYNAMICS, quiet=True)
    with pytest.raises(ValueError, match="two instances or more"):
        amortise(average, batch, config=AMORTISE, family=CORRIDOR)
    with pytest.raises(ValueError, match=r"use hipmdp\.amortise"):
        meet(embedded, 1.0, method="refined")
    with pytest.raises(ValueError, match="cannot be used as 'linear'"):
        meet(model, 1.0, method="linear")
    with pytest.raises(ValueError, match="methods that imagine"):
        meet(model, 1.0, dynamics="true")
    with pytest.raises(ValueError, match="needs a reward"):
        amortise(replace(embedded, reward_head=None), batch, config=AMORTISE)
    with pytest.raises(ValueError, match="learned latents"):
        amortise(
            replace(embedded, oracle=oracle_latents(dict(enumerate(BOTH)))), batch, config=AMORTISE, family=CORRIDOR
        )


def test_without_a_family_the_reward_is_learned(embedded, batch):
    """From logs alone: the head that pre-training learned."""
    learned = amortise(embedded, batch, config=AMORTISE, quiet=True)
    assert meet(learned, 1.0, episodes=1).returns[0] == 8.0


def test_the_policy_that_is_kept_is_bad_for_nobody():
    """The first is fastest on two of three members and stuck on the third; their scales differ by powers of ten."""
    returns = np.array([[100.0, 1e9, -5.0], [99.0, 0.98e9, 1.0], [0.0, 0.0, 0.0]])
    assert _most_even(returns) == 1


def test_an_episode_that_restarts_keeps_its_own_w(embedded, batch):
    """Where another member has been: its s, not its w."""
    members = draw_members(embedded.dynamics, AMORTISE, jax.random.key(0))
    environment = Conditioned(_imagination(embedded, batch, CORRIDOR, 0))
    first, second = (jax.tree.map(lambda leaf, i=i: leaf[i], members) for i in (0, 1))
    there = environment.reset(jax.random.key(0), first)
    again = environment.restarted(there, second)
    np.testing.assert_array_equal(again[:1], there[:1])
    np.testing.assert_array_equal(again[1:], second.perceived)
    config = replace(LEARNER, restart_share=1.0, epsilon_decay=1.0)
    network = QNetwork(jnp.zeros(3, jnp.float32), jnp.ones(3, jnp.float32), 2, (4,), key=jax.random.key(0))
    state = learner.init(network, config, 1000, jax.random.key(1))
    state, _ = learner.run_ticks(config, environment, members, state, 40, 20)
    kept = np.asarray(state.replay.items.state)[: int(state.replay.size)]
    known = {tuple(row) for row in np.asarray(members.perceived).tolist()}
    assert {tuple(row) for row in kept[:, 1:].tolist()} == known
