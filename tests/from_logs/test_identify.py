"""A new system from its log alone: who it is, what actions lead to, what to do."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.data.logs.columns import LogColumns
from hipmdp.data.support import Support
from hipmdp.data.transitions import COLUMNS as COLUMN_NAMES
from hipmdp.data.transitions import Transitions
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dqn import DDQNConfig
from tests.dynamics.toys import toy_specification
from tests.systems.fleet import COLUMNS, GAINS, SMALL, fleet, step

QUICK = AdaptationConfig(
    imagined_episodes=40,
    weight_draws=4,
    validation_episodes=8,
    dqn=DDQNConfig(hidden=(32,), lanes=10, minibatches=5, epsilon_decay=0.93, learning_rate=2e-3, discount=0.9),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    log = fleet(tmp_path_factory.mktemp("fleet"))
    return hipmdp.pretrain(log, config=SMALL, quiet=True, policy=False)


def new(tmp_path, model, gain, **options):
    return fleet(tmp_path, [gain], model.specification, runs=1, seed=5, **options)


@pytest.mark.parametrize(("gain", "nearest"), [(1.5, "m8(1.6)"), (-0.9, "m3(-0.8)")])
def test_the_nearest_known_systems_are_found(model, tmp_path, gain, nearest):
    found = hipmdp.identify(model, new(tmp_path, model, gain))
    assert nearest in [n.name for n in found.neighbours[:2]]
    assert len(found.neighbours) == len(GAINS)
    assert [n.distance for n in found.neighbours] == sorted(n.distance for n in found.neighbours)
    assert found.warnings == []
    assert found.held_out.rows == 6
    assert found.held_out.error < found.mean_error / 3


def test_a_stranger_is_called_one(model, tmp_path):
    found = hipmdp.identify(model, new(tmp_path, model, 7.0))
    assert any("prediction error" in doubt for doubt in found.warnings)


def test_too_little_or_too_much_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="at least 10 transitions"):
        hipmdp.identify(model, new(tmp_path, model, 1.0).select(np.arange(5)))
    with pytest.raises(ValueError, match="One system is identified at a time, but the log has 2"):
        hipmdp.identify(model, fleet(tmp_path, [1.0, 0.5], model.specification))
    with pytest.raises(ValueError, match="has no latents"):
        hipmdp.identify(replace(model, dynamics=None), new(tmp_path, model, 1.0))


def test_the_outlook_of_each_action_holds_what_comes(model, tmp_path):
    found = hipmdp.identify(model, new(tmp_path, model, 1.5))
    futures = hipmdp.forecast(model, found, np.asarray([1.0]), steps=5)
    assert futures.mean.shape == (3, 6, 1)
    for action in range(3):
        x = 1.0
        assert futures.mean[action, 0, 0] == pytest.approx(1.0)
        for time in range(1, 6):
            x = step(x, action, 1.5)
            assert futures.mean[action, time, 0] == pytest.approx(x, abs=0.1)
            assert futures.low[action, time, 0] - 0.1 < x < futures.high[action, time, 0] + 0.1
    wide = np.mean(futures.high[:, -1] - futures.low[:, -1])
    assert wide > np.mean(futures.high[:, 1] - futures.low[:, 1])


@pytest.mark.parametrize(("gain", "best", "given"), [(1.5, "left", True), (-1.5, "right", False)])
def test_the_same_state_asks_for_different_actions_of_different_systems(model, tmp_path, gain, best, given):
    """At x = 1 a machine must push towards zero; which push that is, only its latent tells."""

    def settle(state, action, next_state):
        return -jnp.sum(next_state**2)

    log = new(tmp_path, model, gain)
    found = hipmdp.advise(model, log, np.asarray([1.0]), settle if given else None, config=QUICK)
    assert model.specification.action_names[found.action] == best
    assert found.values[found.action] == found.values.max()
    assert np.all(found.low <= found.high)
    assert found.supported.all()

    def learned(x):
        return step(x, int(jnp.argmax(found.network(jnp.asarray([x], jnp.float32)))), gain)

    def best(x):
        return min((step(x, action, gain) for action in range(3)), key=abs)

    assert cost(learned) < 3 * cost(best) < 1 < cost(lambda x: 0.9 * x)


def cost(move, x=1.0, horizon=30):
    """Σ x² on the true machine; by hand, the best at a gain of ±1.5 is 0.45² + 0.045² + …, about 0.21."""
    total = 0.0
    for _ in range(horizon):
        x = move(x)
        total += x**2
    return total


LEVEL = 2.0**30


def moved(model):
    """The same model in other units: x is called x + 2³⁰."""
    old = model.specification
    bounds = {
        name: tuple(v + LEVEL for v in getattr(old, name)) for name in ("state_low", "state_high", "state_centre")
    }
    spec = replace(old, **bounds, origin=(LEVEL,))
    ranges = {name: tuple(v + LEVEL for v in getattr(model, name)) for name in ("centre", "low", "high")}
    dynamics, head = (replace(part, specification=spec) for part in (model.dynamics, model.reward_head))
    return replace(model, specification=spec, dynamics=dynamics, reward_head=head, **ranges)


def rounded(log, specification=None):
    """A log whose states have few digits, so that float64 moves them by 2³⁰ without rounding; and moved, if asked."""
    level = 0.0 if specification is None else LEVEL
    columns = {name: getattr(log, name) for name in COLUMN_NAMES}
    columns |= {name: np.round(columns[name] * 2**16) / 2**16 + level for name in ("state", "next_state")}
    return Transitions(specification or log.specification, columns, names=log.names)


def test_answers_are_the_same_in_other_units(model, tmp_path):
    """Everything is measured from the origin, and answers are told in natural units and float64.

    To the bit, but for advice: the limits of imagination are natural units, which round at that level.
    """
    there, log = moved(model), rounded(new(tmp_path, model, 1.5))
    there_log, state = rounded(log, there.specification), np.asarray([1.0])
    plain, other = hipmdp.identify(model, log), hipmdp.identify(there, there_log)
    np.testing.assert_array_equal(plain.latent, other.latent)
    futures = hipmdp.forecast(model, plain, state, steps=3), hipmdp.forecast(there, other, state + LEVEL, steps=3)
    for before, after in zip(*futures, strict=True):
        assert after.dtype == np.float64
        np.testing.assert_allclose(after - LEVEL, before, atol=1e-6)
    predictions = (m.predict([x], [2], plain.latent) for m, x in ((model, state), (there, state + LEVEL)))
    for before, after in zip(*predictions, strict=True):
        assert after.dtype == np.float64
        np.testing.assert_array_equal(before, after)
    quick = replace(QUICK, imagined_episodes=10)
    first, second = (
        hipmdp.advise(model, log, state, config=quick),
        hipmdp.advise(there, there_log, state + LEVEL, config=quick),
    )
    np.testing.assert_allclose(first.values, second.values, rtol=0.01)
    np.testing.assert_array_equal(first.distances, second.distances)
    assert first.policy([1.0]) == second.policy([1.0 + LEVEL])
    assert second.policy(LEVEL + np.asarray([[1.0], [-1.0]])).tolist() == first.policy([[1.0], [-1.0]]).tolist()
    with pytest.raises(ValueError, match="A reward function computes in float32"):
        hipmdp.advise(there, there_log, reward=lambda s, a, n: -n[0], config=QUICK)


def test_variances_of_any_size_are_told(model):
    """In units of 1e-30 a variance is 1e-60: less than float32 holds."""
    small = model.dynamics.scaling._replace(change_scale=1e-30 * model.dynamics.scaling.change_scale)
    dynamics = replace(model.dynamics, scaling=small)
    before, after = (m.predict([[1.0]], [2], np.zeros(2)) for m in (model, model.with_dynamics(dynamics)))
    np.testing.assert_allclose(after.noise, 1e-60 * before.noise, rtol=1e-5)
    np.testing.assert_allclose(after.epistemic, 1e-60 * before.epistemic, rtol=1e-5)


def test_an_action_that_nobody_tried_there_is_named(model, tmp_path):
    found = hipmdp.advise(model, new(tmp_path, model, 1.5), np.asarray([40.0]), config=QUICK)
    assert not found.supported.any()
    assert found.distances.min() > 5


def test_support_by_hand():
    log = Transitions(
        toy_specification(actions=3),
        {
            "state": [[0.0], [1.0], [2.0], [0.0]], "action": [0, 0, 0, 1], "reward": [0.0] * 4,
            "next_state": [[0.0]] * 4, "terminated": [False] * 4, "truncated": [False] * 4,
            "instance": [0] * 4, "episode": [0] * 4, "time": [0, 1, 2, 3],
        },
    )  # fmt: skip
    support = Support.sample(log, key=jax.random.key(0))
    np.testing.assert_allclose(support.distances(np.asarray([3.0]), np.asarray([2.0]), 3), [0.5, 1.5, np.inf])
    # Rows with action 0 are one apart, that is half a spread.
    assert support.reach(np.asarray([2.0])) == pytest.approx(0.5)


def test_rewards_that_are_no_rewards_are_refused(model, tmp_path):
    log = new(tmp_path, model, 1.5)
    for function, message in (
        (lambda state: 0.0, "must take"),
        (lambda s, a, n: n, "must return one number"),
        (lambda s, a, n: float(n[0]), "arrays of JAX"),
    ):
        with pytest.raises(ValueError, match=message):
            hipmdp.advise(model, log, reward=function, config=QUICK)
    with pytest.raises(ValueError, match="A policy needs a reward"):
        hipmdp.advise(replace(model, reward_head=None), log, config=QUICK)
    with pytest.raises(ValueError, match="must be 1 finite numbers"):
        hipmdp.advise(model, log, np.asarray([1.0, 2.0]), config=QUICK)


def test_durations_are_learned(tmp_path):
    """x moves by the duration of the step: nothing else tells how far."""
    generator = np.random.default_rng(0)
    lines = ["machine,t,x,push"]
    for machine in range(3):
        t = x = 0.0
        for _ in range(150):
            push = int(generator.integers(2))
            lines.append(f"{machine},{t},{x},{push}")
            duration = float(generator.choice([0.5, 1.0, 2.0]))
            x, t = x + duration * (2 * push - 1), t + duration
    (tmp_path / "walk.csv").write_text("\n".join(lines))
    columns = LogColumns(state=("x",), action="push", instance="machine", time="t")
    log = hipmdp.read_logs(tmp_path / "walk.csv", columns)
    assert log.specification.timed
    model = hipmdp.pretrain(log, "average", config=SMALL, quiet=True, policy=False)
    assert model.reward_head is None
    latent = np.zeros(2)
    found = model.predict([[0.0]] * 3, [1, 1, 0], latent, duration=[0.5, 2.0, 1.0])
    np.testing.assert_allclose(found.mean[:, 0], [0.5, 2.0, -1.0], atol=0.15)
    # Without a duration, a step is a typical one.
    np.testing.assert_allclose(model.predict([[0.0]], [1], latent).mean[:, 0], [1.0], atol=0.15)


def test_the_model_knows_its_systems_by_name(model, tmp_path):
    model.save(tmp_path / "fleet.hipmdp")
    again = hipmdp.load(tmp_path / "fleet.hipmdp")
    assert again.names == model.names == tuple(f"m{i}({g:g})" for i, g in enumerate(GAINS))
    assert again.metadata == model.metadata
    assert again.metadata["transitions"] == len(GAINS) * 4 * 30
    np.testing.assert_array_equal(again.support.state, model.support.state)
    assert again.specification == model.specification
    assert COLUMNS.reward == "gain"
