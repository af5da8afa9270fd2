"""The report in a real browser: Debian's Chromium, without a window.

The screenshots go to the folder that the variable MOEW_SCREENSHOTS names, else to pytest's own. To renew
those of docs/report.md: MOEW_SCREENSHOTS=docs/images pytest -m heavy tests/heavy/test_report_browser.py
"""

import itertools
import os
import shutil
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import searches
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, compare
from moew.data import Rows
from moew.metrics import worst_class_error
from moew.report import About, collect, render

pytestmark = pytest.mark.heavy
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NASTY = "<script>document.title='broken'</script>\"'><img src=http://example.com/x onerror=alert(1)>"
WIDTHS = (1280, 390)
SHOWN = {  # in docs/report.md, by the name of the picture
    "verdict": "#verdict",
    "strategies": "#strategies .beside",
    "scores": "#comparison .beside",
    "changes": "#changes",
    "labels": "#labels",
    "search": "#search",
}
SHOWN_OF_WEIGHTS = {"slices": "#slices .cards", "weights": "#weights"}


@pytest.fixture(scope="module")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = next((place for place in map(shutil.which, names) if place), None)
    if found is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        # Root, as in containers, has no sandbox.
        started = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def digits():
    """Data of a report on the problem of docs/start.md, which docs/report.md goes through."""
    return of_digits(repeats=5)


@pytest.fixture(scope="module")
def weighted():
    """The same with example weights selected, whatever simpler strategies reach."""
    return of_digits(strategies="example weights")


def of_digits(repeats=0, strategies="auto"):
    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    X = X / 16 + rng.normal(0, 0.3, X.shape)
    train, validation, test = np.split(rng.permutation(len(y)), [700, 1200])
    train = train[(y[train] < 5) | (rng.random(len(train)) < 0.2)]
    search = MetricSearch.from_settings(
        LogisticRegression(max_iter=200),
        metric=worst_class_error(),
        embedding="label",
        n_candidates=50,
        batch_size=10,
        strategies=strategies,
        random_state=0,
    )
    given, held, X, y = (X[validation], y[validation]), (X[test], y[test]), X[train], y[train]
    compared = compare(search, X, y, validation=given, test=held, repeats=repeats) if repeats else None
    search.fit(X, y, validation=given)
    ink = {"ink in all": X.sum(axis=1), "ink in the upper half": X[:, :32].sum(axis=1)}
    about = About("digits", date(2026, 11, 17))
    return collect(
        search,
        Rows(X, y),
        Rows(*given),
        Rows(*held),
        columns=ink,
        comparison=compared,
        about=about,
    )


@pytest.fixture(scope="module")
def nasty():
    """Data of a report whose every name comes from a malicious file."""
    search, (X, y) = searches.frame()
    columns = {NASTY: np.where(np.arange(len(y)) % 2, NASTY, "fine")}
    return collect(
        search,
        Rows(X, y),
        columns=columns,
        row_ids=[NASTY] * len(y),
        about=About(settings={NASTY: NASTY}),
    )


@pytest.fixture
def show(browser, tmp_path):
    """Opens a report; in the end nothing may have been asked of a network, and nothing complained of."""
    complaints, requests, contexts = [], [], []

    def opened(data, width=1280, scheme="light"):
        path = tmp_path / "report.html"
        path.write_text(render(data), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "least"), [("digits", 7), ("weighted", 10)])
def test_every_plot_is_visible_and_nothing_runs_off_the_page(show, request, name, least, width, scheme):
    page = show(request.getfixturevalue(name), width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    plots = page.locator("svg.plot")
    assert plots.count() >= least
    for plot in plots.all():
        box = plot.bounding_box()
        assert box["width"] > 290
        sizes = plot.evaluate(
            "plot => [...plot.querySelectorAll('text')].map(t => parseFloat(getComputedStyle(t).fontSize))"
        )
        assert min(sizes) * box["width"] / 400 >= 11  # pixels, of 400 units
        assert box["height"] > 50
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        # What is drawn lies within the picture, give or take a line's width.
        drawn = plot.evaluate(
            "plot => { const b = plot.getBBox(); return [b.x, b.x + b.width, b.y + b.height]; }"
        )
        sides = plot.evaluate("plot => [plot.viewBox.baseVal.width, plot.viewBox.baseVal.height]")
        assert drawn[0] >= -6
        assert drawn[1] <= sides[0] + 6
        assert drawn[2] <= sides[1] + 6


def _luminance(colour):
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_can_be_read_in_dark_and_light(show, digits, scheme):
    page = show(digits, scheme=scheme)
    paper = page.evaluate("getComputedStyle(document.querySelector('section')).backgroundColor")
    assert (_luminance(paper) > 0.5) is (scheme == "light")
    for selector, style in (
        ("h1", "color"),
        (".small", "color"),
        ("svg .tick", "fill"),
        ("svg .label", "fill"),
    ):
        ink = page.evaluate(f"getComputedStyle(document.querySelector({selector!r})).{style}")
        light, dark = sorted((_luminance(paper), _luminance(ink)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG AA


def _column(page, table, place):
    return page.eval_on_selector_all(
        f"#{table} tbody tr", f"rows => rows.map(r => r.cells[{place}].textContent)"
    )


def test_tables_are_sorted_by_click_and_by_keyboard(show, weighted):
    page = show(weighted)
    before = [float(text) for text in _column(page, "labels-table", 1)]
    button = page.locator("#labels-table th button").nth(1)
    head = page.locator("#labels-table th").nth(1)
    button.click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert [float(text) for text in _column(page, "labels-table", 1)] == sorted(before)
    button.focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(text) for text in _column(page, "labels-table", 1)] == sorted(before, reverse=True)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") is None
    assert page.locator("#labels-table th").nth(0).get_attribute("aria-sort") == "ascending"


def test_everything_that_can_be_used_is_reached_by_the_keyboard_in_order(show, digits):
    page = show(digits)
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.tagName + document.activeElement.className"))
    assert seen[0] == "A"
    assert "DIVscroll" in seen
    assert "BUTTON" in seen


def test_a_table_that_goes_on_shows_it(show, digits, tmp_path):
    """A shadow lies at the right end, and is gone where the table is scrolled to its end."""
    page = show(digits, 390)
    region = page.locator(".scroll:has(#strategies-table)")
    assert region.evaluate("r => r.scrollWidth > r.clientWidth")
    region.scroll_into_view_if_needed()

    def rightmost():
        region.screenshot(path=tmp_path / "table.png")
        pixels = np.asarray(Image.open(tmp_path / "table.png").convert("L"), dtype=float)
        return pixels[:, -3].mean()

    shaded = rightmost()
    region.evaluate("r => { r.scrollLeft = r.scrollWidth; }")
    assert rightmost() > shaded + 20


def test_escaping_holds(show, nasty):
    page = show(nasty)
    assert "broken" not in page.title()
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    assert NASTY in page.locator("#settings").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert show(nasty, 390).evaluate("document.documentElement.scrollWidth") <= 390


def test_it_prints_on_few_pages_with_everything_unfolded(show, weighted, tmp_path):
    page = show(weighted, scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert (
        _luminance(page.evaluate("getComputedStyle(document.querySelector('section')).backgroundColor")) > 0.9
    )
    assert not page.locator("nav").is_visible()
    printed = page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert 2 <= printed.count(b"/Type /Page\n") <= 9
    assert page.locator("details").first.evaluate("details => details.open")


def test_screenshots(show, digits, weighted, tmp_path):
    folder = Path(os.environ.get("MOEW_SCREENSHOTS", tmp_path))
    for data, shown in ((digits, SHOWN), (weighted, SHOWN_OF_WEIGHTS)):
        page = show(data)
        for name, place in shown.items():
            page.locator(place).first.screenshot(path=folder / f"report-{name}.png")
    page = show(digits, 390, "dark")
    page.set_viewport_size({"width": 390, "height": 844})
    page.screenshot(path=folder / "report-dark-390.png")
    for path in folder.glob("report-*.png"):
        assert 8_000 < path.stat().st_size < 150_000, path.name
    for width, scheme in itertools.product(WIDTHS, ("light", "dark")):
        show(digits, width, scheme).screenshot(path=tmp_path / f"whole-{scheme}-{width}.png", full_page=True)
