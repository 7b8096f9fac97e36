"""The page in a real browser: words, what they looked at, and other words."""

import math
import re
from typing import Any

import pytest

from support.page_visits import LINE, NEEDS_BROWSER, Visit
from support.servers import RunningServer
from translator import Translator
from translator.inspection.inspect import inspect_line

pytestmark = NEEDS_BROWSER


def test_typing_translates_and_late_answers_are_dropped(visit: Visit) -> None:
    held: list[Any] = []
    visit.page.route("**/v1/translate", lambda route: held.append(route) if not held else route.continue_())
    visit.page.focus("#text")
    visit.page.keyboard.type("one two", delay=10)
    visit.page.wait_for_timeout(900)
    assert len(visit.questions) == 1  # after the pause, not with each key
    visit.page.keyboard.type(" three", delay=10)
    visit.expect("one two three")
    held[0].fulfill(json={"sentences": [{"details": {"text": "LATE", "segments": []}}]})
    visit.page.wait_for_timeout(200)
    visit.expect("one two three")
    visit.type("")
    visit.expect("")
    assert not visit.page.is_visible("#result")


def test_what_is_typed_before_the_server_has_answered_is_translated(browser: Any, site: RunningServer) -> None:
    visit = Visit(browser, "about:blank")
    visit.base = site.url
    held: list[Any] = []
    visit.page.route("**/frontend/settings", lambda route: held.append(route))
    with visit.page.expect_request("**/frontend/settings"):
        visit.page.goto(f"{site.url}/")
    visit.type(LINE)
    held[0].continue_()
    visit.expect(LINE)
    assert visit.page.input_value("#text") == LINE
    visit.context.close()
    assert visit.complaints == []


def test_only_new_lines_are_asked_for(visit: Visit) -> None:
    visit.type("one\n\ntwo")
    visit.expect("onetwo")
    visit.type("one\n\ntwo\nthree")
    visit.expect("onetwothree")
    assert [question["text"] for question in visit.questions] == ["one\ntwo", "three"]
    assert visit.page.locator("#sentence option").all_inner_texts() == ["1: one", "3: two", "4: three"]
    visit.page.select_option("#sentence", "2")
    assert visit.units("target") == ["three"]


def test_pointing_at_a_word_shows_what_it_looked_at_both_ways(visit: Visit) -> None:
    visit.translate()
    assert visit.units("source") == ["a", "dog", "runs", "."]
    visit.unit("target", "dog").hover()
    assert "lit" in visit.unit("source", "dog").get_attribute("class")
    assert "lit" not in visit.unit("source", "runs").get_attribute("class")
    assert visit.page.inner_text("#seen").startswith("dog (probability 97 %) looked at dog 100 %")
    assert visit.page.locator(".ribbon.lit").count() == 1
    visit.unit("source", "runs").hover()
    assert "lit" in visit.unit("target", "runs").get_attribute("class")
    assert visit.page.inner_text("#seen") == "runs was looked at by runs 100 %"
    visit.page.mouse.move(5, 5)
    assert visit.page.locator(".lit, .active, .faded").count() == 0


def test_ribbons_are_as_wide_as_the_weights(browser: Any, site: RunningServer, translator: Translator) -> None:
    visit = Visit(browser, f"{site.url}/#text=Two+dogs+run+through+the+snow.&pair=en%3Ehe")
    visit.page.wait_for_selector(".ribbon", state="attached", timeout=60_000)
    (segment,) = inspect_line(translator, "Two dogs run through the snow.")["segments"]
    weights = segment["hypotheses"][0]["word_attention"]
    ribbons = visit.page.eval_on_selector_all(
        ".ribbon", "all => all.map(one => [one.dataset.target, one.dataset.source, one.getAttribute('stroke-width')])"
    )
    assert len(ribbons) == sum(weight >= 0.06 for row in weights for weight in row) > 3
    for target, source, width in ribbons:
        assert float(width) == pytest.approx(14 * weights[int(target)][int(source)], abs=0.06)
    levels = visit.page.eval_on_selector_all(".target .unit", "all => all.map(one => one.className.match(/sure-./)[0])")
    pieces = segment["hypotheses"][0]["pieces"]
    for level, (first, after, _) in zip(levels, segment["hypotheses"][0]["target_words"], strict=True):
        probability = math.prod(piece["probability"] for piece in pieces[first:after])
        assert level == f"sure-{1 + sum(probability > limit for limit in (0.2, 0.5, 0.9))}"
    visit.context.close()
    assert visit.complaints == []


def test_another_word_is_typed_and_the_rest_translated_again(visit: Visit) -> None:
    visit.translate()
    visit.unit("target", "dog").click()
    visit.page.fill("#choices input", "cat")
    visit.page.keyboard.press("Enter")
    visit.expect("a cat runs.")
    assert visit.questions[-1]["prefix"] == ["a cat"]
    assert "begins with a cat" in visit.page.inner_text("#forced")
    assert visit.page.locator(".target .unit.forced").all_inner_texts() == ["a", "cat"]
    assert "sure-1" in visit.unit("target", "cat").get_attribute("class")
    visit.expect_text(".unit:focus", "cat")
    visit.page.click("#release")
    visit.expect("a dog runs.")
    visit.expect_text(".unit:focus", "a")
    assert not visit.page.is_visible("#forced")


def test_a_word_of_a_later_sentence_is_replaced_there(visit: Visit) -> None:
    visit.type("One two. Three four.\nfive")
    visit.expect("One two. Three four.five")
    visit.page.select_option("#sentence", label="1: Three four.")
    visit.unit("target", "four").click()
    visit.page.fill("#choices input", "sour")
    visit.page.click("#choices form button")
    visit.expect("One two. Three sour.five")
    assert visit.questions[-1]["prefix"] == ["", "Three sour"]
    assert visit.questions[-1]["text"] == "One two. Three four."


def test_a_runner_up_is_chosen(browser: Any, site: RunningServer) -> None:
    visit = Visit(browser, f"{site.url}/#text=A+man+reads+a+book.&pair=en%3Ehe")
    visit.page.wait_for_selector(".target .unit", timeout=60_000)
    visit.page.locator(".target .unit").first.click()
    shares = visit.page.locator("#choices ul").first.locator(".share").all_inner_texts()
    assert len(shares) == 6  # the piece itself, and five others
    choice = visit.page.locator("#choices button.choice").filter(has_text=re.compile(r"[a-z]{2}|\w")).first
    wanted = choice.locator("bdi").inner_text().replace("▁", " ").strip()
    choice.click()
    visit.page.wait_for_selector("#forced:not([hidden])", timeout=60_000)
    assert visit.questions[-1]["prefix"] == [wanted]
    assert visit.page.inner_text("#translation").startswith(wanted)
    visit.context.close()
    assert visit.complaints == []


def test_the_keyboard_is_enough(visit: Visit) -> None:
    visit.translate()
    focused = "document.activeElement.innerText"
    visit.page.focus(".target .unit")
    visit.page.keyboard.press("ArrowRight")
    assert visit.page.evaluate(focused) == "dog"
    assert "looked at dog" in visit.page.inner_text("#seen")
    visit.page.keyboard.press("End")
    assert visit.page.evaluate(focused) == "."
    visit.page.keyboard.press("Home")
    visit.page.keyboard.press("Enter")
    assert visit.page.is_visible("#choices")
    assert visit.page.evaluate("document.activeElement.closest('#choices') !== null")
    assert visit.page.get_attribute(".target .unit", "aria-expanded") == "true"
    visit.page.keyboard.press("Escape")
    assert not visit.page.is_visible("#choices")
    assert visit.page.evaluate(focused) == "a"
    assert visit.page.get_attribute(".target .unit", "aria-expanded") == "false"


def test_the_tab_key_leaves_the_choices_where_it_came_in(visit: Visit) -> None:
    visit.translate()
    focused = "document.activeElement.innerText"
    visit.page.focus(".target .unit")
    visit.page.keyboard.press("ArrowRight")
    for key, expected in (("Shift+Tab", "dog"), ("Tab", "Other translations")):  # the word itself, and what follows it
        visit.page.keyboard.press("Enter")
        stops = visit.page.locator("#choices button, #choices input").count()
        assert visit.page.evaluate("document.activeElement.closest('#choices') !== null")
        for _ in range(stops):
            assert visit.page.is_visible("#choices")
            visit.page.keyboard.press(key)
            if not visit.page.is_visible("#choices"):
                break
        assert not visit.page.is_visible("#choices")
        assert visit.page.evaluate(focused) == expected
    visit.unit("target", "dog").click()
    visit.page.focus("#text")
    assert not visit.page.is_visible("#choices")


def test_marks_for_spaces_are_shown_among_pieces_only(browser: Any, site: RunningServer) -> None:
    for unit in ("words", "pieces"):
        visit = Visit(browser, f"{site.url}/#text=Two+dogs+run+through+the+snow.&pair=en%3Ehe&unit={unit}")
        visit.page.wait_for_selector(".target .unit", timeout=60_000)
        shown = ""
        for word in visit.page.locator(".target .unit").all():
            word.click()
            shown += visit.page.inner_text("#choices")
        assert ("▁" in shown) == (unit == "pieces")
        assert ("after a space" in shown) == ("without a space" in shown) == (unit == "words")
        visit.context.close()
        assert visit.complaints == []


def test_words_or_pieces(visit: Visit) -> None:
    visit.translate("dogs.")
    visit.page.check("input[value=pieces]")
    assert visit.units("source") == ["d", "o", "g", "s", ".", "end"]
    assert visit.units("target")[-1] == "end"
    visit.page.check("input[value=words]")
    assert visit.units("source") == ["dogs", "."]


def test_a_link_leads_back_to_the_same_view(visit: Visit, browser: Any) -> None:
    visit.translate()
    visit.unit("target", "dog").click()
    visit.page.fill("#choices input", "cat")
    visit.page.keyboard.press("Enter")
    visit.expect("a cat runs.")
    visit.open("alternatives", ".alternative:nth-child(2)")
    visit.page.locator(".alternative").nth(2).click()
    visit.page.check("input[value=pieces]")
    shown = visit.units("target")
    again = Visit(browser, visit.page.url)
    again.expect("a cat runs.")
    again.page.wait_for_selector(".alternative:nth-child(3)", timeout=60_000)
    assert again.units("target") == shown
    assert again.page.locator(".alternative").nth(2).get_attribute("aria-pressed") == "true"
    assert again.page.input_value("#text") == LINE
    again.page.evaluate("location.hash = 'text=other&prefixes=nonsense&sentence=-1&open=x'")
    again.expect("other")
    again.context.close()
    assert again.complaints == []
