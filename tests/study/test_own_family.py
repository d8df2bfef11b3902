"""A study of a family of one's own, by module:name."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from hipmdp.families.instances import frozen_instance
from hipmdp.report.report import report
from hipmdp.study.ablations import ablated
from hipmdp.study.cells.files import write_records
from hipmdp.study.compare import compare
from hipmdp.study.results import read_results
from hipmdp.study.setup import Variant, parse_instances, parse_setup
from hipmdp.study.summary import summary_table, write_summary
from hipmdp.study.tasks import plan

SIZED = """
import equinox as eqx
from tests.systems.corridor import Corridor
class Sized(Corridor):
    size: float = eqx.field(static=True, default=0.4)
"""
WALK, CORRIDOR = "tests.families.walks:WALK", "tests.systems.corridor:Corridor"


def test_module_and_name_and_options():
    setup = parse_setup(WALK)
    assert (setup.family, setup.options) == (WALK, ())
    assert setup.family_label == "tests.families.walks.WALK"
    assert (setup.training, setup.training_episodes) == ("train", 150)
    assert parse_setup("acrobot:sd=0.25").family == "acrobot"
    assert parse_instances(setup.make(), "2") == ["test:0", "test:1"]
    (cell,) = plan([setup], ["model_free"], {setup.family_label: ["test:0"]}, [0])
    assert all(":" not in str(task.path) for task in (cell, *cell.needs, *cell.needs[0].needs))
    # A study's cells are made by other processes: what they are sent names the family.
    assert json.loads(json.dumps(cell.setup.family)) == WALK


def test_options_of_a_class(tmp_path, monkeypatch):
    (tmp_path / "sized.py").write_text(SIZED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    setup = parse_setup("sized:Sized:size=0.2")
    assert setup.make().size == 0.2
    assert setup.family_label == "sized.Sized-size0.2"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: parse_setup("nowhere:family"), "There is no module 'nowhere'"),
        (lambda: parse_setup("acrobot:wide"), "must be a number"),
        (lambda: parse_setup(f"{WALK}:sd=0.1"), "takes no options, got sd"),
        (lambda: parse_instances(parse_setup(WALK).make(), "test:20"), "test:0 to test:19"),
        (
            lambda: plan([parse_setup("tests.families.walks:SILENT")], ["embedded"], {}, [0]),
            'use reward="learned"',
        ),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_ablations_know_how_many_there_are():
    names = [s.variant.name for s in ablated(parse_setup(CORRIDOR), ["training"])]
    assert names == ["plain", *(f"training={n}" for n in (2, 4, 8, 16, 32))]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    setup = parse_setup(WALK, 2, 2, 2, variant=Variant())
    cells = plan([setup], ["model_free"], {setup.family_label: ["test:0", "test:1"]}, [0])
    assert compare(cells, out, quiet=True) == []
    return out


def test_scores_are_returns_and_are_called_so(study):
    results = read_results(study)
    (family,) = results.names("family")
    assert results.measure(family) == "return"
    record = results.records[0]
    np.testing.assert_array_equal(results.values(record, "score"), record.metrics["returns"])
    assert np.isnan(results.values(record, "log_score")).all()
    table = summary_table(results, family)
    assert "return after so many episodes" in table.title
    assert "Score 1" not in table.caption
    write_summary(results, study)
    results.write(study)
    assert read_results(study).measure(family) == "return"


def test_report_imports_no_module_that_a_study_names(study, tmp_path):
    """The study of a family that this process does not have: all that a report needs is stored."""
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    stranger = tmp_path / "study"
    cells = [replace(r, key=r.key | {"family": "evil.family"}) for r in read_results(study).records]
    for record in cells:
        record.metadata["settings"]["setup"]["family"] = "evil:family"
    (stranger / "packed").mkdir(parents=True)
    write_records(stranger / "packed" / "evil.parquet", cells)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from hipmdp.cli import main; "
        f"main(['report', {str(stranger)!r}, '--html']); "
        "assert not {'evil', 'tests.families.walks'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (stranger / "figures" / "comparison-evil.family.svg").exists()


def test_figures_without_numbers_or_scenes(study, tmp_path):
    figures = [path.stem for path in report([study], tmp_path)]
    assert "comparison-tests.families.walks.WALK" in figures
    svg = (tmp_path / "comparison-tests.families.walks.WALK.svg").read_text()
    assert "<!-- return of the greedy policy -->" in svg
    assert not any("figure" in name or "None" in name for name in figures)


def test_known_families_are_still_scored():
    instance = frozen_instance(parse_setup("acrobot").make(), "test:0")
    assert instance.is_scored
    assert instance.score(instance.best_known) == 1
    assert instance.score(instance.random) == 0
