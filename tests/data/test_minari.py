"""Minari datasets as logs."""

import warnings

import gymnasium
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer

from hipmdp.data.logs.columns import LogColumns
from hipmdp.data.logs.read import read_logs

COLUMNS = LogColumns(
    state=("x0", "x1"), action="action", episode="episode", reward="reward", terminated="terminated",
    instance="info.machine",
)  # fmt: skip


def dataset(name, machines, action_space=None):
    buffers = [
        EpisodeBuffer(
            observations=list(np.asarray([[i, 10.0 * t] for t in range(4)], np.float32)),
            actions=[0, 2, 1],
            rewards=[1.0, 2.0, 3.0],
            terminations=[False, False, i == 0],
            truncations=[False, False, i != 0],
            infos={"machine": [machine] * 4},
        )
        for i, machine in enumerate(machines)
    ]
    with warnings.catch_warnings():
        # It would like to know who we are.
        warnings.simplefilter("ignore", UserWarning)
        return minari.create_dataset_from_buffers(
            name,
            buffers,
            action_space=action_space or gymnasium.spaces.Discrete(3),
            observation_space=gymnasium.spaces.Box(-100, 100, (2,), np.float32),
        )


@pytest.fixture(autouse=True)
def _own_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def test_the_instance_is_an_info_key():
    dataset("fleet/info-v0", [5, 5, 8])
    log = read_logs("minari:fleet/info-v0", COLUMNS, least=1)
    assert log.names == {0: "5", 1: "8"}
    np.testing.assert_array_equal(log.instance, [0] * 6 + [1] * 3)
    np.testing.assert_array_equal(log.action[:3], [0, 2, 1])
    np.testing.assert_array_equal(log.next_state[:3], [[0, 10], [0, 20], [0, 30]])
    np.testing.assert_array_equal(log.reward[:3], [1, 2, 3])
    np.testing.assert_array_equal(log.terminated[:6], [False, False, True, False, False, False])


def test_the_instance_is_in_the_metadata_of_episodes():
    made = dataset("fleet/meta-v0", [0, 0])
    made.storage.update_episode_metadata([{"who": "left pump"}, {"who": "right pump"}])
    log = read_logs("minari:fleet/meta-v0", LogColumns(**{**vars(COLUMNS), "instance": "metadata.who"}), least=1)
    assert log.names == {0: "left pump", 1: "right pump"}


def test_each_dataset_is_an_instance():
    for name in ("a", "b"):
        dataset(f"fleet/{name}-v0", [1, 2])
    columns = LogColumns(**{**vars(COLUMNS), "instance": None})
    log = read_logs(["minari:fleet/a-v0", "minari:fleet/b-v0"], columns, least=1)
    assert log.names == {0: "a-v0", 1: "b-v0"}
    assert len(log) == 12


def test_what_cannot_be_read_is_said():
    with pytest.raises(ValueError, match="Cannot read the Minari dataset 'no/such-v0'"):
        read_logs("minari:no/such-v0", COLUMNS)
    dataset("fleet/box-v0", [0], gymnasium.spaces.Box(0, 3, (), np.float32))
    with pytest.raises(ValueError, match="continuous actions cannot be learned"):
        read_logs("minari:fleet/box-v0", COLUMNS)


def test_names_are_told_apart_or_refused():
    dataset("fleet/bytes-v0", [b"caf\xc3\xa9", b"cafe"])
    assert list(read_logs("minari:fleet/bytes-v0", COLUMNS, least=1).names.values()) == ["café", "cafe"]
    dataset("fleet/latin-v0", [b"caf\xe9", b"caf\xe8"])
    with pytest.raises(ValueError, match=r"row 1, column 'info\.machine' is not UTF-8 text"):
        read_logs("minari:fleet/latin-v0", COLUMNS, least=1)
    dataset("fleet/mixed-v0", [5, "five"])
    with pytest.raises(ValueError, match="episodes of 'fleet/mixed-v0' do not fit together"):
        read_logs("minari:fleet/mixed-v0", COLUMNS, least=1)
