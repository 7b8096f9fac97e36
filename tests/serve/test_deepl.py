"""DeepL's interface, with DeepL's own client."""

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


def test_what_would_change_the_translation_is_refused_by_name(client: deepl.Translator) -> None:
    assert "formality" in REFUSED
    with pytest.raises(deepl.DeepLException, match="formality: not available"):
        client.translate_text("a", target_lang="DE", formality="less")
    client.translate_text("a", target_lang="DE", formality="prefer_less", context="b")
    with pytest.raises(deepl.DeepLException, match="no model translates into it"):
        client.translate_text("a", target_lang="JA")
    with pytest.raises(deepl.DeepLException, match="tag_handling: must be"):
        client.translate_text("a", target_lang="DE", tag_handling="xml")


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
