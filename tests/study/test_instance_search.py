"""Frozen sets: how they are put together, and that what ships is true."""

from dataclasses import replace
from pathlib import Path

import jax
import pytest

import hipmdp
from hipmdp._files import read_json, save_json
from hipmdp.families.instances import resolve_instance, resolve_instances
from hipmdp.settings import recipe
from hipmdp.settings.instance_search import SearchConfig
from hipmdp.study.instance_search import search as search_module
from hipmdp.study.instance_search.freeze import assemble, is_partial, numbered_draws
from hipmdp.study.instance_search.search import replay_actions, search
from hipmdp.study.instance_search.searches import (
    claim_searches,
    pack_searches,
    packed_path,
    read_searches,
    search_name,
)
from hipmdp.study.instance_search.tasks import SearchTask, run_searches
from hipmdp.study.scheduler import run_here

SEARCHES = Path(__file__).parents[2] / "benchmarks" / "searches"
FAMILIES = {
    "grid": hipmdp.make("grid"),
    "compass": hipmdp.make("compass"),
    "acrobot": hipmdp.make("acrobot"),
    "acrobot-wide": hipmdp.make("acrobot", sd=0.25),
    "hiv": hipmdp.make("hiv"),
}


@pytest.mark.parametrize("label", FAMILIES)
def test_shipped_sets_are_complete_and_in_order(label):
    family = FAMILIES[label]
    for name, size in family.set_sizes.items():
        members = family.instances(name)
        assert len(members) == size
        for member in members:
            assert member.best_known >= max(member.random, member.constant, member.scripted)
            assert member.source["command"].startswith("hipmdp instances")
            assert member.score(member.best_known) == 1
            assert member.score(member.random) == 0
    if label != "grid":
        train, train32 = (family.instances(name) for name in ("train", "train32"))
        assert [m.theta for m in train] == [m.theta for m in train32[: len(train)]]
        others = [m for name in ("test", "validation", "final") for m in family.instances(name)]
        keys = [tuple(float(v) for v in m.theta) for m in [*train32, *others]]
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
        hipmdp.make("acrobot", sd=0.2).instances("test")


def write(work, draw, seed, **content):
    save_json(work / f"{search_name(draw, seed)}.json", {"draw": draw, "seed": seed, **content})


def fake(work, draw, best, succeeds, random=1.0, constant=2.0, seed=0):
    write(work, draw, -1, random=random, constant=constant, scripted=0.5, scripted_rule="r", constants=[constant])
    found = {"return": best, "success": float(succeeds), "method": "ddqn", "seed": seed, "actions": "0"}
    write(work, draw, seed, best=found, succeeding=found if succeeds else None, seconds=1)


def assembled(work):
    thetas = [{"number": float(i)} for i in range(6)]
    return assemble(FAMILIES["hiv"], read_searches(work), thetas, promising=[0, 3], audit=2, command="command")


def test_assembling_keeps_controllable_and_partial_apart(tmp_path):
    fake(tmp_path, 0, 50.0, True)
    fake(tmp_path, 1, 4.0, False)
    fake(tmp_path, 2, 3.9, False)
    fake(tmp_path, 3, 70.0, True)
    content = assembled(tmp_path)
    assert (content["draws"], content["searched"], content["controllable"], content["partial"]) == (6, 4, 2, 1)
    assert content["audit"] == {"draws": 2, "controllable": 1, "controllable_but_unpromising": 0, "promising": 2}
    assert [row["draw"] for row in content["sets"]["test"]] == [0, 3]
    assert [row["draw"] for row in content["sets"]["partial"]] == [1]
    assert content["sets"]["test"][1]["best_known"] == 70.0
    # A better search raises the best known return; one that heals a partial patient does not reshuffle the sets.
    fake(tmp_path, 0, 60.0, True, seed=1)
    fake(tmp_path, 1, 80.0, True, seed=1)
    content = assembled(tmp_path)
    assert [(row["draw"], row["best_known"]) for row in content["sets"]["test"]] == [(0, 60.0), (3, 70.0)]
    assert content["sets"]["partial"] == []
    assert not is_partial({"ever_succeeded": False, "random": -5.0, "constant": -1.0, "best": {"return": 3.0}})


def test_packed_searches_give_the_shipped_sets():
    """θ of every draw is stored: no random stream has a part in it."""
    family, searches = FAMILIES["hiv"], read_searches(SEARCHES / "hiv")
    shipped = read_json(Path(hipmdp.__file__).parent / "families" / "instances" / "hiv.json")
    thetas = numbered_draws(family, shipped["draws"], searches.thetas)
    again = assemble(family, searches, thetas, promising=[], audit=0, command="")
    for name, rows in shipped["sets"].items():
        assert [undated(row) for row in again["sets"][name]] == [undated(row) for row in rows]


def undated(row):
    """A member of a set, without the day and the command by which its file was written."""
    return row | {"source": {k: v for k, v in row["source"].items() if k not in ("date", "command")}}


def test_searches_are_packed_and_added_to(tmp_path):
    work = tmp_path / "hiv"
    claim_searches(work, {"family": "hiv"})
    fake(work, 0, 50.0, True)
    before = read_searches(work)
    pack_searches(work, [{"number": 0.0}, {"number": 1.0}])
    assert not work.exists()
    assert read_searches(work).found == before.found
    assert read_searches(work).thetas == {0: {"number": 0.0}, 1: {"number": 1.0}}
    first = packed_path(work).read_bytes()
    # More searches are files beside it; of two returns by one other method the better counts.
    claim_searches(work, {"family": "hiv"})
    fake(work, 1, 60.0, True)
    for value, best in ((70.0, 70.0), (90.0, 90.0), (80.0, 90.0)):
        save_json(work / "draw0001-other-blind.json", {"return": value, "method": "blind"})
        assert read_searches(work).of_draw(1, "other-")[0]["return"] == best
        pack_searches(work, []) if value > 70 else None
        claim_searches(work, {"family": "hiv"})
    assert packed_path(work).read_bytes() != first
    with pytest.raises(ValueError, match="holds another family's searches"):
        claim_searches(work, {"family": "acrobot"})
    write(work, 0, 0, best=None, succeeding=None)
    with pytest.raises(ValueError, match="hold different searches"):
        read_searches(work)


def test_searches_run_where_they_are_missing(tmp_path, monkeypatch):
    work, theta = tmp_path / "grid", (("theta", 1.0),)
    claim_searches(work, {"family": "grid"})
    fake(work, 0, 50.0, True)
    stored = [SearchTask("grid", (), 0, theta, seed) for seed in (-1, 0)]
    # No process is started for what is there.
    monkeypatch.setattr("hipmdp.study.instance_search.tasks.run_in_processes", None)
    run_searches(stored, work, 2)
    monkeypatch.setattr("hipmdp.study.instance_search.tasks.run_in_processes", lambda scheduler, _: run_here(scheduler))
    run_searches([*stored, SearchTask("grid", (), 1, theta, -1)], work, 2)
    (made,) = read_searches(work).of_draw(1, "baselines")
    assert made["theta"] == {"theta": 1.0}
    assert made["constant"] == max(made["constants"])
    assert len(made["constants"]) == 4
    with pytest.raises(ValueError, match="The search draw0002-baselines failed: Unknown parameter of grid"):
        run_searches([SearchTask("grid", (), 2, (("thta", 1.0),), -1)], work, 2)


def test_search_keeps_the_best_policy_that_it_tried(monkeypatch):
    """Among tries worth −5, 7 and 3 the second is kept, and measured again before it is reported."""
    family = FAMILIES["grid"]
    values = iter([-5.0, 7.0, 3.0, 3.0, 3.0, 3.0])
    tried = []
    monkeypatch.setattr(search_module, "mean_return", lambda episodes: tried.append(next(values)) or tried[-1])
    monkeypatch.setattr(search_module, "success_rate", lambda family, episodes: float(tried[-1] > 0))
    monkeypatch.setattr(search_module, "measured", lambda family, theta, network: {"return": 6.5, "success": 1.0})
    found = search(
        family,
        family.theta(),
        seed=0,
        config=SearchConfig(replace(recipe.search(family.specification).dqn, lanes=4), episodes=8, ticks=10),
    )
    assert found["best"]["return"] == 6.5
    assert found["best"]["episode"] == found["succeeding"]["episode"]
    assert len(tried) >= 2
