"""Event files for TensorBoard: one folder per cell, never outside the directory."""

import numpy as np
import pytest

from hipmdp.report.tensorboard import write_results
from hipmdp.study.cells.record import METRICS
from hipmdp.study.results import Results
from tests.study.test_pack import odd_record


def results(**key):
    record = odd_record(metrics={name: np.ones(6) for name in METRICS})
    record.key.update(key)
    return Results([record])


def test_a_folder_for_every_cell(tmp_path):
    for _ in range(2):
        write_results(results(), tmp_path)
        # What an earlier call wrote is replaced.
        (events,) = (tmp_path / "own" / "m" / "v=1" / "test10-seed0").iterdir()
        assert events.name.startswith("events.out.tfevents")
        assert all(name.encode() in events.read_bytes() for name in (*METRICS, "score"))


@pytest.mark.parametrize("part", ["family", "method", "variant", "instance"])
def test_no_name_leads_out_of_the_directory(tmp_path, part):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="cannot be the name of a file"):
        write_results(results(**{part: "../../evil"}), out)
    assert not list(tmp_path.iterdir())
