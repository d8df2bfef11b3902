"""Frozen sets: how they are put together, and that what ships is true."""

import json

import jax
import pytest

import hipmdp
from hipmdp.families.instance_sets import frozen_instances, resolve_instance, resolve_instances
from hipmdp.transfer.best_known import SIZES, assemble, is_partial, task_path
from hipmdp.transfer.search import SEARCH, SearchConfig, replay_actions, search

FAMILIES = {
    "grid": hipmdp.make("grid"),
    "acrobot": hipmdp.make("acrobot"),
    "acrobot-wide": hipmdp.make("acrobot", sd=0.25),
    "hiv": hipmdp.make("hiv"),
}


@pytest.mark.parametrize("label", FAMILIES)
def test_shipped_sets_are_complete_and_in_order(label):
    family = FAMILIES[label]
    sizes = SIZES[family.name]
    names = ["train", "test"] + ([] if label == "grid" else ["train32"]) + (["partial"] if label == "hiv" else [])
    for name in names:
        members = family.instances(name)
        assert len(members) == getattr(sizes, name)
        for member in members:
            assert member.best_known >= max(member.random, member.constant, member.scripted)
            assert member.source["command"].startswith("hipmdp instances")
            assert member.score(member.best_known) == 1
            assert member.score(member.random) == 0
    if label != "grid":
        train, train32, test = (family.instances(name) for name in ("train", "train32", "test"))
        assert [m.theta for m in train] == [m.theta for m in train32[: len(train)]]
        keys = [tuple(float(v) for v in m.theta) for m in train32 + test]
        assert len(set(keys)) == len(keys)


def test_best_known_schedules_of_hiv_can_be_replayed():
    """The stored actions earn the stored return (within 1 %: some patients amplify rounding) and heal."""
    family = FAMILIES["hiv"]
    for member in family.instances("test")[:6]:
        found = replay_actions(family, member.theta, member.source["actions"])
        assert found == pytest.approx(member.best_known, rel=0.01)


def test_instances_are_given_in_many_forms():
    family = FAMILIES["acrobot"]
    test = family.instances("test")
    key = jax.random.key(5)
    assert resolve_instance(family, "test:3", key) == test[3].theta
    assert resolve_instance(family, test[3], key) == test[3].theta
    assert float(resolve_instance(family, {"l1": 1.1}, key).l1) == pytest.approx(1.1)
    drawn = resolve_instance(family, None, key)
    assert bool(family.is_well_behaved(drawn))
    assert len(resolve_instances(family, 3, key)) == 3
    assert resolve_instances(family, 3, key) == [m.theta for m in family.instances("train32")[:3]]
    assert len(resolve_instances(family, "train", key)) == 8
    assert len(resolve_instances(family, ["test:0", {"m1": 1.2}], key)) == 2
    for bad, message in (("test:20", "test:0 to test:19"), ("test:x", "test:0"), ("tests", "Did you mean 'test'")):
        with pytest.raises(ValueError, match=message):
            resolve_instance(family, bad if ":" in bad else bad + ":0", key)
    with pytest.raises(ValueError, match="no frozen instances"):
        frozen_instances(hipmdp.make("acrobot", sd=0.2), "test")


def write(work, draw, seed, **content):
    task_path(work, draw, seed).write_text(json.dumps({"draw": draw, "seed": seed, **content}))


def fake(work, draw, best, succeeds, random=1.0, constant=2.0, seed=0):
    write(work, draw, -1, random=random, constant=constant, scripted=0.5, scripted_rule="r", constants=[constant])
    found = {"return": best, "success": float(succeeds), "method": "ddqn", "seed": seed, "actions": "0"}
    write(work, draw, seed, best=found, succeeding=found if succeeds else None, seconds=1)


def test_assembling_keeps_controllable_and_partial_apart(tmp_path):
    fake(tmp_path, 0, 50.0, True)
    fake(tmp_path, 1, 4.0, False)
    fake(tmp_path, 2, 3.9, False)
    fake(tmp_path, 3, 70.0, True)
    content = assemble(FAMILIES["hiv"], tmp_path, 6, "command")
    assert (content["draws"], content["searched"], content["controllable"], content["partial"]) == (6, 4, 2, 1)
    assert [row["draw"] for row in content["sets"]["test"]] == [0, 3]
    assert [row["draw"] for row in content["sets"]["partial"]] == [1]
    assert content["sets"]["test"][1]["best_known"] == 70.0
    # A better search raises the best known return; one that heals a partial patient does not reshuffle the sets.
    fake(tmp_path, 0, 60.0, True, seed=1)
    fake(tmp_path, 1, 80.0, True, seed=1)
    content = assemble(FAMILIES["hiv"], tmp_path, 6, "command")
    assert [(row["draw"], row["best_known"]) for row in content["sets"]["test"]] == [(0, 60.0), (3, 70.0)]
    assert content["sets"]["partial"] == []
    assert not is_partial({"ever_succeeded": False, "random": -5.0, "constant": -1.0, "best": {"return": 3.0}})


def test_search_keeps_the_best_policy_that_it_tried(monkeypatch):
    """Among tries worth −5, 7 and 3 the second is kept, and measured again before it is reported."""
    from hipmdp.transfer import search as module

    family = FAMILIES["grid"]
    values = iter([-5.0, 7.0, 3.0, 3.0, 3.0, 3.0])
    tried = []
    monkeypatch.setattr(module, "mean_return", lambda episodes: tried.append(next(values)) or tried[-1])
    monkeypatch.setattr(module, "success_rate", lambda family, episodes: float(tried[-1] > 0))
    monkeypatch.setattr(module, "measured", lambda family, theta, network: {"return": 6.5, "success": 1.0})
    found = search(family, family.theta(), seed=0, config=SearchConfig(SEARCH["grid"].learner, episodes=8, ticks=10))
    assert found["best"]["return"] == 6.5
    assert found["best"]["episode"] == found["succeeding"]["episode"]
    assert len(tried) >= 2
