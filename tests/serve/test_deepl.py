"""DeepL's interface, with DeepL's own client."""

import re
from typing import Any

import deepl
import pytest

from support.servers import RunningServer, copier, running
from translator.serve.deepl import NO_LIMIT, REFUSED


@pytest.fixture
def client(server: RunningServer) -> deepl.Translator:
    return deepl.Translator("any key", server_url=server.url)


def test_texts_are_translated(client: deepl.Translator) -> None:
    one = client.translate_text("The dog sleeps.", target_lang="DE")
    assert isinstance(one, deepl.TextResult)
    assert (one.text, one.detected_source_lang, one.billed_characters) == ("THE DOG SLEEPS.", "EN", 15)
    two = client.translate_text(["a\nb", "c"], source_lang="DE", target_lang="EN-US")
    assert isinstance(two, list)
    assert [(result.text, result.detected_source_lang) for result in two] == [("A\nB", "DE"), ("C", "DE")]
    marked = client.translate_text("<p>a <b>b</b></p> c", source_lang="DE", target_lang="EN-GB", tag_handling="html")
    assert isinstance(marked, deepl.TextResult)
    assert marked.text == "<p>A <b>B</b></p> C"


def test_languages_and_usage(client: deepl.Translator, server: RunningServer) -> None:
    assert [(one.code, one.name) for one in client.get_source_languages()] == [("EN", "English"), ("DE", "German")]
    assert [one.code for one in client.get_target_languages()] == ["DE", "FR", "EN"]
    before = client.get_usage().character
    client.translate_text("12345", source_lang="EN", target_lang="DE")
    after = client.get_usage().character
    assert (after.count or 0) - (before.count or 0) == 5
    assert after.limit == NO_LIMIT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formality": "less"}, "formality: not available on this server; leave it out"),
        ({"ignore_tags": ["x"]}, "ignore_tags: not available on this server; leave it out"),
        ({"splitting_tags": "p,td"}, "splitting_tags: not available on this server; leave it out"),
        ({"non_splitting_tags": ["b"]}, "non_splitting_tags: not available on this server; leave it out"),
        ({"outline_detection": False}, "outline_detection: must be true on this server; leave it out"),
        ({"tag_handling": "xml"}, "tag_handling: must be html, or left out"),
    ],
    ids=str,
)
def test_what_would_change_the_translation_is_refused_by_name(
    client: deepl.Translator, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(deepl.DeepLException, match=f"message: {re.escape(message)}$"):
        client.translate_text("a", **{"target_lang": "DE", "tag_handling": "html"} | options)


def test_every_name_on_the_list_is_refused(server: RunningServer) -> None:
    for name in REFUSED:
        answer = server.post("/v2/translate", {"text": ["a"], "target_lang": "DE", name: "x"})
        assert (answer.status, answer.json["error"]) == (400, f"{name}: not available on this server; leave it out")


def test_hints_and_defaults_make_no_difference(client: deepl.Translator) -> None:
    found = client.translate_text(
        "<p>a</p> b.",
        target_lang="DE",
        source_lang="EN",
        tag_handling="html",
        tag_handling_version="v2",
        formality="prefer_less",
        context="b",
        preserve_formatting=True,
        outline_detection=True,
        ignore_tags=[],
        model_type="quality_optimized",
    )
    assert str(found) == "<p>A</p> B."


def test_the_target_is_called_what_the_request_calls_it(client: deepl.Translator, server: RunningServer) -> None:
    with pytest.raises(deepl.DeepLException, match="target_lang: JA: no model translates into it"):
        client.translate_text("a", target_lang="JA")
    own = server.post("/v1/translate", {"text": "a", "target": "ja"})
    assert own.json["error"].startswith("target: ja: no model translates into it")


def test_billed_characters_are_there_on_request(server: RunningServer) -> None:
    body = {"text": ["a dog", "Hühner"], "target_lang": "DE", "source_lang": "EN"}
    assert [set(one) for one in server.post("/v2/translate", body).json["translations"]] == [
        {"detected_source_language", "text"}
    ] * 2
    asked = server.post("/v2/translate", body | {"show_billed_characters": True}).json["translations"]
    assert [one["billed_characters"] for one in asked] == [5, 6]


def test_sentences_are_split_on_request() -> None:
    with running([copier()]) as server:
        body = {"text": ["one. Two."], "target_lang": "DE", "split_sentences": "1"}
        assert server.post("/v2/translate", body).json["translations"][0]["text"] == "ONE. TWO."
        assert server.metric("batch_lines_sum") == 1
        body["split_sentences"] = "sometimes"
        assert server.post("/v2/translate", body).json["error"] == "split_sentences: must be 0, 1 or nonewlines"


def test_a_wrong_key_is_an_authorization_error() -> None:
    with running([copier()], keys=["correct horse"]) as server:
        wrong = deepl.Translator("wrong horse", server_url=server.url)
        for ask in (lambda: wrong.translate_text("a", target_lang="DE"), wrong.get_usage, wrong.get_source_languages):
            with pytest.raises(deepl.AuthorizationException):
                ask()
        right = deepl.Translator("correct horse", server_url=server.url)
        assert str(right.translate_text("a", target_lang="DE")) == "A"
