"""What the page holds, checked by hand on invented studies; how it behaves in a browser is tested beside this."""

import base64
import hashlib
import json
import math
import re
import sys
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest

import hipmdp
from hipmdp.cli import main
from hipmdp.report.page import write_page
from hipmdp.report.page.collect import page_data
from hipmdp.report.page.latents import principal_plane
from hipmdp.report.page.plain import plain, script_json
from hipmdp.report.page.write import SCRIPTS, STYLES, page
from hipmdp.study.statistics import estimate, mean
from tests.report.invented import HOSTILE, full_study, grid_cell, write_cell


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return full_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def data(study):
    """As the page's script gets it."""
    return json.loads(script_json(page_data([study])))


def family_of(data, name):
    return next(family for family in data["families"] if family["name"] == name)


def embedded(text):
    """The data of a page."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def test_numbers_are_short_and_nothing_is_not_finite():
    short = plain({"a": np.asarray([1 / 3, math.nan, math.inf, 2.0]), "b": (np.int32(7), np.float32(0.1), True, None)})
    assert short == {"a": [0.333333, None, None, 2], "b": [7, 0.1, True, None]}
    assert repr(short["a"][3]) == "2"
    assert plain(1234567.8) == 1234570


def test_no_name_can_leave_the_data():
    names = {HOSTILE: "<!--<script>", "b": "-->&lt;\u2028"}
    text = script_json(names)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == names


def test_places_to_fill_inside_the_data_stay_as_they_are():
    text = page(script_json({"name": "{{script}}{{data}}"}))
    assert embedded(text) == {"name": "{{script}}{{data}}"}


def test_means_and_intervals_of_the_curves(tmp_path):
    scores = {(0, 0): [0.1, 0.9], (0, 1): [0.3, 0.9], (1, 0): [0.5, 0.9], (1, 1): [0.7, 0.9]}
    for (seed, instance), values in scores.items():
        grid_cell(tmp_path, "scratch", instance, seed, values, error=0.1 * (1 + seed))
    (family,) = page_data([tmp_path])["families"]
    (group,) = family["groups"]
    (series,) = group["series"]
    assert (group["name"], group["left_out"], series["seeds"], series["instances"]) == ("all methods", {}, 2, 2)
    curve = series["curves"]["score"]
    assert curve["first"] == 1
    assert curve["mean"] == pytest.approx([0.4, 0.9])
    # Within an instance the seeds lie 0.4 apart: both alike is the furthest that a mean can be off.
    assert curve["low"] == pytest.approx([0.2, 0.9])
    assert curve["high"] == pytest.approx([0.6, 0.9])
    assert series["curves"]["model_error"]["mean"] == pytest.approx([0.15, 0.15])
    assert "log_score" not in series["curves"]  # random returns are negative
    (row,) = family["summary"]["rows"]
    assert family["summary"]["after"] == [1, 2]
    expected = estimate(mean, np.asarray([[0.1, 0.3], [0.5, 0.7]]))
    assert row["values"][0] == pytest.approx([expected.value, expected.low, expected.high])
    assert (row["success"], row["seconds"]) == (1, 2)


def test_a_study_under_way(tmp_path):
    """One seed has no interval; a method that lacks an instance is left out and counted, but can be shown."""
    for instance in (0, 1):
        grid_cell(tmp_path, "embedded", instance, 0, [0.5, 1.0])
    grid_cell(tmp_path, "scratch", 0, 0, [0.5, 1.0])
    (family,) = json.loads(script_json(page_data([tmp_path])))["families"]
    (group,) = family["groups"]
    assert [series["name"] for series in group["series"]] == ["embedded"]
    assert group["left_out"] == {"scratch": 1}
    assert group["series"][0]["curves"]["score"]["low"] == [None, None]
    assert [cell["method"] for cell in family["cells"]] == ["embedded", "embedded", "scratch"]


def test_long_runs_are_smoothed_and_on_their_own(tmp_path):
    grid_cell(tmp_path / "short", "model_free", 0, 0, [0.5, 1.0])
    grid_cell(tmp_path / "long", "model_free", 0, 0, np.arange(60) / 100)
    (family,) = page_data([tmp_path / "short", tmp_path / "long"])["families"]
    short, long = family["groups"]
    assert (short["name"], long["name"]) == ("all methods", "long runs")
    curve = long["series"][0]["curves"]["score"]
    assert curve["first"] == 10
    assert len(curve["mean"]) == 51
    assert curve["mean"][0] == pytest.approx(0.045)  # the mean of 0.00 … 0.09
    assert len(short["series"][0]["curves"]["score"]["mean"]) == 2


def test_the_plane_in_which_latents_differ():
    """Along (1, 2, 2) / 3 the places are the lengths, whichever way the latents point."""
    direction = np.asarray([1.0, 2.0, 2.0]) / 3
    places, shares = principal_plane(np.outer([1.0, 2.0, 6.0], direction) + 5)
    np.testing.assert_allclose(places, [[-2, 0], [-1, 0], [3, 0]], atol=1e-12)
    np.testing.assert_allclose(shares, [1, 0], atol=1e-12)
    square = np.asarray([[2.0, 0, 0], [-2, 0, 0], [0, 1, 0], [0, -1, 0]])
    places, shares = principal_plane(square)
    np.testing.assert_allclose(places, square[:, :2], atol=1e-12)
    np.testing.assert_allclose(shares, [0.8, 0.2])
    places, shares = principal_plane(np.asarray([[3.0, 4.0], [5.0, 6.0]]))
    assert (places.tolist(), shares) == ([[3, 4], [5, 6]], None)
    places, shares = principal_plane(np.asarray([[3.0]]))
    assert (places.tolist(), shares) == ([[3, 0]], None)
    places, shares = principal_plane(np.ones((1, 5)))
    assert (places.tolist(), shares.tolist()) == ([[0, 0]], [0, 0])


def test_every_seed_has_its_own_map(data):
    grid = family_of(data, "grid")
    assert [(m["method"], m["seed"], m["size"]) for m in grid["latents"]] == [("embedded", 0, 3), ("embedded", 1, 3)]
    for latents in grid["latents"]:
        # Two latents that differ by one in their first number.
        assert latents["places"] == [[-0.5, 0], [0.5, 0]]
        assert [grid["cells"][cell]["seed"] for cell in latents["cells"]] == [latents["seed"]] * 2
    assert family_of(data, "hiv")["latents"] == []


def test_cells_hold_what_the_player_needs(data):
    grid = family_of(data, "grid")
    cell = grid["cells"][0]
    assert cell["states"] == [[-1.5, -1.2, -1.2, -1.2], [-1.5, -1.5, -1.2, -0.9]]
    assert cell["actions"] == [2, 1, 1]
    assert cell["metrics"]["score"] == [0.8, 0.9, 1]
    assert len(grid["runs"]) == 1
    assert {cell["run"] for cell in grid["cells"]} == {0}
    assert grid["runs"][0]["versions"] == {"hipmdp": "0.1.0"}
    assert [family["scene"]["kind"] for family in data["families"]] == ["grid", "acrobot", "hiv", "chart"]


def test_the_scene_of_grid(data):
    """Wind pushes by 0.3 · 0.23 · r, to the West in class 0 and to the South in class 1."""
    classes = family_of(data, "grid")["scene"]["classes"]
    assert [kind["wall"] for kind in classes] == [[[0, 0], [2, 0]], [[0, 0], [0, 2]]]
    for kind, sign in zip(classes, ((1, 0), (0, 1)), strict=True):
        for x, y, wind_x, wind_y in kind["wind"]:
            push = -0.3 * 0.23 * math.hypot(x + 1.5, y + 1.5)
            assert (wind_x, wind_y) == pytest.approx((push * sign[0], push * sign[1]), abs=1e-5)


def test_treatment_rows_of_a_patient(data):
    scene = family_of(data, "hiv")["scene"]
    assert [(row["name"], row["actions"]) for row in scene["treatments"]] == [("RTI", [1, 3]), ("PI", [2, 3])]
    assert (scene["days"], scene["last_day"], scene["healthy"], len(scene["markers"])) == (5, 1000, 5, 6)


def test_a_users_family_is_shown_without_scores(data):
    own = family_of(data, HOSTILE)
    assert own["scene"]["states"] == [HOSTILE, "v", "w"]
    assert own["scene"]["actions"] == ["0", "1", "2", "3", "4"]
    assert own["scene"]["parameters"] == [HOSTILE]
    assert own["summary"]["measure"] == "returns"
    assert own["measures"]["success"] == f"success of the greedy policy: {HOSTILE}"
    assert [value[0] for value in own["summary"]["rows"][0]["values"]] == [10, 20]
    assert "score" not in own["cells"][0]["metrics"]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({}, "grid"), ({"picture": "hiv"}, "chart"), ({"picture": "moon"}, "chart"), ({"options": {}}, "chart")],
)
def test_a_picture_is_drawn_where_the_numbers_fit(tmp_path, changes, kind):
    facts = replace(hipmdp.make("grid", beta=0.5).facts(), **changes)
    states = [[0, 0], [1, 1]]
    write_cell(tmp_path, "grid-b", "m", "mine", 0, [1.0], states=states, actions=[2], theta={"theta": 0.0}, facts=facts)
    (family,) = page_data([tmp_path])["families"]
    assert (family["scene"]["kind"], family["scene"]["states"]) == (kind, ("x", "y"))
    assert family["summary"]["measure"] == "returns"


def test_the_file_stands_alone(study, tmp_path):
    path = write_page([study], tmp_path / "new" / "report.html")
    assert path == tmp_path / "new" / "report.html"
    text = path.read_text(encoding="utf-8")
    assert "</script><b>" not in text
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    markup = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.S)
    assert not re.search(r"\s(on\w+|style|src)\s*=", markup)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    hashes = {kind: base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for kind, s in
            (("script-src", script), ("style-src", style))}  # fmt: skip
    expected = {"default-src": "none", "base-uri": "none", "form-action": "none"}
    expected |= {kind: f"sha256-{value}" for kind, value in hashes.items()}
    assert dict(part.split(" ") for part in policy.split("; ")) == {k: f"'{v}'" for k, v in expected.items()}
    assert list(path.parent.iterdir()) == [path]


def test_the_same_results_give_the_same_page(study, tmp_path):
    first, second = (write_page([study], tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


def test_what_cannot_be_read_leaves_the_old_page(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="no finished cells"):
        write_page([tmp_path], path)
    assert path.read_text() == "old"


def test_every_asset_is_used_and_small():
    assets = {asset.name: asset.read_text(encoding="utf-8") for asset in
              resources.files("hipmdp.report.page").joinpath("assets").iterdir()}  # fmt: skip
    assert set(assets) == {*SCRIPTS, *STYLES, "page.html"}
    assert all(text.count("\n") < 300 for text in assets.values())
    # Either would end the element that the file is put into.
    assert not any("</script" in assets[name] or "</style" in assets[name] for name in (*SCRIPTS, *STYLES))
    # Text goes in as text.
    assert not any(
        re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", t) for t in assets.values()
    )


def test_the_command_writes_the_page_beside_the_figures(tmp_path, capsys, monkeypatch):
    for instance in (0, 1):
        grid_cell(tmp_path, "scratch", instance, 0, [0.5, 1.0])
    monkeypatch.setattr(sys, "argv", ["hipmdp", "report", str(tmp_path), "--html"])
    main()
    path = tmp_path / "figures" / "report.html"
    assert str(path) in capsys.readouterr().out
    assert embedded(path.read_text(encoding="utf-8"))["studies"] == [tmp_path.name]
