"""Ctrl-C at any chunk edge, and the same bits after."""

import itertools
from dataclasses import replace

import jax
import numpy as np
import pytest

from hipmdp._random import root_key
from hipmdp.adaptation import learn_policy as module
from hipmdp.adaptation.resume import Checkpoint
from tests.systems.corridor import PQN, TRANSFER
from tests.systems.corridor_runs import adapt, built_in, model

ALWAYS = replace(TRANSFER, inaccurate_factor=0.0, first_policy=True)
BY_BELIEF = replace(ALWAYS, latent_temperature=None, keep_accurate_weights=True)
BY_PQN = replace(ALWAYS, pqn=PQN, imagined_steps=6400, imagined_rounds=2)


def _interrupted(directory, method, edges, every, config):
    """A method, and its checkpoint at whose every `every`-th chunk edge Ctrl-C is pressed."""

    def show(state, record):
        checkpoint.interrupt.pressed = next(edges) % every == 0

    chosen = built_in(method, adaptation=config, on_chunk=lambda state: checkpoint.at_chunk_edge(state))
    checkpoint = Checkpoint(chosen, directory, {"run": method}, show, save_seconds=0.0)
    return chosen, checkpoint


@pytest.mark.parametrize(
    ("method", "every", "config"),
    [
        ("embedded", 5, ALWAYS), ("embedded", 5, BY_BELIEF), ("model_free", 1, ALWAYS), ("amortised", 1, ALWAYS),
        ("refined", 4, ALWAYS), ("blind", 1, ALWAYS), ("embedded", 5, BY_PQN), ("refined", 4, BY_PQN),
    ],
)  # fmt: skip
def test_interrupted_at_chunk_edges_a_run_ends_with_the_same_bits(method, every, config, tmp_path):
    """Every `every`-th chunk edge is interrupted, in imagination too, until the run is done."""
    whole = adapt(method, 1.0, config=config)
    stops, edges = 0, itertools.count(1)
    while True:
        chosen, checkpoint = _interrupted(tmp_path, method, edges, every, config)
        try:
            state, transitions, _ = module._run(chosen, model(method), chosen.setting, root_key(1), checkpoint)
            break
        except KeyboardInterrupt:
            stops += 1
            assert stops < 100
    assert stops >= 2
    jax.tree.map(np.testing.assert_array_equal, chosen.network(state), whole.network)
    for name in ("returns", "learning_returns", "model_error", "success"):
        np.testing.assert_array_equal(checkpoint.record.metrics[name], getattr(whole, name))
    np.testing.assert_array_equal(transitions.state, whole.transitions.state)
    for ours, theirs in zip(checkpoint.record.trace, whole.trace, strict=True):
        for name in ("tuned", "imagined_episodes", "replay_rows_before", "imagined_return", "policy"):
            assert ours.get(name) == theirs.get(name)


def test_a_finished_run_is_read_and_another_one_is_refused(tmp_path):
    first = adapt("embedded", 1.0, out=tmp_path)
    written = (tmp_path / "run.checkpoint").stat().st_mtime_ns
    again = adapt("embedded", 1.0, out=tmp_path)
    np.testing.assert_array_equal(again.returns, first.returns)
    np.testing.assert_array_equal(again.seconds, first.seconds)
    assert again.policy(np.zeros(1)) == first.policy(np.zeros(1))
    assert (tmp_path / "run.checkpoint").stat().st_mtime_ns >= written
    with pytest.raises(ValueError, match="holds another run"):
        adapt("embedded", -1.0, out=tmp_path)
    # Models are told apart by all that they hold: one with another held-out error is tuned at other times.
    other = replace(model("embedded"), metrics={"error_on_held_out_episodes": 1.0})
    with pytest.raises(ValueError, match="holds another run"):
        adapt("embedded", 1.0, model=other, out=tmp_path)
