"""HTML with tags inside sentences: what is translated, and where the tags go."""

import html
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from translator.languages import alignment_tokens
from translator.serve.html_places import placed
from translator.serve.html_source import Source
from translator.serve.html_text import HtmlText
from translator.serve.html_tree import MOST_DEPTH, MOST_INLINE, VOID, HtmlTree, Text
from translator.serve.html_words import link_units
from translator.serve.models import Candidate, WordLinks
from translator.serve.refusals import Refusal

TAG = re.compile(r"<[^>]*>")


class Nesting(HTMLParser):
    """Whether every element ends inside the one that it began in."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.is_proper = True
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open += [tag] * (tag not in VOID)

    def handle_endtag(self, tag: str) -> None:
        self.is_proper = self.is_proper and self.open[-1:] == [tag]
        del self.open[-1:]


def linked(text: str, source: str, links: list[int]) -> Candidate:
    return Candidate(text, 0.0, WordLinks(alignment_tokens(source), alignment_tokens(text), links))


def copied(text: str) -> Candidate:
    return linked(text, text, list(range(len(alignment_tokens(text)))))


def without_tags(document: str) -> str:
    return html.unescape(TAG.sub("", document))


def dense(text: str) -> str:
    return "".join(text.split())


# ---- what is translated ----


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        ("a <b>b</b> c", ["a b c"]),
        ("<p><em>a</em>\n b</p><p><i>c</i></p>", ["a b", "c"]),
        ("press <kbd>x</kbd>.", ["press."]),
        ("see <img src=x> here <!-- no -->now", ["see here now"]),
        ("a <span translate=no>B <b>c</b></span> d", ["a d"]),
        ("the bird<sup><a href='#1'>1</a></sup> and H<sub>2</sub>O, 19<sup>th</sup>", ["the bird and H2O, 19th"]),
        ("one<br>two", ["one", "two"]),
        ("<a href=x><h1>one</h1> two <b>three</b></a>", ["one", "two three"]),
        ("<b>one <i>two</b> three</i>", ["one", "two", "three"]),
        ("one <b>two", ["one", "two"]),
        ("one </b>two", ["one", "two"]),
        ("a &lt;b&gt; <b>&amp;</b> c", ["a <b> & c"]),
        ("a <code>b", ["a"]),
    ],
)
def test_a_stretch_of_text_is_translated_without_its_tags(document: str, texts: list[str]) -> None:
    cut = HtmlText(document)
    assert cut.texts == texts
    assert dense(cut.joined([copied(text) for text in texts])) == dense(document)


def test_only_tags_inside_text_need_links() -> None:
    assert not HtmlText("<p><b> one </b></p><img> two").needs_links
    assert HtmlText("one <b>two</b>").needs_links
    assert [type(node) for node in HtmlTree("one").parts[0]] == [Text]


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        ("plain &lt; text", ["plain < text"]),
        ("<p>a\n  b</p> <!-- no --> <i>c</i>", ["a b", "c"]),
        ("<pre>x y</pre><p><code>z</code></p><style>p {}</style>a", ["a"]),
        ('<div class="b notranslate"><div>x</div>y</div>z', ["z"]),
        ("<ul><li>one<li>two</ul> – <br>", ["one", "two"]),
        ("<!doctype html><a title='no'>yes</a><?pi?>", ["yes"]),
        ("a < b <c", ["a < b <c"]),
        ("", []),
    ],
)
def test_html_is_cut_into_texts_and_markup(document: str, texts: list[str]) -> None:
    cut = HtmlText(document)
    assert cut.texts == texts
    expected = document.replace("a < b <c", "a &lt; b &lt;c")
    assert " ".join(cut.joined([copied(text) for text in cut.texts]).split()) == " ".join(expected.split())


def test_a_translation_cannot_add_markup() -> None:
    assert HtmlText("<b> a </b>").joined([Candidate("<script>&", 0.0)]) == "<b> &lt;script&gt;&amp; </b>"


# ---- where the tags go ----


@pytest.mark.parametrize(
    ("document", "translation", "links", "expected"),
    [
        # fed the bird . -> hat den Vogel gefüttert .
        ("<b>fed</b> the bird.", "hat den Vogel gefüttert.", [0, 1, 2, 0, 3], "<b>hat</b> den Vogel gefüttert."),
        ("fed <a href=1>the bird</a>.", "hat den Vogel gefüttert.", [0, 1, 2, 0, 3],
         "hat <a href=1>den Vogel</a> gefüttert."),
        # the red car -> one word in between is linked elsewhere
        ("see <b>the red car</b> now", "sieh das rote Auto jetzt", [0, 1, 4, 3, 4], "sieh <b>das rote Auto</b> jetzt"),
        # elements change places, and stay inside the one around them
        ("<b>a</b> <i>b</i> c", "B A C", [1, 0, 2], "<i>B</i> <b>A</b> C"),
        ("x <u>a <i>b</i></u>", "B A X", [2, 1, 0], "<u><i>B</i> A</u> X"),
        ("<b>a</b> b", "X &", [1, 1], "<b>X</b> &amp;"),  # nothing is linked: the same share
        ("<b>a</b> <i>b</i>", "X", [0], "<i></i><b>X</b>"),  # no word is left
        ("a <b>b</b>", "", [], "<b></b>"),
        ("see <img> here", "hier sehen", [1, 0], "<img> hier sehen"),
        ("press <kbd>x</kbd>.", "Drücke.", [0, 1], "Drücke <kbd>x</kbd>."),
        ("go<sup>1</sup> on", "weiter gehen", [1, 0], "weiter gehen<sup>1</sup>"),
        ("H<sub>2</sub>O boils", "es kocht H2O", [1, 1, 0], "es kocht H<sub>2</sub>O"),
        ("un<b>like</b>ly <i>x</i>", "kaum x", [0, 1], "<b>kaum</b> <i>x</i>"),
    ],
    ids=range(13),
)  # fmt: skip
def test_elements_go_where_their_words_are(document: str, translation: str, links: list[int], expected: str) -> None:
    cut = HtmlText(document)
    (text,) = cut.texts
    assert cut.joined([linked(translation, text, links)]) == expected


def test_without_links_the_place_is_at_the_same_share_of_the_text() -> None:
    cut = HtmlText("one two <b>three</b> four")
    for links in (None, WordLinks(["other", "words"], ["A"], [0])):
        assert cut.joined([Candidate("A B C D", 0.0, links)]) == "A B <b>C</b> D"
    source = Source(HtmlTree("one <b>two</b>").parts[0])  # type: ignore[arg-type]
    assert link_units(source, Candidate("A B", 0.0)).links == [0, 1]
    assert placed(source, Candidate("A&B", 0.0), "") == "A<b>&amp;B</b>"


def test_nothing_is_added_where_words_have_no_spaces() -> None:
    cut = HtmlText("press <kbd>x</kbd> now")
    assert cut.joined([linked("現在按", cut.texts[0], [1, 1, 0])], joiner="") == "<kbd>x</kbd>現在按"


def test_too_many_tags_are_refused() -> None:
    for document in ("<b>" * (MOST_DEPTH + 1) + "a", "<b>a</b> " * (MOST_INLINE + 1)):
        with pytest.raises(Refusal, match=r"the HTML has more than 50 inline .* \(<b>\)"):
            HtmlText(document)
    deep = "<b>a " * MOST_DEPTH + "</b>" * MOST_DEPTH
    assert HtmlText(deep).joined([copied("a " * MOST_DEPTH)]).count("<b>") == MOST_DEPTH


# ---- of any document ----

TEXTS = st.sampled_from(["a", "b c", " d", "e ", " ", "f, g.", "&amp;", "un", "ж", "狗在"])
KEPT = st.sampled_from(["<img src='1'>", "<wbr>", "<!-- x -->", "<code>y &lt;</code>", "<b translate='no'>z</b>"])
NAMES = st.sampled_from(["b", "i", "a href='?a=1&amp;b'", "span", "sup"])
PIECES = st.recursive(
    TEXTS | KEPT,
    lambda inner: st.builds(
        lambda name, inside: f"<{name}>{''.join(inside)}</{name.split()[0]}>", NAMES, st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)
BLOCKS = st.lists(PIECES, max_size=6).map("".join)
DOCUMENTS = st.lists(BLOCKS.map(lambda block: f"<p>{block}</p>"), max_size=3).map("".join) | BLOCKS
FRAGMENTS = st.lists(
    st.sampled_from(["<b>", "</b>", "<i>", "</i>", "<p>", "</p>", "<br>", "<code>", "</code>", "<!--", "<", "&", "a "]),
    max_size=12,
).map("".join)


@st.composite
def translations(draw: st.DrawFn, text: str) -> Candidate:
    words = draw(st.lists(st.sampled_from(["x", "y", ",", "&", "<z>", text]), max_size=6))
    target = " ".join(words)
    num_source, num_target = len(alignment_tokens(text)), len(alignment_tokens(target))
    links = draw(st.lists(st.integers(0, num_source - 1), min_size=num_target, max_size=num_target))
    return draw(st.sampled_from([linked(target, text, links), Candidate(target, 0.0)]))


@settings(max_examples=60, deadline=None)
@given(document=DOCUMENTS, data=st.data())
def test_all_tags_are_there_and_properly_nested_around_the_translation(document: str, data: st.DataObject) -> None:
    cut = HtmlText(document)
    chosen = [data.draw(translations(text)) for text in cut.texts]
    result = cut.joined(chosen)
    assert Nesting(result).is_proper
    assert not Nesting(result).open
    assert Counter(TAG.findall(result)) == Counter(TAG.findall(document))
    untouched = dense(without_tags(HtmlText(document).joined([Candidate("", 0.0)] * len(chosen))))
    expected = "".join(one.text for one in chosen) + untouched
    assert Counter(dense(without_tags(result))) == Counter(dense(expected))


@settings(max_examples=60, deadline=None)
@given(document=DOCUMENTS)
def test_a_copy_gives_the_document_back(document: str) -> None:
    cut = HtmlText(document)
    assert dense(cut.joined([copied(text) for text in cut.texts])) == dense(document)


@settings(max_examples=40, deadline=None)
@given(sentence=st.lists(st.sampled_from("abc"), min_size=1, max_size=6), data=st.data())
def test_text_between_elements_is_exactly_the_plain_translation(sentence: list[str], data: st.DataObject) -> None:
    words = [data.draw(st.sampled_from([word, f"<b>{word}</b>"])) for word in sentence]
    cut = HtmlText(" ".join(words))
    (text,) = cut.texts
    translation = data.draw(translations(text))
    assert text == " ".join(sentence)
    assert without_tags(cut.joined([translation])) == translation.text


@settings(max_examples=60, deadline=None)
@given(document=FRAGMENTS)
def test_broken_html_keeps_its_tags(document: str) -> None:
    cut = HtmlText(document)
    result = cut.joined([copied(text) for text in cut.texts])
    tags = re.compile(r"</?[a-z]+>")
    assert Counter(tags.findall(html.unescape(result))) == Counter(tags.findall(document))
