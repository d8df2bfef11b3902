"""Every figure is drawn from stored results; which ones depends on what is there."""

import functools
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp._files import save_json
from hipmdp.adaptation.run import Run
from hipmdp.cli import main
from hipmdp.control.policies import Greedy, repeat_theta
from hipmdp.control.policy import Policy
from hipmdp.control.q_network import QNetwork
from hipmdp.data.transitions import empty_transitions
from hipmdp.families.scripted import random_policy
from hipmdp.pretraining.model import Model
from hipmdp.report.report import report
from hipmdp.study.cells.files import write_records
from hipmdp.study.cells.record import new_record
from hipmdp.study.results import LONG, read_results
from hipmdp.study.summary import summary_rows

METHODS = {"embedded": 0.9, "linear": 0.7, "average": 0.4, "scratch": 0.2, "model_free": 0.1, "blind": 0.5}


@functools.cache
def some_episode(family):
    keys = jax.random.split(jax.random.key(0), 1)
    zeros = jnp.zeros(family.specification.state_size, jnp.float32)
    network = QNetwork(zeros, zeros + 1, 2, (3,), key=keys[0])
    return network, family.rollouts(random_policy(family), keys, repeat_theta(family.theta(), 1))


def invent(directory, family, label, method, instance, seed, episodes, variant="plain"):
    """A cell with invented numbers and a real (random) episode."""
    member = family.instances("test")[instance]
    rng = np.random.default_rng(seed)
    score = METHODS[method] * (1 - np.exp(-np.arange(1, episodes + 1))) + 0.05 * rng.normal(size=episodes)
    returns = member.random + score * (member.best_known - member.random)
    spec = family.specification
    nothing = empty_transitions(spec)
    untrained = Model(method, spec, spec.state_centre, spec.state_scale)
    network, greedy = some_episode(family)
    error = np.full(episodes, np.nan if method in ("model_free", "blind") else 0.1)
    ones = np.ones(episodes)
    run = Run(
        method, member.theta, returns=returns, success=ones, learning_returns=returns, model_error=error, seconds=ones,
        transitions=nothing, evaluation=greedy, trace=(), model=untrained, network=network,
        policy=Policy(spec, Greedy(network)),
    )  # fmt: skip
    key = {"family": label, "method": method, "variant": variant, "instance": f"test:{instance}", "seed": seed}
    folder = directory / "cells" / label / method / variant
    folder.mkdir(parents=True, exist_ok=True)
    options = [["sd", 0.25]] if "sd" in label else []
    settings = {"setup": {"family": family.name, "options": options}}
    record = new_record(key, run, family=family.facts(), instance=member, settings=settings)
    write_records(folder / f"test{instance}-seed{seed}.parquet", [record])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    directory = tmp_path_factory.mktemp("study")
    families = {
        "grid": hipmdp.make("grid"),
        "acrobot-sd0.25": hipmdp.make("acrobot", sd=0.25),
        "hiv": hipmdp.make("hiv"),
    }
    for label, family in families.items():
        for method in METHODS:
            for seed in (0, 1):
                invent(directory, family, label, method, seed, seed, 10)
                invent(directory, family, label, method, 1 - seed, seed, 10)
            invent(directory / "long", family, label, method, 0, 0, LONG + 10)
    for variant in ("latent_size=2", "latent_size=12", "imagination=mean"):
        invent(directory, families["hiv"], "hiv", "embedded", 0, 0, 10, variant)
    extras = directory / "extras"
    extras.mkdir()
    maps = {"variance": np.full((20, 20), 0.1).tolist(), "red": [[1] * 20] * 20, "blue": [[50] * 20] * 20}
    save_json(extras / "uncertainty-seed0.json", maps)
    rows = [{"episode": e, "rows": 100 * (e + 1), "updated": e % 10 == 9, "seconds": 1.0 + e} for e in range(30)]
    for model in ("bnn", "gp"):
        measured = {"model": model, "exponent": 0.0, "rows": rows}
        save_json(extras / f"scaling-{model}-seed0.json", measured)
    return directory


def test_every_figure_of_the_paper(study, tmp_path):
    names = {path.stem for path in report([study, study / "long"], tmp_path)}
    paper = {"figure1-uncertainty", "figure5-scaling", "figure7-parameters"}
    for number, error, label in (("2", "6a", "grid"), ("3", "6-", "acrobot-sd0.25"), ("4", "6b", "hiv")):
        paper |= {f"figure{number}a-{label}", f"figure{number}b-{label}", f"figure{error}-{label}", f"figure8-{label}"}
    assert names == paper | {"ablations-hiv"}
    for name in names:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (tmp_path / f"{name}.svg").read_bytes()


def test_the_same_results_give_the_same_svg(study, tmp_path):
    shutil.copytree(study / "cells" / "hiv", tmp_path / "study" / "cells" / "hiv")
    for folder in ("a", "b"):
        report([tmp_path / "study"], tmp_path / folder)
    drawn = list((tmp_path / "a").glob("*.svg"))
    assert len(drawn) == 5
    for path in drawn:
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_study_of_one_family_draws_only_that(study, tmp_path, capsys, monkeypatch):
    shutil.copytree(study / "cells" / "hiv", tmp_path / "cells" / "hiv")
    monkeypatch.setattr(sys, "argv", ["hipmdp", "report", str(tmp_path)])
    main()
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert drawn == {"figure4a-hiv", "figure4b-hiv", "figure6b-hiv", "figure7-parameters", "ablations-hiv"}
    assert "embedded" in capsys.readouterr().out
    assert (tmp_path / "figures" / "summary.csv").stat().st_size > 0


def test_long_runs_have_their_own_table(study, tmp_path, capsys, monkeypatch):
    shutil.copytree(study / "cells" / "hiv", tmp_path / "short" / "cells" / "hiv")
    studies = [str(tmp_path / "short"), str(study / "long")]
    monkeypatch.setattr(sys, "argv", ["hipmdp", "report", *studies, "--out", str(tmp_path)])
    main()
    rows = (tmp_path / "summary.csv").read_text().splitlines()
    assert rows
    assert max(int(row.split(",")[4]) for row in rows[1:]) == 9
    with pytest.raises(ValueError, match="Two of these studies hold"):
        report([study, study], tmp_path)


def test_a_study_under_way_can_be_drawn(study, tmp_path):
    """One cell of a method that has no whole seed yet."""
    source = study / "cells" / "grid"
    shutil.copytree(source / "model_free", tmp_path / "cells" / "grid" / "model_free")
    folder = tmp_path / "cells" / "grid" / "embedded" / "plain"
    folder.mkdir(parents=True)
    shutil.copy(source / "embedded" / "plain" / "test0-seed0.parquet", folder)
    names = {path.stem for path in report([tmp_path], tmp_path / "figures")}
    assert "figure2b-grid" in names
    assert "figure6a-grid" not in names


def test_embedded_is_compared_with_the_others(study):
    rows = summary_rows(read_results(study))
    (row,) = [r for r in rows if (r["family"], r["method"], r["what"], r["episode"]) == ("grid", "scratch", "score", 9)]
    assert row["embedded_minus_this"] == pytest.approx(0.7, abs=0.1)
    assert row["embedded_minus_this_low"] > 0.5
    assert row["embedded_better"] == 1


def test_the_parameter_table_names_all_parameters():
    parameters = hipmdp.make("hiv").facts().parameters
    assert tuple(p.name for p in parameters) == hipmdp.make("hiv").baseline._fields
    assert all(p.symbol and p.meaning and p.unit for p in parameters)
    assert sum(p.varied for p in parameters) == 12
    assert all(p.varied for p in hipmdp.make("hiv", vary="all").facts().parameters)
