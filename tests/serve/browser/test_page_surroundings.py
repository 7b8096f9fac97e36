"""The page in a real browser: refusals, keys, languages, scripts, phones, light and dark, and without a server."""

from pathlib import Path
from typing import Any

import pytest
import torch

from support.page_visits import FAILED, LINE, NEEDS_BROWSER, Visit
from support.servers import RunningServer, copier, running
from support.small_runs import HOSTILE
from translator import Translator
from translator.export import ctranslate2
from translator.inspection.inspect import inspect_line
from translator.runs.loading import load_run
from translator.serve.exported_model import ExportedModel
from translator.serve.offline_page import OfflinePage

pytestmark = NEEDS_BROWSER


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (429, "too many requests are waiting", "The server is busy (too many requests are waiting)"),
        (400, "text: too long", "This cannot be translated: text: too long."),
        (500, "a fault", "The server failed: a fault."),
    ],
)
def test_refusals_are_shown_in_words(
    browser: Any, site: RunningServer, status: int, reason: str, expected: str
) -> None:
    visit = Visit(browser, f"{site.url}/")
    refuse = {"status": status, "json": {"error": reason}, "headers": {"Retry-After": "1"}}
    visit.page.route("**/v1/translate", lambda route: route.fulfill(**refuse), times=1)
    visit.type(LINE)
    visit.page.wait_for_selector("#message:not([hidden])")
    assert visit.page.inner_text("#message").startswith(expected)
    if status != 429:  # otherwise it tries again by itself
        visit.type(f"{LINE} ")
    visit.expect(LINE.strip())
    assert not visit.page.is_visible("#message")
    visit.context.close()
    assert all(FAILED in complaint for complaint in visit.complaints)


def test_a_model_without_details_still_translates(browser: Any, site: RunningServer) -> None:
    visit = Visit(browser, f"{site.url}/")
    refuse = {"status": 400, "json": {"error": "details: an exported model has none; serve the run itself"}}
    visit.page.route("**/v1/translate", lambda route: route.fulfill(**refuse), times=1)
    visit.type("One two. Three.\n\nfour")
    visit.expect("One two. Three.four")
    assert "has no details to show" in visit.page.inner_text("#message")
    assert not visit.page.is_visible("#result")
    visit.translate("five")
    assert ["details" in question for question in visit.questions] == [True, False, False]
    visit.context.close()
    assert all(FAILED in complaint for complaint in visit.complaints)


def test_details_are_left_out_only_for_the_languages_of_an_exported_model(
    browser: Any, run: Path, tmp_path: Path
) -> None:
    ctranslate2.write(load_run(run, torch.device("cpu")), tmp_path)
    with running([ExportedModel(tmp_path, num_threads=1), copier("en", "fr")]) as both:
        visit = Visit(browser, f"{both.url}/#text=She+sings.&pair=en%3Ede")
        visit.page.wait_for_selector("#message:not([hidden])", timeout=60_000)
        assert "has no details to show" in visit.page.inner_text("#message")
        assert visit.page.inner_text("#translation")
        visit.page.select_option("#pair", "en>fr")
        visit.expect("SHE SINGS.")
        assert not visit.page.is_visible("#message")
        assert visit.units("source") == ["She", "sings."]
        assert visit.page.is_visible("#heads")
        visit.page.select_option("#pair", "en>de")
        visit.page.wait_for_selector("#message:not([hidden])", timeout=60_000)
        assert not visit.page.is_visible("#result")
        visit.type("She sings.\nWe see the sea.")
        visit.page.wait_for_selector("#translation p:nth-child(2):not(:empty)", timeout=60_000)
        asked = [(question["target"], "details" in question) for question in visit.questions]
        assert asked == [("de", True), ("de", False), ("fr", True), ("de", False)]
        visit.context.close()
        assert all(FAILED in complaint for complaint in visit.complaints)


def test_a_server_that_goes_away_and_comes_back(browser: Any, site: RunningServer) -> None:
    visit = Visit(browser, f"{site.url}/")
    visit.translate()
    visit.page.route("**/v1/translate", lambda route: route.abort("connectionrefused"), times=1)
    visit.type("two")
    visit.page.wait_for_selector("#message:not([hidden])")
    assert "cannot be reached" in visit.page.inner_text("#message")
    visit.expect("two")  # it tried again
    visit.context.close()
    assert all(FAILED in complaint for complaint in visit.complaints)


def test_a_key_is_asked_for_only_where_one_is_needed(browser: Any, visit: Visit) -> None:
    visit.translate()
    assert not visit.page.is_visible("#key")
    with running([copier()], keys=["open sesame"]) as closed:
        other = Visit(browser, f"{closed.url}/")
        other.page.wait_for_selector("#key")
        assert not other.page.is_visible("#pair")  # there is one pair only
        other.type(LINE)
        other.page.wait_for_selector("#message:not([hidden])")
        assert "needs an API key" in other.page.inner_text("#message")
        other.page.fill("#key", "open sesame")
        other.page.keyboard.press("Enter")
        other.expect(LINE.upper())  # a model that writes capitals
        assert "sesame" not in other.page.url
        other.context.close()
        assert all(FAILED in complaint for complaint in other.complaints)


def test_the_languages_can_be_chosen(visit: Visit) -> None:
    visit.translate()
    assert visit.page.locator("#pair option").all_inner_texts() == ["English → German", "English → Hebrew"]
    visit.page.select_option("#pair", "en>he")
    visit.page.wait_for_selector(".target[lang=he]", timeout=60_000)
    assert visit.questions[-1]["target"] == "he"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling_and_words_have_contrast(
    browser: Any, site: RunningServer, scheme: str
) -> None:
    address = f"{site.url}/#text={'a+very+' * 12}long{'word' * 12}&open=alternatives,heads,beam"
    visit = Visit(browser, address, viewport={"width": 375, "height": 800}, color_scheme=scheme)
    visit.page.wait_for_selector("#beam svg.tree", timeout=60_000)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 375
    assert visit.page.get_attribute("#weave", "class") == "columns"
    visit.page.wait_for_selector(".alternative:nth-child(2)", timeout=60_000)
    visit.page.locator(".target .unit").first.click()
    visit.page.wait_for_selector("#choices .share")
    visit.page.locator("#choices .choice").first.hover()  # away from the words
    visit.page.locator(".target .unit").nth(1).dispatch_event("pointerenter")  # it may be behind the choices
    assert visit.page.inner_text("#seen")
    for text in (".unit", "#hint", "#seen", ".choice", ".share", ".alternative .facts"):
        ratios = visit.page.evaluate(CONTRAST, [text])
        assert min(ratios.values()) >= 4.5, ratios  # there is at least one of each
    ratios = visit.page.evaluate(CONTRAST, ["#forced", "ins", "del"])
    assert min(ratios.values()) >= 4.5, ratios
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 375
    box = visit.page.locator("#choices").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 375
    visit.page.keyboard.press("Escape")
    visit.page.locator(".target .unit").last.click()  # of many pieces
    sizes = "[document.querySelector('#choices').scrollHeight, document.querySelector('#choices').clientHeight]"
    content, shown = visit.page.evaluate(sizes)
    assert content > shown
    for control in ("h3 button", "form input", "form button"):  # without scrolling
        assert visit.page.locator(f"#choices {control}").evaluate(IS_ON_TOP)
    visit.context.close()
    assert visit.complaints == []


# The contrast of text with what is behind it, by WCAG 2, for every element that a selector finds.
CONTRAST = """(selectors) => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (element) => {
    const colour = numbers(getComputedStyle(element).backgroundColor);
    return colour[3] === 0 && element.parentElement ? ground(element.parentElement) : colour;
  };
  const found = {};
  for (const selector of selectors) {
    for (const element of document.querySelectorAll(selector)) {
      const [one, other] = [numbers(getComputedStyle(element).color), ground(element)].map(luminance);
      found[`${selector} ${element.className}`] = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    }
  }
  return found;
}"""


# Whether the middle of an element is in sight, with nothing in front of it.
IS_ON_TOP = """(element) => {
  const { left, top, width, height } = element.getBoundingClientRect();
  return document.elementFromPoint(left + width / 2, top + height / 2) === element;
}"""


def test_the_address_is_copied_or_shown(visit: Visit) -> None:
    visit.translate()
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.page.click("#copy-link")
    visit.expect_text("#link-said", "copied")
    assert visit.page.evaluate("navigator.clipboard.readText()") == visit.page.url
    assert not visit.page.is_visible("#link")
    visit.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as without encryption
    visit.page.click("#copy-link")
    assert visit.page.input_value("#link") == visit.page.url
    assert visit.page.evaluate("getSelection().toString()") == visit.page.url
    assert visit.page.inner_text("#link-said") == "copy this address"
    visit.page.keyboard.press("Escape")
    assert not visit.page.is_visible("#link")
    assert visit.page.evaluate("document.activeElement.id") == "copy-link"


def test_every_script_and_direction(visit: Visit) -> None:
    visit.translate("狗在雪地里跑。")
    assert visit.units("source") == list("狗在雪地里跑。")
    assert visit.page.locator(".source .unit.glued").count() == 6
    visit.translate("שלום עולם")
    assert visit.units("source") == ["שלום", "עולם"]
    direction = "element => getComputedStyle(element).direction"
    assert visit.page.locator(".side.target").evaluate(direction) == "rtl"
    assert visit.page.locator("#translation p").evaluate(direction) == "rtl"
    first, second = (visit.page.locator(".source .unit").nth(n).bounding_box()["x"] for n in (0, 1))
    assert first > second  # the first word is the rightmost one
    visit.page.focus(".source .unit")
    visit.page.keyboard.press("ArrowLeft")
    assert visit.page.evaluate("document.activeElement.innerText") == "עולם"
    visit.type(HOSTILE)
    visit.expect(HOSTILE)
    assert visit.page.evaluate("window.hacked") is None
    assert visit.page.locator("main img").count() == 0


def test_light_and_dark(visit: Visit) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light = visit.page.evaluate(background)
    assert visit.page.inner_text("#theme") == "Dark mode"  # what it changes to
    visit.page.click("#theme")
    assert visit.page.evaluate(background) != light
    assert visit.page.inner_text("#theme") == "Light mode"
    visit.page.reload()
    assert visit.page.inner_text("#theme") == "Light mode"
    visit.page.click("#theme")
    assert visit.page.evaluate(background) == light
    visit.page.emulate_media(color_scheme="dark")
    visit.page.evaluate("localStorage.clear()")
    visit.page.reload()
    assert visit.page.inner_text("#theme") == "Light mode"
    assert visit.page.evaluate(background) != light


def test_the_file_needs_no_server(browser: Any, tmp_path: Path, translator: Translator) -> None:
    offline = OfflinePage("Translations")
    for number, line in enumerate(("A man reads a book.", "", HOSTILE), start=1):
        seen = inspect_line(translator, line, num_hypotheses=3, need_heads=True, need_beam=True)
        offline.add(number, seen)
    path = tmp_path / "index.html"
    path.write_text(offline.to_html(), encoding="utf-8")
    visit = Visit(browser, path.as_uri())
    assert visit.units("source") == ["A", "man", "reads", "a", "book", "."]
    visit.page.locator(".target .unit").first.hover()
    assert visit.page.locator(".ribbon.lit").count() > 0
    visit.page.locator(".target .unit").first.click()
    assert visit.page.is_visible("#choices")
    assert visit.page.locator("#choices button.choice, #choices input, #text, #pair, #key").count() == 0
    visit.page.keyboard.press("Escape")
    for panel, shown in (("alternatives", ".alternative"), ("heads", ".thumbnail"), ("beam", ".tree .box.best")):
        visit.open(panel, shown)
    assert visit.page.locator(".alternative").count() == 3
    assert visit.page.inner_text("#heads-of").startswith("Of the best translation: ")
    visit.page.locator(".alternative").nth(1).click()
    assert visit.page.inner_text("#heads-of").startswith("Of the best translation, since this file does not have those")
    visit.page.locator(".alternative").nth(0).click()
    assert visit.page.locator("#sentence option").count() == 2
    visit.page.select_option("#sentence", "1")
    assert visit.page.locator("#sentence option").nth(1).inner_text().startswith("3: ")
    again = Visit(browser, visit.page.url)
    assert again.units("source") == visit.units("source")
    assert again.page.evaluate("window.hacked") is None
    for one in (visit, again):
        one.context.close()
        assert one.complaints == []
