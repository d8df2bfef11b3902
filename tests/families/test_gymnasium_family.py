"""Families of Gymnasium environments: what they say of themselves, and their episodes."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp._random import root_key
from hipmdp.control.policies import repeat_theta
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.families.instances import resolve_instances
from hipmdp.families.rollout import AbstractActor
from hipmdp.families.scripted import Schedule, random_policy
from tests.families.walks import WALK, Walk, half_walk, walk


def schedule(*actions):
    return Schedule(jnp.asarray(actions, jnp.int32))


def test_the_specification_comes_from_the_environment():
    spec = walk(state_names=None, action_names=None, horizon=7, discount=0.9).specification
    assert (spec.state_names, spec.action_names) == (("x0",), ("0", "1"))
    assert (spec.state_low, spec.state_high, spec.horizon, spec.discount) == ((-10.0,), (10.0,), 7, 0.9)
    # A tenth of the range is more than the spread of the states of a random walk? Whichever is larger.
    assert spec.state_scale[0] >= 2.0


def test_time_limit_and_unbounded_observations_of_cartpole():
    import gymnasium

    from hipmdp.families.gymnasium.build import gymnasium_family

    family = gymnasium_family("pole", lambda theta: gymnasium.make("CartPole-v1"), {"nothing": (0, 1)})
    spec = family.specification
    assert spec.horizon == 500
    assert spec.state_high[1] == 3.4e38
    assert 0.3 < spec.state_scale[1] < 1.5
    assert spec == type(spec).from_dict(spec.to_dict())


def test_an_episode_is_what_the_environment_gave():
    """Right, right, right by 0.5 from 0 or 0.25, then left: the sums can be done by hand."""
    keys = jax.random.split(jax.random.key(0), 6)
    episodes = WALK.rollouts(schedule(1, 1, 1, 0, 1, 1), keys, repeat_theta(half_walk(), 6))
    first = np.asarray(episodes.steps.state[:, 0, 0])
    assert set(first.tolist()) == {0.0, 0.25}
    moves = np.array([0.5, 1.0, 1.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(episodes.steps.next_state[..., 0], first[:, None] + moves)
    np.testing.assert_allclose(episodes.steps.reward, episodes.steps.next_state[..., 0])
    assert episodes.valid.all()
    # From 0.25 the last step ends beyond 2.
    assert np.array_equal(episodes.steps.terminated[:, -1], first == 0.25)
    again = WALK.rollouts(schedule(1, 1, 1, 0, 1, 1), keys, repeat_theta(half_walk(), 6))
    assert jax.tree.all(jax.tree.map(np.array_equal, episodes, again))


class Waiting(AbstractActor):
    """Goes left until it has seen a step, and right from then on; remembers how many it saw and where it came."""

    def act(self, key, state, time, memory):
        return jnp.where(memory[0] < 1, 0, 1).astype(jnp.int32)

    def observe(self, memory, state, action, next_state):
        return memory[0] + 1, next_state


def test_an_actor_sees_every_step_and_none_after_the_end():
    """−0.5, then up by 0.5: six steps. With steps of 1.5: −1.5, 0, 1.5, 3, which is beyond 2 after four."""
    keys, nothing = jax.random.split(jax.random.key(0), 4), (jnp.zeros((), jnp.int32), jnp.zeros(1, jnp.float32))
    episodes, (seen, last) = WALK.rollout_actors(Waiting(), nothing, keys, repeat_theta(half_walk(), 4))
    assert episodes.steps.action.tolist() == [[0, 1, 1, 1, 1, 1]] * 4
    assert seen.tolist() == [6] * 4
    np.testing.assert_allclose(last, episodes.steps.next_state[:, -1])
    longer, (seen, _) = WALK.rollout_actors(Waiting(), nothing, keys, repeat_theta(half_walk(1.5), 4))
    assert seen.tolist() == longer.valid.sum(axis=1).tolist()
    assert seen.tolist() == [4] * 4


def test_terminated_and_truncated_are_not_merged():
    """The environment's own limit of 4 comes before the horizon of 6."""
    family = walk(lambda theta: Walk(theta["length"], limit=4))
    keys = jax.random.split(jax.random.key(0), 2)
    stays = family.rollouts(schedule(0, 1, 0, 1, 0, 1), keys, repeat_theta(half_walk(), 2))
    log = episodes_to_transitions(family, stays, half_walk())
    assert len(log) == 8
    assert log.truncated.tolist() == [False, False, False, True] * 2
    assert not log.terminated.any()
    goes = family.rollouts(schedule(1, 1, 1, 1, 1, 1), keys, repeat_theta(half_walk(1.0), 2))
    log = episodes_to_transitions(family, goes, half_walk(1.0))
    assert log.terminated.sum() == 2
    assert not log.truncated.any()


def test_instances_differ_within_one_call_and_environments_are_few_and_closed():
    made = []

    def make(theta):
        made.append(Walk(theta["length"]))
        return made[-1]

    family = walk(make, copies=2)
    thetas = family.draw_instances(jax.random.key(1), 2)
    lanes = jax.tree.map(lambda leaf: jnp.repeat(leaf, 4), thetas)
    made.clear()
    episodes = family.rollouts(schedule(1, 1, 1, 1, 1, 1), jax.random.split(jax.random.key(0), 8), lanes)
    steps = np.asarray(episodes.steps.next_state[:, 0, 0] - episodes.steps.state[:, 0, 0])
    np.testing.assert_allclose(steps, np.repeat(np.asarray(thetas.length), 4), rtol=1e-6)
    # Four episodes of each instance in two environments.
    assert len(made) == 4
    assert all(env.closed for env in made)


def test_environments_are_closed_after_an_error():
    class Broken(Walk):
        def step(self, action):
            return np.array([np.nan], np.float32), 0.0, False, False, {}

    made = []

    def make(theta):
        made.append(Broken(theta["length"]))
        return made[-1]

    family = walk(make, state_centre=(0,), state_scale=(1,))
    with pytest.raises(ValueError, match="walk gave the observation"):
        family.rollouts(random_policy(family), jax.random.split(jax.random.key(0), 2), repeat_theta(half_walk(), 2))
    assert all(env.closed for env in made)


class _Faulty(Walk):
    """At the third step it does what `fault` says."""

    def __init__(self, length, fault):
        super().__init__(length)
        self.fault = fault

    def step(self, action):
        good = super().step(action)
        return self.fault(good) if self.time == 3 else good


def _raises(error):
    def fault(good):
        raise error

    return fault


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (_raises(ZeroDivisionError("no mass")), "walk raised ZeroDivisionError: no mass at step 2"),
        (_raises(SystemExit(3)), "walk raised SystemExit: 3 at step 2"),
        (lambda good: (good[0] + 50, *good[1:]), "outside its observation space [-10, 10], at step 2"),
        (lambda good: (np.zeros(2), *good[1:]), "not 1 finite numbers, at step 2"),
        (lambda good: (good[0] * np.nan, *good[1:]), "not 1 finite numbers, at step 2"),
        (lambda good: ("far", *good[1:]), "gave the observation far, not 1 finite numbers, at step 2"),
        (lambda good: good[:4], "must return (observation, reward, terminated, truncated, info) from step 2"),
        (lambda good: (good[0], None, *good[2:]), "A reward 'walk' must be a number, got None"),
    ],
)
def test_a_faulty_step_is_told_with_its_place(fault, words):
    """x = 0.5, 1.0 after two steps to the right from 0; action 2 is the second of those that begin at 1."""
    family = walk(lambda theta: _Faulty(theta["length"], fault), state_centre=(0.0,), state_scale=(1.0,))
    with family.interaction(family.theta({"length": 0.5})) as system:
        start = float(system.reset(root_key(0))[0])
        for _ in range(2):
            system.step(root_key(0), 1)
        with pytest.raises(ValueError, match=re.escape(words)) as caught:
            system.step(root_key(0), 1)
    if "step 2" in words:
        assert f"with action 2 in state [{start + 1:g}]" in str(caught.value)


def test_rounding_at_a_bound_is_no_error():
    class Edge(Walk):
        def step(self, action):
            _, *rest = super().step(action)
            return np.nextafter(np.float32([10]), np.float32(11)), *rest

    family = walk(lambda theta: Edge(theta["length"]), state_centre=(0.0,), state_scale=(1.0,))
    with family.interaction(family.theta({"length": 0.5})) as system:
        system.reset(root_key(0))
        assert system.step(root_key(0), 1)[0] > 10


def test_first_states_are_those_of_episodes():
    states = np.asarray(WALK.first_states(jax.random.split(jax.random.key(3), 20), half_walk()))
    assert states.shape == (20, 1)
    assert set(states.ravel().tolist()) == {0.0, 0.25}


def test_the_pool_makes_one_environment_for_episodes_that_follow_each_other():
    with WALK.pool() as pool:
        first = pool.acquire((0.5,))
        pool.release(first)
        assert pool.acquire((0.5,)) is first
        assert pool.acquire((0.5,)) is not first
        assert pool.acquire((0.75,)).environment.length == 0.75


def test_sets_are_drawn_alike_or_given():
    train, many, test = (WALK.instances(name) for name in ("train", "train32", "test"))
    assert (len(train), len(many), len(test)) == (5, 32, 20)
    assert [float(i.theta.length) for i in train] == [float(i.theta.length) for i in many[:5]]
    assert len({float(i.theta.length) for i in (*many, *test)}) == 52
    assert all(0.5 <= float(i.theta.length) <= 1.0 for i in many)
    assert [float(i.theta.length) for i in walk().instances("test")] == [float(i.theta.length) for i in test]
    assert test[3].label == "test:3"
    assert not test[3].is_scored
    assert test[3].score(-7.5) == -7.5
    given = walk(sets={"train": [{"length": 0.6}, {"length": 0.9}], "hard": [{"length": 3.0}]})
    assert [float(i.theta.length) for i in given.instances("hard")] == [3.0]
    assert given.training_pool == "train"
    assert WALK.training_pool == "train32"
    thetas = resolve_instances(given, 2, jax.random.key(0))
    np.testing.assert_allclose([float(theta.length) for theta in thetas], [0.6, 0.9], rtol=1e-6)
    with pytest.raises(ValueError, match=r"Unknown instance set of walk 'hrd'. Did you mean 'hard'"):
        given.instances("hrd")


def test_a_sampler_instead_of_ranges():
    family = walk(parameters=lambda rng: {"length": rng.choice([0.5, 0.75])}, baseline={"length": 0.5})
    lengths = np.asarray(family.draw_instances(jax.random.key(0), 30).length)
    assert set(lengths.tolist()) == {0.5, 0.75}
    wrong = walk(parameters=lambda rng: {"size": 1.0}, baseline={"length": 0.5})
    with pytest.raises(ValueError, match="must give length, it gave size"):
        wrong.sample_instance(jax.random.key(0))


def test_reward_and_terminated_as_given():
    state = jnp.asarray([2.5], jnp.float32)
    assert float(WALK.reward(state, jnp.asarray(1), state)) == 2.5
    assert bool(WALK.terminated(state))
    plain = walk(reward=lambda s, a, after: 1, terminated=lambda after: False)
    assert plain.reward(state, 0, state).dtype == jnp.float32
    assert plain.terminated(state).dtype == jnp.bool_
    with pytest.raises(ValueError, match='use reward="learned"'):
        walk().reward(state, 0, state)


def test_it_does_not_pretend_to_be_in_jax():
    assert not {"reset", "step", "dynamics", "initial_state", "is_well_behaved"} & set(dir(WALK))
    assert not WALK.simulated
    sentence = r'^reward="true" needs a family in JAX: the Gymnasium environment walk cannot be imagined in\.$'
    with pytest.raises(ValueError, match=sentence):
        WALK.simulator('reward="true"')


def test_success_may_be_to_survive():
    ended = np.array([[False, True], [False, False]])
    last = np.zeros((2, 1))
    assert WALK.succeeded(ended, last).tolist() == [True, False]
    assert walk(success="survived").succeeded(ended, last).tolist() == [False, True]


def test_the_text_that_identifies_a_family_has_no_addresses():
    assert "0x" not in repr(WALK)
    assert repr(walk()) != repr(walk(horizon=9))


class _Continuous(Walk):
    def __init__(self):
        import gymnasium

        super().__init__(1.0)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,))


class _Dict(Walk):
    def __init__(self):
        import gymnasium

        super().__init__(1.0)
        self.observation_space = gymnasium.spaces.Dict({"x": self.observation_space})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: walk(lambda theta: _Continuous()), "must have discrete actions"),
        (lambda: walk(lambda theta: _Dict()), "must have a flat Box observation"),
        (lambda: walk(lambda theta: 3), "must return a gymnasium.Env, got int"),
        (lambda: walk(horizon=None), "has no time limit of its own: give horizon"),
        (lambda: walk(reward=lambda s, a, n: 0.0), "reward and terminated together"),
        (lambda: walk(parameters={"length": (1, 1)}), r"must be \(low, high\), got \(1, 1\)"),
        (lambda: walk(parameters={"length": (1,)}), r"must be \(low, high\), got \(1,\)"),
        (lambda: walk(parameters={}), "at least one hidden parameter"),
        (lambda: walk(parameters={"pole length": (0, 1)}), "must be a Python name"),
        (lambda: walk(state_names=("x", "y")), "must be 1 different names"),
        (lambda: walk(angles=("y",)), "Unknown state of walk 'y'"),
        (lambda: walk(success="won"), "Unknown success 'won'"),
        (lambda: walk(copies=0), "'copies' must be in"),
        (lambda: walk(sets={"train": [{"size": 1}]}), "Unknown parameter of walk 'size'"),
        (lambda: walk(state_scale=(1, 2)), "state_scale of walk must have 1 numbers"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_name_of_its_own():
    from hipmdp.families.gymnasium.build import gymnasium_family

    with pytest.raises(ValueError, match="a name of its own, not 'hiv'"):
        gymnasium_family("hiv", lambda theta: Walk(1.0), {"length": (0, 1)}, horizon=3)
