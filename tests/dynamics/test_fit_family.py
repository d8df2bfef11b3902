"""What is held out of a fit, how its error is pooled, and one compilation for batches of any size."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.dynamics import fit
from hipmdp.dynamics.fit_family import Capacity, fit_dynamics, held_out_error, held_out_rows, split_in_time
from hipmdp.dynamics.quality import Quality, pooled_error
from hipmdp.settings.dynamics import LatentRole
from tests.dynamics.test_fit import KEY, SLOPES, SMALL, slopes_log
from tests.dynamics.toys import toy_log


def test_held_out_episodes_are_spread_over_every_instance():
    log = slopes_log((0.0, 1.0), rows=40)
    mask = held_out_rows(log, 0.05)
    assert [int(log.episode[i]) for i in np.flatnonzero(mask)] == [19, 39, 59, 79]
    assert not held_out_rows(log, 0.0).any()
    assert not held_out_rows(slopes_log((0.0,), rows=5), 0.05).any()


def test_an_instance_with_few_episodes_can_give_its_last_rows():
    """Of three rows a quarter, rounded up; of one row none."""
    log = slopes_log((0.0,), rows=3)
    assert held_out_rows(log, 0.25, split_few=True).tolist() == [False, False, True]
    assert held_out_rows(log.select(np.arange(1)), 0.25, split_few=True).tolist() == [False]


@pytest.mark.parametrize(
    ("rows", "share", "least", "last"), [(10, 0.2, 2, 2), (11, 0.2, 2, 3), (5, 0.5, 1, 3), (2, 0.2, 2, 1)]
)
def test_the_last_part_of_a_log_in_time_order(rows, share, least, last):
    log = slopes_log((0.0,), rows=rows)
    shuffled = log.select(np.random.default_rng(0).permutation(rows))
    before, after = split_in_time(shuffled, share, least=least)
    assert before.episode.tolist() == list(range(rows - last))
    assert after.episode.tolist() == list(range(rows - last, rows))
    with pytest.raises(ValueError, match="at least two transitions to hold some out, got 1"):
        split_in_time(log.select(np.arange(1)), 0.5)


def test_squared_errors_are_pooled_over_rows():
    """√((3·1 + 1·5²) / 4) = √7."""
    parts = [Quality(1.0, 0.0, (), 3), Quality(5.0, 0.0, (), 1)]
    assert pooled_error(parts) == pytest.approx(np.sqrt(7))


def test_the_held_out_error_is_that_of_the_rows_held_out():
    """A model that predicts the mean change: its RMSE on the held-out rows is their standardised spread."""
    rng = np.random.default_rng(0)
    log = toy_log(np.zeros((40, 2)), rng.normal(size=(40, 2)), instance=np.repeat([0, 1], [10, 30]))
    config = replace(SMALL, role=LatentRole.NONE, rounds=1, held_out_share=0.2)
    model = fit_dynamics(log, config, key=KEY)
    model = eqx.tree_at(lambda m: m.posterior.mean, model, jnp.zeros_like(model.posterior.mean))
    model = eqx.tree_at(lambda m: m.posterior.rho, model, jnp.full_like(model.posterior.rho, -60.0))
    change = (log.next_state - log.state - log.next_state.mean(axis=0)) / log.next_state.std(axis=0)
    expected = np.sqrt(np.mean(change[held_out_rows(log, 0.2)] ** 2))
    assert held_out_error(model, log, key=KEY) == pytest.approx(expected, rel=1e-4)
    everything = replace(model, config=replace(config, held_out_share=0.0))
    assert held_out_error(everything, log, key=KEY) == pytest.approx(1, rel=1e-4)


def test_batches_up_to_the_capacity_share_a_compilation():
    """Two instances and four, two numbers of rounds: one program; the latents are those of the batch."""
    config, capacity = replace(SMALL, hidden=(3,)), Capacity(5, 1024)
    sizes = []
    for slopes, rounds in ((SLOPES[:2], 3), (SLOPES, 5)):
        model = fit_dynamics(slopes_log(slopes), config, key=KEY, capacity=capacity, rounds=rounds)
        assert model.latents.shape == (len(slopes), 2)
        assert model.config == config
        sizes.append(fit._run._cached._cache_size())
    assert sizes[0] == sizes[1]


def test_a_start_is_gone_on_from_and_chunks_are_shown():
    batch, config = slopes_log(SLOPES, 40), replace(SMALL, rounds=1200)
    start = fit_dynamics(batch, config, key=KEY, rounds=1)
    shown = []
    fit_dynamics(
        batch, config, key=KEY, start=start, on_chunk=lambda done, model: shown.append((done, model.latents.shape))
    )
    assert shown == [(500, (4, 2)), (1000, (4, 2)), (1200, (4, 2))]
