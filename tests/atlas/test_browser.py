"""The atlas in a real browser: Chromium or Chrome, driven by Playwright, without a network."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.page_visits import NEEDS_BROWSER, Visit, cut_labels
from translator.atlas.page import atlas_page

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def atlas(figures: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("atlas") / "atlas.html"
    path.write_text(atlas_page(figures), encoding="utf-8")
    return path


@pytest.fixture(params=[("light", 1100), ("dark", 1100), ("light", 380)], ids=["light", "dark", "phone"])
def page(request: pytest.FixtureRequest, browser: Any, atlas: Path) -> Iterator[Any]:
    """The opened page; at the end, it must have logged no error and requested nothing but itself."""
    scheme, width = request.param
    visit = Visit(browser, atlas.as_uri(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    yield visit.page
    visit.context.close()
    assert visit.complaints == []


def test_everything_is_drawn_and_nothing_is_too_wide(page: Any) -> None:
    charts = page.query_selector_all("figure.chart")
    assert len(charts) > 20
    assert all(chart.query_selector(".plot svg") for chart in charts)
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    formulas = page.locator("math[display=block]").all()
    assert len(formulas) > 5
    for one in formulas:
        box = one.bounding_box()
        assert box["height"] > 10
        assert box["width"] > 30
    fraction = page.locator("mfrac").first.bounding_box()  # laid out as a fraction, not as a line of text
    assert fraction["height"] > 1.5 * page.locator("math[display=inline]").first.bounding_box()["height"]


def test_no_label_is_cut_off(page: Any) -> None:
    assert cut_labels(page) == []


def test_sliders_change_what_is_shown(page: Any) -> None:
    figure = page.locator("figure[data-kind=frames]").first
    slider, shown = figure.locator("input[type=range]"), figure.locator("output")
    slider.scroll_into_view_if_needed()
    before, curve = shown.inner_text(), figure.locator("path.curve").last.get_attribute("d")
    height = figure.bounding_box()["height"]
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert float(shown.inner_text()) < float(before)
    assert figure.locator("path.curve").last.get_attribute("d") != curve
    assert slider.get_attribute("aria-valuetext") == shown.inner_text()
    assert figure.bounding_box()["height"] == height  # nothing jumps
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_timeout(400)  # drawn again for the new width, at the same place of the slider
    assert float(shown.inner_text()) < float(before)


def test_pictures_follow_the_theme(page: Any) -> None:
    picture = page.locator("image.pixels").first
    before = picture.get_attribute("href")
    page.click("#theme")
    assert page.locator("image.pixels").first.get_attribute("href") != before
    page.click("#theme")
    assert page.locator("image.pixels").first.get_attribute("href") == before


def test_pointing_at_a_picture_shows_its_value(page: Any) -> None:
    figure = page.locator("figure[data-kind=image]").nth(1)
    figure.scroll_into_view_if_needed()
    figure.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    assert "query 0, example 0" in page.inner_text("#tooltip")


def test_axes_are_logarithmic(page: Any) -> None:
    chart = page.locator("figure[data-kind=line]", has_text="Standard deviation of the scores").first
    ticks = [
        (math.log(float(one.text_content().replace(",", ""))), float(one.get_attribute("x")))
        for one in chart.locator("text.tick.middle").all()
    ]
    assert len(ticks) >= 4
    slopes = [(x - ticks[0][1]) / (value - ticks[0][0]) for value, x in ticks[1:]]
    assert slopes == pytest.approx([slopes[0]] * len(slopes), rel=1e-3)
