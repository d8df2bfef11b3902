"""`collect`: ids, lengths, repeatability, and going on after an interruption to the same bits."""

import signal
import threading
from concurrent.futures import Future

import numpy as np
import pytest

import hipmdp
from hipmdp.data.transitions import COLUMNS
from hipmdp.pretraining import collect as module

GRID = hipmdp.make("grid")
PAIR = [{"theta": 0}, {"theta": 1}]


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in COLUMNS)


@pytest.fixture(scope="module")
def batch():
    return hipmdp.collect(GRID, PAIR, episodes=6, seed=0, quiet=True)


def test_every_episode_of_every_instance_is_there(batch):
    assert batch.instances == [0, 1]
    assert batch.thetas == {0: {"theta": 0.0}, 1: {"theta": 1.0}}
    for episode in batch.episodes():
        np.testing.assert_array_equal(episode.time, np.arange(len(episode)))
        np.testing.assert_array_equal(episode.state[1:], episode.next_state[:-1])
        ended = episode.terminated[-1] or (episode.truncated[-1] and len(episode) == GRID.horizon)
        assert ended
        assert not (episode.terminated[:-1].any())
        assert not (episode.truncated[:-1].any())
    assert batch.episode_count == 12


def test_transitions_are_the_instances_own(batch):
    """Replaying a logged action on the instance it is said to come from gives the logged next state."""
    import jax
    import jax.numpy as jnp

    step = jax.jit(jax.vmap(lambda s, a, t: GRID.step(jax.random.key(0), s, a, type(GRID.baseline)(t))))
    rows = np.random.default_rng(0).choice(len(batch), 200, replace=False)
    theta = jnp.asarray(batch.instance[rows], jnp.float32)
    outcome = step(jnp.asarray(batch.state[rows]), jnp.asarray(batch.action[rows]), theta)
    np.testing.assert_allclose(outcome.state, batch.next_state[rows], atol=1e-6)
    np.testing.assert_allclose(outcome.reward, batch.reward[rows], rtol=1e-6)


def test_same_seed_same_bits_other_seed_differs(batch):
    assert same(batch, hipmdp.collect(GRID, PAIR, episodes=6, seed=0, quiet=True, jobs=1))
    assert not same(batch, hipmdp.collect(GRID, PAIR, episodes=6, seed=1, quiet=True))


def test_interrupted_collection_goes_on_to_the_same_bits(batch, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_STEPS", 50)
    monkeypatch.setattr(module, "CHECKPOINT_CHUNKS", 1)
    reference = hipmdp.collect(GRID, PAIR, episodes=6, seed=0, quiet=True, jobs=1)
    assert same(batch, reference)

    chunks = 0
    real = module.Progress.show

    def interrupt(self, done, text=""):
        nonlocal chunks
        chunks += 1
        if chunks == 17:
            raise KeyboardInterrupt
        real(self, done, text)

    monkeypatch.setattr(module.Progress, "show", interrupt)
    with pytest.raises(KeyboardInterrupt):
        hipmdp.collect(GRID, PAIR, episodes=6, seed=0, quiet=True, jobs=1, out=tmp_path / "out")
    kept = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert kept == ["collection.json", "instance000.parquet", "instance001.checkpoint"]
    loads = []
    real_load = module.load_checkpoint
    monkeypatch.setattr(module, "load_checkpoint", lambda *a: loads.append(a[0].name) or real_load(*a))
    before = chunks
    resumed = hipmdp.collect(GRID, PAIR, episodes=6, seed=0, quiet=True, jobs=1, out=tmp_path / "out")
    assert loads == ["instance001.checkpoint"]
    # One report for the finished instance, and one per chunk that was missing of the other.
    assert chunks - before <= 1 + 2 * 12 - 16 + 1
    assert same(resumed, reference)
    assert not (tmp_path / "out" / "instance001.checkpoint").exists()
    with pytest.raises(ValueError, match="holds another collection"):
        hipmdp.collect(GRID, PAIR, episodes=7, seed=0, quiet=True, out=tmp_path / "out")
    # What kills may leave behind goes; what is damaged is told.
    for name in ("instance000.checkpoint", ".instance001.0123456789abcdef.tmp.parquet"):
        (tmp_path / "out" / name).touch()
    assert same(hipmdp.collect(GRID, PAIR, episodes=6, seed=0, quiet=True, jobs=1, out=tmp_path / "out"), reference)
    kept = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert kept == ["collection.json", "instance000.parquet", "instance001.parquet"]
    (tmp_path / "out" / "instance000.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"instance000\.parquet' is damaged .*remove it, and the same command"):
        hipmdp.collect(GRID, PAIR, episodes=6, seed=0, quiet=True, jobs=1, out=tmp_path / "out")


def test_ctrl_c_stops_all_threads_with_a_checkpoint(tmp_path, monkeypatch):
    """Both workers stop at a chunk's edge and keep what they have."""
    monkeypatch.setattr(module, "CHUNK_STEPS", 50)
    real_show, pressed = module.Progress.show, []

    def show(self, done, text=""):
        if not pressed:
            pressed.append(done)
            # Whichever thread it reaches, Python handles it in the main one.
            signal.raise_signal(signal.SIGINT)
        real_show(self, done, text)

    monkeypatch.setattr(module.Progress, "show", show)
    with pytest.raises(KeyboardInterrupt):
        hipmdp.collect(GRID, PAIR, episodes=500, seed=0, quiet=True, jobs=2, out=tmp_path / "out")
    assert threading.active_count() < 20
    assert sorted(p.name for p in (tmp_path / "out").iterdir())[1:] == [
        "instance000.checkpoint",
        "instance001.checkpoint",
    ]


def test_drawn_instances_of_collect_and_of_learn_policy_differ():
    """`None` draws an instance; the same seed must not draw for testing what it drew for training."""
    acrobot = hipmdp.make("acrobot")
    drawn = hipmdp.collect(acrobot, [None, None], episodes=1, seed=3, quiet=True)
    model = hipmdp.pretrain(drawn, method="model_free")
    run = hipmdp.learn_policy(model, acrobot, None, episodes=1, seed=3, quiet=True)
    lengths = {round(theta["l1"], 6) for theta in drawn.thetas.values()} | {round(float(run.theta.l1), 6)}
    assert len(lengths) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episodes": 0}, "episodes must be at least 1, got 0"),
        ({"instances": 9}, "must be between 1 and 2, got 9"),
        ({"instances": "tset"}, "Did you mean 'test'"),
        ({"instances": ["test:7"]}, "must be written test:0 to test:1"),
        ({"instances": []}, "at least one instance"),
        ({"instances": None}, "must be a number, the name of a set or a list"),
        ({"preset": "papr"}, "Did you mean 'paper'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        hipmdp.collect(GRID, **{"instances": 1, "episodes": 1, "quiet": True, **arguments})


def test_waiting_ends_when_what_was_not_begun_is_cancelled():
    finished, cancelled = Future(), Future()
    finished.set_exception(ValueError("damaged"))
    cancelled.cancel()
    module._wait_for([finished, cancelled], also_failed=True)
    module._wait_for([finished, Future()])
