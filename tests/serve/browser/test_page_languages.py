"""The languages of texts in the page, which screen readers and hyphenation depend on, in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from support.page_visits import NEEDS_BROWSER, Visit
from support.servers import RunningServer
from translator import Translator
from translator.inspection.inspect import inspect_line
from translator.serve.offline_page import OfflinePage

pytestmark = NEEDS_BROWSER
LANGUAGES = "(all) => [...new Set(all.map((one) => one.closest('[lang]').lang))]"
SHOWN = {".side.source": "en", ".side.target": "he", ".alternative > span[dir]": "he", "#choices li bdi": "he"}


def languages(visit: Visit, selector: str) -> Any:
    return visit.page.locator(selector).evaluate_all(LANGUAGES)


def assert_in_their_languages(visit: Visit) -> None:
    visit.page.wait_for_selector(".alternative:nth-child(2)", timeout=60_000)
    visit.page.locator(".target .unit").first.hover()
    assert languages(visit, "#seen bdi:first-child") == ["he"]
    assert languages(visit, "#seen bdi:nth-child(n+2)") == ["en"]
    visit.page.locator(".target .unit").first.click()
    assert {selector: languages(visit, selector) for selector in SHOWN} == {
        selector: [language] for selector, language in SHOWN.items()
    }
    assert languages(visit, "#hint") == ["en"]


def test_texts_from_a_server_have_their_languages(browser: Any, site: RunningServer) -> None:
    visit = Visit(browser, f"{site.url}/#text=A+man+reads+a+book.&pair=en%3Ehe&open=alternatives")
    assert_in_their_languages(visit)
    assert (languages(visit, "#text"), languages(visit, "#translation p")) == (["en"], ["he"])
    visit.page.locator("#choices button.choice").first.click()
    visit.page.wait_for_selector("#forced:not([hidden])", timeout=60_000)
    assert languages(visit, "#forced bdi") == ["he"]
    visit.page.select_option("#pair", "en>de")
    visit.expect("A man reads a book.")
    assert (languages(visit, "#translation p"), languages(visit, ".side.target")) == (["de"], ["de"])
    visit.context.close()
    assert visit.complaints == []


@pytest.mark.parametrize("fragment", ["#open=alternatives", "#open=alternatives&pair=fr%3Ees"])
def test_texts_in_a_file_have_their_languages(
    browser: Any, tmp_path: Path, translator: Translator, fragment: str
) -> None:
    offline = OfflinePage("Translations", languages=("en", "he"))
    offline.add(1, inspect_line(translator, "A man reads a book.", num_hypotheses=2))
    path = tmp_path / "index.html"
    path.write_text(offline.to_html(), encoding="utf-8")
    visit = Visit(browser, path.as_uri() + fragment)
    assert_in_their_languages(visit)
    visit.context.close()
    assert visit.complaints == []
