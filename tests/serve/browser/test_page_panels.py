"""The panels of the page in a real browser: other translations, heads and beam."""

import json
from collections import Counter
from typing import Any
from urllib.parse import urlencode

import pytest

from support.page_visits import FAILED, LINE, NEEDS_BROWSER, Visit
from support.servers import RunningServer, copier, running
from translator import Translator
from translator.decoding.search import SearchOptions
from translator.inspection.inspect import inspect_line
from translator.languages import alignment_tokens

pytestmark = NEEDS_BROWSER


def test_other_translations_have_their_differences_marked(visit: Visit, site: RunningServer) -> None:
    visit.translate()
    visit.open("alternatives", ".alternative:nth-child(2)")
    found = visit.page.locator(".alternative")
    assert found.count() == 5
    assert found.nth(0).locator("ins, del").count() == 0
    # All others are equally likely; some differ only in a character that cannot be seen.
    rank = next(n for n in range(1, 5) if found.nth(n).locator("ins, del").count())
    other = found.nth(rank).evaluate(
        "one => { const copy = one.firstChild.cloneNode(true); "
        "copy.querySelectorAll('del').forEach((gone) => gone.remove()); "
        "return copy.innerText.replace(/\\s+/g, ' ').trim(); }"
    )
    found.nth(rank).click()
    assert visit.page.locator(".alternative").nth(rank).get_attribute("aria-pressed") == "true"
    assert "".join(visit.units("target")) == other.replace(" ", "")
    assert f"rank={rank}" in visit.page.url


@pytest.mark.parametrize(("beam_size", "expected"), [(1, 1), (2, 2), (8, 3)])
def test_no_more_translations_are_asked_for_than_the_search_and_the_server_give(
    browser: Any, beam_size: int, expected: int
) -> None:
    model = copier(search=SearchOptions(beam_size=beam_size), split_words=alignment_tokens)
    with running([model], max_alternatives=2) as server:
        visit = Visit(browser, f"{server.url}/#text={LINE}&rank=4&open=alternatives,heads")
        visit.page.wait_for_selector("#heads .facts", timeout=60_000)
        visit.page.wait_for_selector(".loading", state="detached", timeout=60_000)
        assert visit.page.locator(".alternative").count() == (expected if expected > 1 else 0)
        assert visit.page.is_visible("#alternatives") == (expected > 1)
        visit.expect(LINE.upper())
        asked = {question.get("nbest", 1) for question in visit.questions}
        assert max(asked) == expected
        assert not visit.page.is_visible("#message")
        visit.context.close()
        assert visit.complaints == []


def test_a_panel_that_cannot_be_filled_says_why(browser: Any, site: RunningServer) -> None:
    visit = Visit(browser, f"{site.url}/")
    visit.translate()
    refuse = {"status": 400, "json": {"error": "nbest: must be a whole number from 1 to 3"}}
    visit.page.route("**/v1/translate", lambda route: route.fulfill(**refuse), times=1)
    visit.open("alternatives", ".facts")
    reason = "This cannot be translated: nbest: must be a whole number from 1 to 3."
    visit.expect_text("#message", reason)
    visit.expect_text("#alternatives", reason)
    visit.expect(LINE)  # it is no longer grey
    visit.page.check("input[value=pieces]")  # draws everything again
    visit.expect_text("#alternatives .plot", reason)
    visit.page.click("#alternatives summary")
    visit.open("alternatives", ".alternative")  # it asks again
    assert not visit.page.is_visible("#message")
    visit.context.close()
    assert all(FAILED in complaint for complaint in visit.complaints)


def test_heads_are_enlarged_by_a_click(visit: Visit) -> None:
    visit.translate()
    visit.open("heads", ".thumbnail")
    assert visit.page.locator(".thumbnail").count() == 7  # two layers of three heads, and their mean
    visit.page.locator(".thumbnail").nth(4).click()
    assert visit.page.locator("#heads .large svg").get_attribute("aria-label") == "attention, layer 2, head 1"
    assert visit.questions[-1]["details"]["heads"]


def test_heads_are_those_of_the_chosen_translation(browser: Any, site: RunningServer, translator: Translator) -> None:
    visit = Visit(browser, f"{site.url}/#text=A+man+reads+a+book.&pair=en%3Ehe&unit=pieces&open=alternatives,heads")
    visit.page.wait_for_selector("#heads .thumbnail", timeout=60_000)
    assert visit.page.inner_text("#heads-of").startswith("Of the best translation: ")
    visit.page.locator(".thumbnail").nth(1).click()
    visit.page.locator(".alternative").nth(1).click()
    visit.expect_text("#heads-of", "Of translation 2: ")
    assert visit.questions[-1]["details"]["heads_rank"] == 1
    seen = inspect_line(translator, "A man reads a book.", num_hypotheses=2, need_heads=True, heads_rank=1)
    (segment,) = seen["segments"]
    hypothesis = segment["hypotheses"][1]
    assert visit.page.inner_text("#heads-of bdi") == hypothesis["text"]
    rows = visit.page.locator("#heads .large .tick.end").all_text_contents()
    assert rows == [piece["piece"] for piece in hypothesis["pieces"]]
    assert visit.page.get_attribute("#heads .large svg", "aria-label") == "attention, layer 1, head 1", "it stays"
    weights = [weight for row in segment["heads"]["weights"][0][0] for weight in row]
    opacities = visit.page.eval_on_selector_all(
        "#heads .large .cell:not(.ground)", "all => all.map((one) => Number(one.getAttribute('fill-opacity')))"
    )
    assert opacities == pytest.approx(weights, abs=1e-3)
    again = Visit(browser, visit.page.url.replace("alternatives%2C", ""))
    again.page.wait_for_selector("#heads-of", timeout=60_000)
    assert again.page.inner_text("#heads-of") == visit.page.inner_text("#heads-of")
    for one in (visit, again):
        one.context.close()
        assert one.complaints == []


def test_the_beam_begins_where_the_search_had_a_choice(browser: Any, site: RunningServer) -> None:
    prefixes = json.dumps({"0": ["Zwei Hunde rennen durch"]})
    address = f"{site.url}/#" + urlencode(
        {"text": "Two dogs run through the snow.", "pair": "en>he", "open": "beam", "prefixes": prefixes}
    )
    visit = Visit(browser, address, viewport={"width": 375, "height": 800})
    visit.page.wait_for_selector("#beam svg.tree", timeout=60_000)
    columns = visit.page.eval_on_selector_all(".tree .box", "all => all.map((one) => one.getBoundingClientRect().left)")
    count = Counter(columns)
    given = sum(number == 1 for number in count.values())
    assert f"The first {given} steps write the chosen beginning." in visit.page.inner_text("#beam")
    frame = visit.page.locator("#beam .scroll").bounding_box()
    first, second = sorted(left for left, number in count.items() if number > 1)[:2]
    assert min(columns) < 0, "the chosen beginning is to the left of it"
    assert frame["x"] < first < second < frame["x"] + frame["width"]
    visit.page.evaluate("location.hash = location.hash.replace(/&prefixes=.*/, '')")
    visit.page.wait_for_selector("#forced[hidden]", state="attached")
    visit.expect_text("#beam", "the best is drawn in blue, dropped ones are dashed, finished ones green.")
    assert visit.page.evaluate("document.querySelector('#beam .scroll').scrollLeft") == 0
    visit.context.close()
    assert visit.complaints == []


def test_the_beam_has_every_candidate(visit: Visit, translator: Translator) -> None:
    visit.page.select_option("#pair", "en>he")
    visit.type("A man reads a book.")
    visit.page.wait_for_selector(".target .unit", timeout=60_000)
    visit.open("beam", "svg.tree")
    (segment,) = inspect_line(translator, "A man reads a book.", need_beam=True)["segments"]
    nodes = segment["beam"]["nodes"]
    assert visit.page.locator(".tree .box").count() == len(nodes)
    assert visit.page.locator(".tree .box.best").count() == sum(node["best"] for node in nodes) > 1
    pruned = sum(not node["kept"] and not node["ended"] for node in nodes)
    assert visit.page.locator(".tree .box.pruned").count() == pruned > 0
    visit.page.locator("#beam svg").focus()
    visit.page.keyboard.press("ArrowRight")
    assert f"log-probability {nodes[0]['score']}" in visit.page.inner_text("#tooltip")
    visit.page.uncheck("#beam input")
    assert visit.page.locator(".tree .box").count() == len(nodes) - pruned
