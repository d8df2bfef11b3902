"""The page in a real browser (headless Chromium), opened as a file: what a reader does with pointer and keyboard."""

import re
import shutil

import matplotlib.image
import numpy as np
import pytest

from hipmdp.report.page import write_page
from tests.report.invented import HOSTILE, full_study

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    CHROMIUM = None
if CHROMIUM is None:
    pytest.skip(
        "No browser to test the page in: `apt-get install chromium` and `pip install playwright`.",
        allow_module_level=True,
    )

PATIENCE = 20_000
"""Milliseconds: a busy machine is not a broken page."""
expect.set_options(timeout=PATIENCE)
FAMILIES = ["grid", "acrobot-sd0.25", "hiv", HOSTILE]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    directory = tmp_path_factory.mktemp("study")
    return write_page([full_study(directory)], directory / "report.html").as_uri()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address):
    """Opens the page; at the end nothing may have gone wrong, and nothing but the file may have been asked for."""
    contexts, wrong, asked = [], [], []

    def open_it(width=1280, height=900, **settings):
        context = browser.new_context(viewport={"width": width, "height": height}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert wrong == []
    assert set(asked) == {address}


def show(page, family):
    page.locator("#families input").nth(FAMILIES.index(family)).check()


def readout(page):
    return page.locator("#player-readout")


def pixels(page, path, locator=None):
    (locator or page).screenshot(path=path)
    image = matplotlib.image.imread(path)[..., :3]
    return np.unique(np.round(image * 255) @ [65536, 256, 1]), image


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_family_can_be_seen(open_page, tmp_path, scheme):
    page = open_page(color_scheme=scheme)
    for number, family in enumerate(FAMILIES):
        show(page, family)
        expect(page.locator("#curves .series")).not_to_have_count(0)
        expect(page.locator("#stage .agent")).to_have_count(1)
        page.locator("#player-forward").click()
        colours, _ = pixels(page, tmp_path / f"{number}.png", page.locator("#stage"))
        assert len(colours) > 10
    colours, image = pixels(page, tmp_path / "page.png")
    assert len(colours) > 20
    assert (image[-1, 0].mean() < 0.2) == (scheme == "dark")


def test_names_are_text_whatever_they_are(open_page):
    page = open_page()
    show(page, HOSTILE)
    expect(page.locator("#player-caption")).to_contain_text(HOSTILE)
    expect(page.locator("#families")).to_contain_text(HOSTILE)
    expect(page.locator("#latents-scale")).to_contain_text(HOSTILE)
    assert page.locator("b").count() == 0


def test_the_policy_stops_foreign_scripts_and_the_network(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    found = page.evaluate("""async () => {
        const stopped = [];
        document.addEventListener("securitypolicyviolation", (event) => stopped.push(event.effectiveDirective));
        const script = document.createElement("script");
        script.textContent = "window.harmed = true";
        document.body.append(script);
        const image = new Image();
        image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";
        await fetch("http://127.0.0.1:9/").catch(() => null);
        await new Promise((done) => setTimeout(done, 100));
        return [window.harmed ?? false, stopped.sort()];
    }""")
    context.close()
    assert found == [False, ["connect-src", "img-src", "script-src-elem"]]


def test_a_method_can_be_switched_off(open_page):
    page = open_page()
    curve = page.locator("#curves .series")
    expect(curve).to_have_count(2)
    switch = {name: page.locator("#methods").get_by_label(name) for name in ("embedded", "model-free")}
    switch["model-free"].click()
    expect(curve).to_have_count(1)
    expect(curve).to_have_attribute("data-series", "embedded")
    expect(page.locator("#errors .series")).to_have_count(1)
    switch["embedded"].press("Space")
    expect(curve).to_have_count(0)
    switch["model-free"].click()
    expect(curve).to_have_attribute("data-series", "model-free")


def test_values_are_read_off_with_pointer_and_keyboard(open_page):
    page = open_page()
    chart, tip = page.locator("#curves svg").first, page.locator("#curves .tip")
    box = chart.bounding_box()
    expect(tip).to_be_hidden()
    page.mouse.move(box["x"] + box["width"] * 0.53, box["y"] + box["height"] / 2)
    expect(tip).to_contain_text("after episode 2")
    expect(tip.locator("tr").first).to_have_text(re.compile(r"embedded0\.9000\.90 … 0\.90"))
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    chart.focus()
    expect(tip).to_contain_text("after episode 3")
    page.keyboard.press("Home")
    expect(tip).to_contain_text("after episode 1")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#live")).to_contain_text("after episode 2: embedded 0.900")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()


def test_the_keyboard_drives_the_player(open_page):
    page = open_page()
    show(page, "hiv")
    page.locator("#player-seed").focus()
    page.keyboard.press("Tab")
    expect(page.locator("#stage")).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    expect(readout(page)).to_contain_text("step 0 of 200")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(readout(page)).to_contain_text("step 3 of 200 · day 15 · action none")
    page.keyboard.press("ArrowLeft")
    expect(readout(page)).to_contain_text("step 2 of 200")
    page.keyboard.press("Space")
    expect(page.locator("#player-play")).to_contain_text("Pause")
    expect(readout(page)).to_contain_text(re.compile(r"step ([3-9]|\d\d+) of 200"))
    page.keyboard.press("Space")
    expect(page.locator("#player-play")).to_contain_text("Play")
    page.keyboard.press("End")
    expect(readout(page)).to_contain_text("step 200 of 200 · day 1000")
    page.keyboard.press("Space")  # from the end, it starts again
    expect(readout(page)).to_contain_text(re.compile(r"step (?!0|200)\d+ of 200"))
    page.keyboard.press("Home")
    expect(readout(page)).to_contain_text("step 0 of 200")
    for _ in range(4):
        page.keyboard.press("Tab")
    expect(page.locator("#player-slider")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(readout(page)).to_contain_text("step 1 of 200")
    page.keyboard.press("Space")
    expect(page.locator("#player-play")).to_contain_text("Pause")


def test_the_player_shows_the_chosen_cell(open_page):
    page = open_page()
    expect(readout(page)).to_have_text("step 0 of 3 · start · x −1.5 · y −1.5")
    page.locator("#player-forward").click()
    expect(readout(page)).to_have_text("step 1 of 3 · action E · x −1.2 · y −1.5")
    page.locator("#player-method").select_option(label="model-free")
    page.locator("#player-instance").select_option(label="test:1")
    expect(page.locator("#player-caption")).to_contain_text("test:1")
    expect(page.locator("#player-caption")).to_contain_text("score 0.30")
    expect(readout(page)).to_contain_text("step 0 of 3")


def test_latents_are_coloured_by_the_chosen_parameter(open_page):
    page = open_page()
    show(page, "acrobot-sd0.25")
    dots = page.locator("#latents-maps circle")
    expect(dots).to_have_count(5)
    colours = lambda: dots.evaluate_all("all => all.map((dot) => dot.getAttribute('fill'))")  # noqa: E731
    offered = page.locator("#latents-parameter option").all_text_contents()
    assert offered == ["l1", "m2"]  # the others are the same in all instances
    before = colours()
    assert len(set(before)) == 5
    expect(page.locator("#latents-maps .readout")).to_have_text("r = 1.00 along, – across")
    page.locator("#latents-parameter").select_option(label="m2")
    assert colours() == before[::-1]
    page.locator("#latents-maps svg").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#latents-maps .readout")).to_have_text("test:1: m2 1.4")


def test_the_map_of_uncertainty(open_page):
    page = open_page()
    expect(page.locator("#variance rect[fill^='#']")).to_have_count(400)
    page.locator("#variance svg").focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#uncertainty-readout")).to_have_text(
        "x −1.9, y −1.7: class 0 was here 1 times, class 1 50 times; variance 0.00125"
    )
    show(page, "hiv")
    expect(page.locator("#uncertainty")).to_be_hidden()


def test_nothing_is_wider_than_a_phone(open_page, tmp_path):
    page = open_page(360, 740)
    for number, family in enumerate(FAMILIES):
        show(page, family)
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        wide = page.evaluate("""[...document.querySelectorAll('section svg, section select, section button')]
            .filter((one) => one.getBoundingClientRect().right > 360 && !one.closest('.scroll')).length""")
        assert wide == 0
        page.screenshot(path=tmp_path / f"{number}.png", full_page=True)


def test_the_numbers_can_be_taken_home(open_page):
    page = open_page()
    written = {}
    for name in ("curves", "episodes"):
        with page.expect_download() as download:
            page.locator(f"#download-{name}").click()
        assert download.value.suggested_filename == f"{name}.csv"
        written[name] = download.value.path().read_text(encoding="utf-8").splitlines()
    assert written["curves"][:2] == [
        "family,runs,method,variant,what,after_episodes,mean,low,high",
        "grid,all methods,embedded,plain,score,1,0.8,0.8,0.8",
    ]
    cells = 8 * 3 + 5 * 2 + 2 + 2
    assert len(written["episodes"]) == 1 + cells
    quoted = HOSTILE.replace('"', '""')
    assert written["episodes"][-1].startswith(f'"{quoted}",embedded,plain,"{quoted}",0,2,')
