"""Families of users' own by `module:name`."""

import itertools

import pytest

import hipmdp

MODULE = """
from tests.families.walks import WALK as family
from tests.systems.corridor import Corridor
import equinox as eqx
class Tuned(Corridor):
    size: float = eqx.field(static=True, default=0.4)
class Half(hipmdp.AbstractFamily):
    pass
number = 3
"""
NUMBERS = itertools.count()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of its own for every test, in the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"own{next(NUMBERS)}"
    (tmp_path / f"{name}.py").write_text("import hipmdp\n" + MODULE)
    return name


def test_instance_class_and_options(module):
    assert hipmdp.make(f"{module}:family").name == "walk"
    assert hipmdp.make(f"{module}:Corridor").name == "corridor"
    assert hipmdp.make(f"{module}:Tuned", size=0.2).size == 0.2
    assert [i.label for i in hipmdp.make(f"{module}:Corridor").instances("train")] == [f"train:{i}" for i in range(5)]


def test_the_current_directory_is_looked_at_as_python_m_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [p for p in __import__("sys").path if p])
    (tmp_path / "justhere.py").write_text("from tests.families.walks import WALK as family")
    assert hipmdp.make("justhere:family").name == "walk"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("nowhere:family", {}, "There is no module 'nowhere'"),
        ("own/cartpole.py:family", {}, "is written module:name"),
        (":family", {}, "is written module:name"),
        ("OWN:famly", {}, "has no 'famly'. Did you mean 'family'"),
        ("OWN:number", {}, "is a int, not a family: name a hipmdp.AbstractFamily"),
        ("OWN:family", {"sd": 1.0}, "is made already and takes no options, got sd"),
        ("OWN:Tuned", {"sd": 1.0}, "Unknown option of OWN:Tuned 'sd'"),
        ("OWN:Half", {}, "OWN:Half cannot be made"),
    ],
)
def test_bad_names_are_one_sentence(module, text, options, words):
    with pytest.raises(ValueError, match=words.replace("OWN", module)):
        hipmdp.make(text.replace("OWN", module), **options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import not_installed_at_all", "needs 'not_installed_at_all', which is not installed"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("raise ValueError('The pole must be longer.')", "^The pole must be longer.$"),
    ],
)
def test_a_module_that_fails_says_why(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"fails{next(NUMBERS)}"
    (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(ValueError, match=words):
        hipmdp.make(f"{name}:family")
