"""LibreTranslate's interface, with its own client and by hand."""

from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from libretranslatepy import LibreTranslateAPI

from support.servers import RunningServer, copier, running
from translator.evaluation.utilities import pairwise_utility
from translator.schema.decode import SearchOptions
from translator.serve.libretranslate import FORMATS

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_the_real_client_is_answered(server: RunningServer) -> None:
    client = LibreTranslateAPI(server.url)
    assert client.translate("Guten Morgen, ihr Hühner!", "de", "en") == "GUTEN MORGEN, IHR HÜHNER!"
    assert client.languages() == [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": ["de", "fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]
    best, second = client.detect("Die Katze schläft heute unter dem Tisch, weil es draußen regnet.")
    assert best["language"] == "de"
    assert best["confidence"] > second["confidence"] >= 0


@pytest.mark.parametrize("kind", ["json", "form", "multipart"])
def test_a_text_is_translated_however_it_is_sent(server: RunningServer, kind: str) -> None:
    values = {"q": "eins & zwei = süß", "source": "de", "target": "en", "format": "text", "api_key": ""}
    if kind == "json":
        answer = server.post("/translate", values)
    elif kind == "form":
        answer = server.post("/translate", urlencode(values), FORM)
    else:
        parts = [f'--xx\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in values.items()]
        body = ("".join(parts) + "--xx--\r\n").encode()
        answer = server.post("/translate", body, {"Content-Type": "multipart/form-data; boundary=xx"})
    assert (answer.status, answer.json) == (200, {"translatedText": "EINS & ZWEI = SÜSS"})


def test_a_list_of_texts_gives_lists_and_lines_stay_where_they_are(server: RunningServer) -> None:
    texts = ["one\n\n  two \r\nthree\n", "", "four\fand five"]
    answer = server.post("/translate", {"q": texts, "source": "en", "target": "de", "alternatives": 2})
    assert answer.json["translatedText"] == ["ONE\n\nTWO\r\nTHREE\n", "", "FOUR\fAND FIVE"]
    assert [len(others) for others in answer.json["alternatives"]] == [2, 0, 2]
    assert server.post("/translate", {"q": [], "source": "en", "target": "de"}).json == {"translatedText": []}


def test_the_language_of_each_text_is_detected_among_those_with_a_model(server: RunningServer) -> None:
    german, english = "Der Hund und die Katze schlafen auf dem Sofa.", "The dog and the cat are sleeping on the sofa."
    found = server.post("/translate", {"q": english, "source": "auto", "target": "fr"}).json["detectedLanguage"]
    assert found["language"] == "en"
    assert found["confidence"] > 50
    found = server.post("/translate", {"q": german, "source": "auto", "target": "fr"}).json["detectedLanguage"]
    assert found["language"] == "en", "the only one that can be translated into French"
    assert found["confidence"] < 20, "which is admitted"
    with running([copier("en", "fr"), copier("de", "fr")]) as both:
        answer = both.post("/translate", {"q": [german, english], "source": "auto", "target": "fr"}).json
    assert [one["language"] for one in answer["detectedLanguage"]] == ["de", "en"]
    assert answer["translatedText"] == [german.upper(), english.upper()]


def test_markup_does_not_decide_about_the_language() -> None:
    address = "https://www.beispiel.de/die-katze-und-der-hund-schlafen-nicht"
    document = f'<p class="die das nicht"><a href="{address}" title="nicht wahr">The cat.</a></p>'
    swapped = document.replace("The cat.", "Die Katze ist nicht da.").replace(address, "/the-cat-and-the-dog-sleep")
    with running([copier("en", "fr"), copier("de", "fr")]) as both:
        body = {"q": [document, swapped], "source": "auto", "target": "fr"}
        found = both.post("/translate", body | {"format": "html"}).json
        assert [one["language"] for one in found["detectedLanguage"]] == ["en", "de"]
        assert found["translatedText"][0] == document.replace("The cat.", "THE CAT.")
        asked = {"text": [document], "target_lang": "FR", "tag_handling": "html"}
        assert both.post("/v2/translate", asked).json["translations"][0]["detected_source_language"] == "EN"
        as_text = both.post("/translate", body).json["detectedLanguage"][0]
        assert as_text["language"] == "de", "as text, all of it counts"
        assert both.post("/detect", {"q": document}).json[0] == as_text


def test_tags_of_html_stay(server: RunningServer) -> None:
    document = '<p class="a">one</p><p><b>two &amp; 3</b>.</p>\n<script>let a = "b"</script><p translate="no">4</p>'
    answer = server.post("/translate", {"q": document, "source": "en", "target": "de", "format": FORMATS[1]})
    assert answer.json["translatedText"] == document.replace("one", "ONE").replace("two", "TWO")
    sentence = 'Press <kbd>x</kbd>, <a href="?a=1&amp;b">then <i>go</i> on</a>.<br>Or <b>not</b>'
    answer = server.post(
        "/translate", {"q": sentence, "source": "en", "target": "de", "format": "html", "alternatives": 1}
    )
    expected = 'PRESS <kbd>x</kbd>, <a href="?a=1&amp;b">THEN <i>GO</i> ON</a>.<br>OR <b>NOT</b>'
    assert answer.json["translatedText"] == expected
    assert answer.json["alternatives"][0].count("<") == sentence.count("<")
    deep = "<i>a " * 51 + "</i>" * 51
    refused = server.post("/translate", {"q": deep, "source": "en", "target": "de", "format": "html"})
    assert refused.status == 400
    assert refused.json["error"].startswith("the HTML has more than 50 inline elements")


def test_the_real_client_gets_html_back(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def urlencode_as_html(values: dict[str, str]) -> str:
        return urlencode(values | {"format": "html"})

    monkeypatch.setattr("urllib.parse.urlencode", urlencode_as_html)  # the client has no parameter for the format
    found = LibreTranslateAPI(server.url).translate("Guten <b>Morgen</b>,<br>ihr &lt;Hühner&gt;!", "de", "en")
    assert found == "GUTEN <b>MORGEN</b>,<br>IHR &lt;HÜHNER&gt;!"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"source": "en", "target": "de"}, "q: missing; give the text to translate"),
        ({"q": 3, "source": "en", "target": "de"}, "q: must be a text or a list of texts"),
        ({"q": "a\ud800b", "source": "en", "target": "de"}, "q: is not valid Unicode (it contains a lone surrogate)"),
        ({"q": "a", "target": "de"}, "source: missing; give a language, or auto"),
        ({"q": "a", "source": "en"}, "target: missing; give the language to translate into"),
        (
            {"q": "a", "source": "en", "target": "xx"},
            "no model translates from en into xx; this server translates en into de, en into fr, de into en",
        ),
        (
            {"q": "a", "source": "auto", "target": "xx"},
            "target: xx: no model translates into it; this server translates en into de, en into fr, de into en",
        ),
        ({"q": "a", "source": "en", "target": "de", "format": "pdf"}, "format: must be text or html"),
        (
            {"q": "a", "source": "en", "target": "de", "alternatives": 11},
            "alternatives: must be a whole number from 0 to 10",
        ),
        ({"q": ["a"] * 129, "source": "en", "target": "de"}, "129 texts are more than the 128 allowed in a request"),
        (
            {"q": "a" * 10_001, "source": "en", "target": "de"},
            "10,001 characters are more than the 10,000 allowed in a request",
        ),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_mistakes_are_explained(server: RunningServer, values: dict[str, Any], message: str) -> None:
    answer = server.post("/translate", values)
    assert (answer.status, answer.json) == (400, {"error": message})


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"{", "application/json", "the body is not valid JSON"),
        (b"[" * 100_000, "application/json", "the body is not valid JSON"),
        (b"\xff", "application/json", "the body is not valid JSON"),
        (b"[1]", "application/json", "the body must be a JSON object"),
        (b"q=%ff", "application/x-www-form-urlencoded", "the body is not a valid form in UTF-8"),
        (b"q", "text/plain", "Content-Type: text/plain; send application/json or a form"),
        (b"--", "multipart/form-data", "the body is not a valid form without files"),
    ],
    ids=range(7),
)
def test_bodies_that_cannot_be_read(server: RunningServer, body: bytes, kind: str, message: str) -> None:
    answer = server.post("/translate", body, {"Content-Type": kind})
    assert (answer.status, answer.json) == (400, {"error": message})


def test_more_alternatives_than_the_search_can_give() -> None:
    model = copier()
    model.options = model.options.changed(mbr=2)
    with running([model]) as server:
        answer = server.post("/translate", {"q": "a", "source": "en", "target": "de", "alternatives": 2})
    assert (answer.status, answer.json["error"][:30]) == (400, "alternatives: of 2 candidates ")


def test_settings_say_what_is_allowed(server: RunningServer) -> None:
    settings = server.get("/frontend/settings").json
    assert settings["charLimit"] == 10_000
    assert settings["keyRequired"] is False
    assert settings["language"]["source"] == {"code": "en", "name": "English"}


def test_settings_say_how_many_translations_leave_the_best_one_as_it_is() -> None:
    searches = {
        "de": SearchOptions(beam_size=4),
        "fr": SearchOptions(beam_size=1),
        "es": SearchOptions(beam_size=20),
        "it": SearchOptions(mbr=3),
        "sv": SearchOptions(sample=True, num_hypotheses=2),
    }
    utility = partial(pairwise_utility, target_language="de")
    models = [copier("en", target, search=search, make_utility=utility) for target, search in searches.items()]
    with running(models) as server:
        published = server.get("/frontend/settings").json["nbest"]
        assert {one["target"]: one["largest"] for one in published} == {"de": 4, "fr": 1, "es": 11, "it": 3, "sv": 2}
        assert {one["source"] for one in published} == {"en"}
        for one in published:
            body = {"text": "a", "target": one["target"], "source": "en", "nbest": one["largest"]}
            assert server.post("/v1/translate", body).status == 200
    with running([copier("en", "de", search=SearchOptions(beam_size=4))], max_alternatives=0) as server:
        assert server.get("/frontend/settings").json["nbest"] == [{"source": "en", "target": "de", "largest": 1}]


def test_the_language_of_one_text_at_a_time_is_detected(server: RunningServer) -> None:
    assert server.post("/detect", {"q": ["a", "b"]}).json == {"error": "q: must be a text"}
    assert server.post("/detect", {}).status == 400
