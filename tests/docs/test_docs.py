"""What the pages say is so: code runs, commands parse, links and paths lead somewhere."""

import ast
import functools
import re
import shlex
import sys
import tomllib
import types

import jax
import pytest

from hipmdp import cli
from tests.docs.pages import NOTES, PAGES, ROOT, USER_PAGES, blocks, commands, links, paths, prose_lines
from tests.docs.small import make_small

MOST_NOT_RUN = 3
LONGEST_LINE, LONGEST_CELL, LONGEST_README = 200, 120, 100
WORDS = re.compile(
    r"\b(meeting|students?|lived|told|followed|worlds|life_decides|rehears\w*|outlook|recognise\w*|teach_on|begun_anew"
    r"|look_episodes|looks_per_latent|sittings?|asked)\b",
    re.IGNORECASE,
)
"""Words with a standard name in RL, and words of history: neither belongs in a page for users."""


def names(chosen):
    return {"argvalues": chosen, "ids": [str(page.relative_to(ROOT)) for page in chosen]}


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


@pytest.mark.parametrize("page", **names(USER_PAGES))
def test_words_are_standard_ones(page):
    found = [
        (number, word) for number, line in enumerate(page.read_text().splitlines(), 1) for word in WORDS.findall(line)
    ]
    assert found == []


def test_the_source_has_no_words_of_its_own():
    """Words for which the paper or standard RL has others."""
    own = re.compile(
        r"\b(meeting|students?|lived|told|followed|worlds|life_decides|rehears\w*|outlook|recognise|teach_on|begun_anew|"
        r"look_episodes|looks_per_latent)\b", re.IGNORECASE,
    )  # fmt: skip
    paths = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".js", ".html", ".css")]
    assert len(paths) > 100
    assert [(path.name, word) for path in paths for word in own.findall(path.read_text())] == []


@pytest.mark.parametrize("page", **names([*USER_PAGES, ROOT / "CONTRIBUTING.md"]))
def test_lines_and_cells_are_short(page):
    lines = prose_lines(page)
    assert [number for number, line in lines if len(line) > LONGEST_LINE] == []
    cells = [(number, cell.strip()) for number, line in lines if line.startswith("|") for cell in line.split("|")]
    assert [cell for cell in cells if len(cell[1]) > LONGEST_CELL] == []


def test_the_readme_is_short_and_has_a_picture():
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= LONGEST_README
    assert "![" in text


@pytest.mark.parametrize("page", **names([*PAGES, *NOTES]))
def test_links_lead_somewhere(page):
    """Anchors are checked by the strict build."""
    gone = [link for link in links(page) if not (page.parent / link.partition("#")[0]).exists()]
    assert gone == []


@pytest.mark.parametrize("page", **names(PAGES))
def test_paths_exist(page):
    places = (ROOT, ROOT / "src")
    gone = [path for path in paths(page) if not any((place / path).exists() for place in places)]
    assert gone == []


@pytest.mark.parametrize(("page", "example"), [("own-method", "nearest"), ("your-environment", "cartpole")])
def test_pages_show_the_whole_example(page, example):
    """The same program, but for docstrings and annotations of the file."""
    shown = [ast.parse(block.text) for block in blocks(ROOT / "docs" / f"{page}.md") if block.language == "python"]
    names = {node.name for tree in shown for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    whole = ast.parse((ROOT / "examples" / f"{example}.py").read_text())
    assert {node.name for node in whole.body if isinstance(node, ast.FunctionDef | ast.ClassDef)} <= names


def test_messages_are_those_of_the_source():
    """Tables that explain messages: each part between two … stands in the source."""
    source = "".join(path.read_text() for path in sorted((ROOT / "src" / "hipmdp").rglob("*.py")))
    source = re.sub(r'"\s*f?"', "", source)
    rows = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "your-logs.md").read_text(), re.MULTILINE)
    explained = [row for row in rows if not row.startswith("--")]
    assert len(explained) > 20
    parts = [part.removeprefix("Unknown ").strip(" ,:") for row in explained for part in row.split("…")]
    assert [part for part in parts if part not in source] == []
