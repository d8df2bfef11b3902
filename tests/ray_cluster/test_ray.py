"""A study on a real Ray cluster of two nodes, one of which dies on the way. `make test-ray`"""

import os
import threading
import time

import pytest

from hipmdp.study.compare import Executor, compare
from hipmdp.study.results import read_results
from tests.study import tiny
from tests.study.test_study import Broken

# Read when Ray is imported: otherwise it takes 127.0.0.1 for the machine's outer address.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes of one core each, that only this machine can reach."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False},
    )
    made.add_node(num_cpus=1, node_ip_address="127.0.0.1")
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.parametrize("shared", [False, True])
def test_a_node_dies_and_the_study_ends_with_the_same_numbers(cluster, tmp_path, shared):
    seeds = 4
    executor = Executor(ray=True, shared=shared)
    failed: list = []
    driver = threading.Thread(target=lambda: failed.extend(compare(tiny.cells(seeds), tmp_path, executor, quiet=True)))
    driver.start()
    end = time.monotonic() + 240
    while not list(tmp_path.glob("cells/**/*.parquet")) and time.monotonic() < end:
        time.sleep(0.1)
    # The head holds the cluster's memory of itself; the other one goes, with whatever it is working on.
    victim = next(node for node in cluster.worker_nodes)
    before = len([node for node in ray.nodes() if node["Alive"]])
    cluster.remove_node(victim, allow_graceful=False)
    driver.join(timeout=400)
    assert not driver.is_alive()
    assert before == 2
    # The cluster notices a death by and by.
    while len([node for node in ray.nodes() if node["Alive"]]) > 1 and time.monotonic() < end:
        time.sleep(0.5)
    assert len([node for node in ray.nodes() if node["Alive"]]) == 1
    assert failed == []
    calm = tmp_path / "calm"
    assert compare(tiny.cells(seeds), calm, Executor(jobs=2), quiet=True) == []
    assert tiny.numbers(read_results(tmp_path)) == tiny.numbers(read_results(calm))


def test_a_cell_that_fails_is_recorded(cluster, tmp_path):
    good = tiny.cells(1)
    bad = Broken(good[0].setup, 7, "model_free", "model_free", "test:0")
    failed = compare([bad, *good], tmp_path, Executor(ray=True), quiet=True)
    assert [(cell, reason) for cell, reason in failed] == [(bad, "the pendulum fell off")]
    assert all((tmp_path / cell.path).exists() for cell in good)
    # What is there is not made again.
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    compare(good, tmp_path, Executor(ray=True), quiet=True)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
