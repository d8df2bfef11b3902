"""What the pages say is so: code runs, commands parse, links and paths lead somewhere."""

import functools
import re
import shlex
import sys
import tomllib
import types

import jax
import pytest

from hipmdp import cli
from tests.docs.pages import PAGES, ROOT, blocks, commands, links, paths
from tests.docs.small import make_small

MOST_NOT_RUN = 3


def names(chosen):
    return {"argvalues": chosen, "ids": [page.name for page in chosen]}


@pytest.fixture(scope="module")
def quick_compilation():
    """Programs that run once are not worth optimizing; none of them may be left for other tests."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.filterwarnings("ignore::hipmdp.LatentIgnoredWarning")
@pytest.mark.parametrize("page", **names([p for p in PAGES if any(b.language == "python" for b in blocks(p))]))
def test_the_code_runs(page, monkeypatch, tmp_path):
    """All blocks of a page in one namespace and an empty directory, at a small size (tests/docs/small.py)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    make_small(monkeypatch)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for block in blocks(page):
        if block.language == "python" and block.not_run is None:
            # Empty lines before it, so that a traceback tells the line of the page.
            exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), vars(module))


def test_few_blocks_are_not_run():
    assert sum(block.not_run is not None for page in PAGES for block in blocks(page)) <= MOST_NOT_RUN


@pytest.mark.parametrize("page", **names(PAGES))
def test_every_block_says_what_it_is(page):
    """A block in a language that nobody runs or parses would rot."""
    assert {block.language for block in blocks(page)} <= {"python", "sh", "console", "text", "csv", "json"}


@pytest.fixture
def parse(monkeypatch):
    """`hipmdp` on the words of a command, which is then not carried out."""
    known = cli.command
    monkeypatch.setattr(cli, "command", lambda name: functools.wraps(known(name))(lambda **options: None))
    return cli.main


COMMANDS = [(page.name, line) for page in PAGES for line in commands(page)]


@pytest.mark.parametrize("line", sorted({line for _, line in COMMANDS if line.startswith("hipmdp ")}))
def test_commands_parse(line, parse):
    parse(shlex.split(line, comments=True)[1:])


def test_a_renamed_flag_would_be_noticed(parse, capsys):
    with pytest.raises(SystemExit):
        parse(["adapt", "hiv", "--instanz", "test:3"])
    assert "--instanz" in capsys.readouterr().err


def test_make_and_pip_know_what_is_asked_of_them():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for page, line in COMMANDS:
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= targets, (page, line)
        if words[0] == "pip":
            asked = {extra for word in words for group in re.findall(r"\[(.+)\]", word) for extra in group.split(",")}
            assert asked <= set(extras), (page, line)


@pytest.mark.parametrize("page", **names(PAGES))
def test_links_lead_somewhere(page):
    """Anchors are checked by the strict build."""
    gone = [link for link in links(page) if not (page.parent / link.partition("#")[0]).exists()]
    assert gone == []


@pytest.mark.parametrize("page", **names(PAGES))
def test_paths_exist(page):
    places = (ROOT, ROOT / "src")
    gone = [path for path in paths(page) if not any((place / path).exists() for place in places)]
    assert gone == []


def test_messages_are_those_of_the_source():
    """Tables that explain messages: each part between two … stands in the source."""
    source = "".join(path.read_text() for path in sorted((ROOT / "src" / "hipmdp").rglob("*.py")))
    source = re.sub(r'"\s*f?"', "", source)
    rows = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "your-logs.md").read_text(), re.MULTILINE)
    explained = [row for row in rows if not row.startswith("--")]
    assert len(explained) > 20
    parts = [part.removeprefix("Unknown ").strip(" ,:") for row in explained for part in row.split("…")]
    assert [part for part in parts if part not in source] == []
