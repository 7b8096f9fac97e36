"""The page in a real browser, Debian's Chromium, against the real server."""

import importlib.util
import json
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.exported_runs import SMALL, make_run
from support.fake_models import ByteTokenizer, CopyModel
from support.servers import RunningServer, copier, running
from support.small_runs import HOSTILE
from translator import Translator
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.ids import NUM_SPECIAL
from translator.inspection.inspect import inspect_line
from translator.languages import alignment_tokens
from translator.schema.model import TransformerConfig
from translator.serve.offline_page import OfflinePage
from translator.serve.torch_model import TorchModel

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian: apt-get install chromium)"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
LINE = "a dog runs."
FAILED = "Failed to load resource"  # what the browser itself says of every refused request


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


class PlainTokenizer(ByteTokenizer):
    """Every byte is a piece; with a model that copies, a text stays as it is."""

    def decode_target(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return [bytes(i - NUM_SPECIAL for i in row if i >= NUM_SPECIAL).decode("utf-8", "replace") for row in ids]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows six sentences by heart."""
    return make_run(tmp_path_factory.mktemp("run") / "run", TransformerConfig(**SMALL))


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return Translator.load(run, "cpu")


@pytest.fixture(scope="module")
def site(run: Path) -> Iterator[RunningServer]:
    """English into German by a model that copies, and into "Hebrew" by one that knows a few German sentences."""
    tokenizer = PlainTokenizer()
    copies = LineTranslator(
        CopyModel(tokenizer.target_vocab_size),
        tokenizer,
        options=SearchOptions(beam_size=2),
        split_words=alignment_tokens,
    )
    with running([TorchModel(copies, "en", "de"), TorchModel(Translator.load(run, "cpu"), "en", "he")]) as started:
        yield started


class Visit:
    """An opened page, and every error it logged or foreign request it made."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1100, "height": 900}, **options})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[Any] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._note)
        self.base = address.partition("#")[0]
        self.page.goto(address)

    def _note(self, request: Any) -> None:
        self.requests.append(request)
        if not request.url.startswith((self.base, "data:")):
            self.complaints.append(request.url)

    @property
    def questions(self) -> list[dict[str, Any]]:
        return [json.loads(one.post_data) for one in self.requests if one.url.endswith("/v1/translate")]

    def type(self, text: str) -> None:
        self.page.fill("#text", text)

    def expect(self, translation: str) -> None:
        """Waits for this text, lines separated by spaces."""
        from playwright.sync_api import expect

        expect(self.page.locator("#translation")).to_have_text(translation, timeout=60_000)
        expect(self.page.locator("#translation")).not_to_have_class("waiting", timeout=60_000)

    def translate(self, text: str = LINE) -> None:
        self.type(text)
        self.expect(text)

    def unit(self, side: str, text: str) -> Any:
        return self.page.locator(f".{side} .unit").filter(has_text=re.compile(f"^{re.escape(text)}$")).first

    def units(self, side: str) -> list[str]:
        return list(self.page.locator(f".{side} .unit").all_inner_texts())

    def open(self, panel: str, wait_for: str) -> None:
        self.page.click(f"#{panel} summary")
        self.page.wait_for_selector(f"#{panel} {wait_for}", timeout=60_000)


@pytest.fixture
def visit(browser: Any, site: RunningServer) -> Iterator[Visit]:
    opened = Visit(browser, f"{site.url}/")
    yield opened
    opened.context.close()
    assert opened.complaints == []


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
    visit.page.click("#release")
    visit.expect("a dog runs.")
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
    visit.page.keyboard.press("Escape")
    assert not visit.page.is_visible("#choices")
    assert visit.page.evaluate(focused) == "a"


def test_other_translations_have_their_differences_marked(visit: Visit, site: RunningServer) -> None:
    visit.translate()
    visit.open("alternatives", ".alternative:nth-child(2)")
    found = visit.page.locator(".alternative")
    assert found.count() == 5
    assert found.nth(0).locator("ins, del").count() == 0
    assert found.nth(1).locator("ins, del").count() > 0
    other = found.nth(1).evaluate(
        "one => { const copy = one.firstChild.cloneNode(true); "
        "copy.querySelectorAll('del').forEach((gone) => gone.remove()); "
        "return copy.innerText.replace(/\\s+/g, ' ').trim(); }"
    )
    found.nth(1).click()
    assert visit.page.locator(".alternative").nth(1).get_attribute("aria-pressed") == "true"
    assert "".join(visit.units("target")) == other.replace(" ", "")
    assert "rank=1" in visit.page.url


def test_heads_are_enlarged_by_a_click(visit: Visit) -> None:
    visit.translate()
    visit.open("heads", ".thumbnail")
    assert visit.page.locator(".thumbnail").count() == 7  # two layers of three heads, and their mean
    visit.page.locator(".thumbnail").nth(4).click()
    assert visit.page.locator("#heads .large svg").get_attribute("aria-label") == "attention, layer 2, head 1"
    assert visit.questions[-1]["details"]["heads"]


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
    ratios = visit.page.evaluate(
        CONTRAST, [".unit", "#hint", "#forced", ".choice", ".alternative .facts", "ins", "del"]
    )
    assert min(ratios.values()) >= 4.5, ratios
    visit.page.locator(".target .unit").first.click()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 375
    box = visit.page.locator("#choices").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 375
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
    visit.page.click("#theme")
    assert visit.page.evaluate(background) != light
    assert visit.page.get_attribute("#theme", "aria-pressed") == "true"


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
    assert visit.page.locator("#sentence option").count() == 2
    visit.page.select_option("#sentence", "1")
    assert visit.page.locator("#sentence option").nth(1).inner_text().startswith("3: ")
    again = Visit(browser, visit.page.url)
    assert again.units("source") == visit.units("source")
    assert again.page.evaluate("window.hacked") is None
    for one in (visit, again):
        one.context.close()
        assert one.complaints == []
