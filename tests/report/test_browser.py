"""The page in a real browser: Chromium or Chrome, driven by Playwright, without a network."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.page_visits import NEEDS_BROWSER, Visit, cut_labels
from support.small_runs import HOSTILE
from translator.report.__main__ import main
from translator.report.page import report_page

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def report(small_run: Path, small_lstm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "two.html"
    assert main([str(small_run), str(small_lstm), "-o", str(path), "--json", str(path.with_suffix(".json"))]) == 0
    return path


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """The opened page; at the end, it must have reported no error and requested no other file."""
    visit = Visit(browser, report.as_uri(), viewport={"width": 1100, "height": 800}, color_scheme="light")
    yield visit.page
    visit.context.close()
    assert visit.complaints == []


def shown_lines(page: Any) -> list[int]:
    return [int(card.get_attribute("data-line")) for card in page.query_selector_all("#sentences-list .sentence")]


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_every_chart_is_drawn_and_hostile_text_does_nothing(page: Any) -> None:
    charts = page.query_selector_all("figure.chart")
    assert len(charts) > 12
    assert all(chart.query_selector(".plot svg") for chart in charts)
    assert page.evaluate("window.hacked") is None
    page.fill("#sentences-text", "onerror")
    assert page.inner_text("#sentences-list .sentence p.text") == HOSTILE


def test_no_label_is_cut_off(browser: Any, report: Path, tmp_path: Path) -> None:
    page = report.read_text(encoding="utf-8")
    wide = re.sub(r'"points": ?\[\[.*?\]\]', '"points": [[0, 6.5], [150000, 4.5]]', page)
    (tmp_path / "wide.html").write_text(wide, encoding="utf-8")
    visit = Visit(browser, (tmp_path / "wide.html").as_uri())
    assert "150,000" in visit.page.locator("figure.chart[data-kind=line] svg").first.text_content()
    assert cut_labels(visit.page) == []
    visit.context.close()
    assert visit.complaints == []


def test_pointing_at_a_curve_shows_its_values(page: Any) -> None:
    curve = page.locator("figure.chart[data-kind=line] svg").first
    curve.scroll_into_view_if_needed()
    box = curve.bounding_box()
    curve.hover(position={"x": 70, "y": box["height"] / 2})
    assert "update 10" in page.inner_text("#tooltip")
    assert "training · small: 6" in page.inner_text("#tooltip")
    curve.hover(position={"x": box["width"] - 16, "y": box["height"] / 2})
    assert "training · small: 4.5" in page.inner_text("#tooltip")
    curve.focus()
    page.keyboard.press("ArrowLeft")
    assert "update 20" in page.inner_text("#tooltip")
    page.mouse.move(5, 5)
    curve.blur()
    assert not page.is_visible("#tooltip")


def test_sentences_are_sorted_and_filtered(page: Any) -> None:
    assert page.inner_text("#sentences-count") == "1–6 of 6"
    worst = shown_lines(page)
    page.select_option("#sentences-sort", "line")
    assert shown_lines(page) == [1, 2, 3, 4, 5, 6]
    page.select_option("#sentences-sort", "best")
    scores = [float(text.split()[1]) for text in page.locator("#sentences-list .facts").all_inner_texts()]
    means = [(a + b) / 2 for a, b in zip(scores[::2], scores[1::2], strict=True)]
    assert means == sorted(means, reverse=True)
    assert sorted(worst) == [1, 2, 3, 4, 5, 6]
    page.fill("#sentences-text", "12 RED dogs")
    assert shown_lines(page) == [2]
    page.fill("#sentences-text", "no such text")
    assert page.inner_text("#sentences-count") == "no such sentence"


def test_many_sentences_are_shown_a_few_at_a_time(browser: Any, report: Path, tmp_path: Path) -> None:
    figures = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))
    figures["sentences"] = [{**figures["sentences"][0], "line": line, "random": 25 - line} for line in range(1, 26)]
    (tmp_path / "many.html").write_text(report_page(figures), encoding="utf-8")
    visit = Visit(browser, (tmp_path / "many.html").as_uri())
    page = visit.page
    assert shown_lines(page) == list(range(1, 11))
    assert page.is_disabled("#sentences-before")
    page.click("#sentences-after")
    page.click("#sentences-after")
    assert shown_lines(page) == list(range(21, 26))
    assert page.inner_text("#sentences-count") == "21–25 of 25"
    assert page.is_disabled("#sentences-after")
    page.select_option("#sentences-sort", "random")
    assert shown_lines(page) == list(range(25, 15, -1))
    visit.context.close()
    assert visit.complaints == []


def test_a_detector_shows_its_sentences(page: Any) -> None:
    button = page.locator("button[data-fault='name lost']")
    button.click()
    assert page.input_value("#sentences-fault") == "name lost"
    assert shown_lines(page) == [2]
    assert "name lost" in page.inner_text("#sentences-list")


def test_heads_are_enlarged_by_a_click(page: Any) -> None:
    heads = page.locator("figure[data-kind=heads]").first
    assert heads.locator(".thumbnail").count() == 5  # two layers of two heads, and their mean
    heads.locator(".thumbnail").nth(3).click()
    assert heads.locator(".thumbnail").nth(3).get_attribute("aria-pressed") == "true"
    assert heads.locator(".large svg").get_attribute("aria-label") == "attention, layer 2, head 1"
    cell = heads.locator(".large .cell").first
    cell.scroll_into_view_if_needed()
    cell.hover(force=True)
    assert "→" in page.inner_text("#tooltip")


def test_light_and_dark(page: Any) -> None:
    light = background(page)
    page.click("#theme")
    dark = background(page)
    assert light == "rgb(255, 255, 255)"
    assert dark != light
    assert page.inner_text("#theme") == "Light mode"  # what it changes to
    page.click("#theme")
    assert page.inner_text("#theme") == "Dark mode"
    assert background(page) == light
    page.emulate_media(color_scheme="dark")
    page.evaluate("delete document.documentElement.dataset.theme")
    assert background(page) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling_and_text_has_contrast(browser: Any, report: Path, scheme: str) -> None:
    visit = Visit(browser, report.as_uri(), viewport={"width": 380, "height": 800}, color_scheme=scheme)
    page = visit.page
    assert cut_labels(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    for variable in ("text", "muted", "accent"):
        assert contrast(page, variable, "ground") >= 4.5  # WCAG 2, level AA
    for variable in ("text", "muted"):
        assert contrast(page, variable, "panel") >= 4.5
    for number in range(1, 5):
        assert contrast(page, f"series-{number}", "ground") >= 3  # graphics
    visit.context.close()
    assert visit.complaints == []


def contrast(page: Any, first: str, second: str) -> float:
    """The ratio that WCAG 2 defines, of two colours of the style sheet."""

    def luminance(name: str) -> float:
        value = page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        shares = [int(value[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_text_runs_in_the_direction_of_its_script(page: Any) -> None:
    page.fill("#sentences-text", "שלום")
    text = page.locator("#sentences-list p.text").first
    assert text.evaluate("element => getComputedStyle(element).direction") == "rtl"
