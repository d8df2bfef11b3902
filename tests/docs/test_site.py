"""The documentation site: it builds without a warning, and asks nothing of other hosts."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

import hipmdp
from tests.docs.pages import ROOT

pytest.importorskip("mkdocs", reason="The site needs the extra: pip install -e '.[docs]'.")
REFERENCE = ROOT / "docs" / "reference.md"
FETCHED = re.compile(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]+)"|<link\b[^>]*\bhref="([^"]+)"')
"""What a browser loads without being asked."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert not re.search(r"^(WARNING|ERROR)", result.stderr, re.MULTILINE), result.stderr
    return target


def test_every_page_is_there(site):
    built = {page.stem for page in site.glob("*.html")}
    assert built == {page.stem for page in (ROOT / "docs").glob("*.md")} | {"404"}


def test_nothing_comes_from_another_host(site):
    pages = sorted(site.glob("*.html"))
    fetched = {address for page in pages for pair in FETCHED.findall(page.read_text()) for address in pair if address}
    assert any(address.endswith(".js") for address in fetched)
    assert [address for address in fetched if "//" in address] == []


def test_pictures_and_examples_outside_docs_are_copied_along(site):
    for page in sorted(site.glob("*.html")):
        inside = re.findall(r'(?:src|href)="((?:benchmarks|examples)/[^"]+)"', page.read_text())
        assert [name for name in inside if not (site / name).is_file()] == []
        assert 'src="../' not in page.read_text()
    assert (site / "benchmarks" / "study" / "figures" / "figure1-uncertainty.png").is_file()
    assert not (site / "lab-notes").exists()


def test_the_reference_has_every_public_name(site):
    asked = set(re.findall(r"^::: hipmdp\.(\w+)$", REFERENCE.read_text(), re.MULTILINE))
    assert asked == set(hipmdp.__all__)
    text = (site / "reference.html").read_text()
    assert [name for name in asked if f'id="hipmdp.{name}"' not in text] == []


def test_the_command_line_page_is_up_to_date():
    script = ROOT / "docs" / "write_command_line.py"
    spec = importlib.util.spec_from_file_location("write_command_line", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page(), "Run: python docs/write_command_line.py"
