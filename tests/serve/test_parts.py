"""The small parts of the server: lines, HTML, languages, keys, parameters."""

import hmac
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.servers import copier
from translator.errors import UserError
from translator.serve.bodies import Parameters
from translator.serve.detection import Detector
from translator.serve.keys import ApiKeys
from translator.serve.language_names import NAMES, language_name
from translator.serve.models import Candidate, Catalogue, Result
from translator.serve.refusals import Refusal
from translator.serve.text import text_lines


@given(st.text(st.sampled_from("ab \n\r\t\u2028")))
def test_joined_lines_are_the_text(text: str) -> None:
    cut = text_lines(text)
    assert cut.joined(cut.lines) == text
    assert not any("\n" in line for line in cut.lines)


def test_confidence_is_that_among_all_languages() -> None:
    detector = Detector(["en", "xx", "de-AT"])
    english = detector.rank("The weather is very nice today, and the children are playing in the garden.")
    assert english[0].language == "en"
    assert english[0].confidence > 80
    assert detector.rank("Das Wetter ist heute sehr schön.")[0].language == "de-AT"
    polish = detector.rank("Pogoda jest dzisiaj bardzo ładna.", ["en"])
    assert polish[0].language == "en"
    assert polish[0].confidence < 10
    assert dict(detector.rank("hello"))["xx"] == 0
    assert detector.rank("")[0].confidence < 10


def test_codes_find_their_models() -> None:
    brazil, portugal = copier("en", "pt-BR"), copier("en", "pt_PT")
    catalogue = Catalogue([brazil, portugal])
    assert catalogue.find("EN-us", "PT-br") is brazil
    assert catalogue.find("en", "pt-pt") is portugal
    assert catalogue.find("en", "pt") is brazil
    assert catalogue.targets_of("en") == ["pt-BR", "pt_PT"]
    with pytest.raises(Refusal, match="from pt into en"):
        catalogue.find("pt", "en")
    assert Result([Candidate("a", -1.0)]).text(3) == "a"


def test_languages_have_names() -> None:
    assert language_name("de") == "German"
    assert language_name("pt-BR") == "Portuguese (BR)"
    assert language_name("tlh") == "tlh"
    assert all(code.islower() and name[0].isupper() for code, name in NAMES.items())


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# for the page\n  long enough \n\nanother one\n", encoding="utf-8")
    keys = ApiKeys.load(file)
    assert keys.are_required
    assert [keys.accept(key) for key in ("long enough", "another one", "# for the page", "", None)] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert ApiKeys([]).accept(None)
    for content, message in ((b"# none\n", "has no keys"), (b"short\n", "fewer than 8"), (b"\xff", "not UTF-8")):
        file.write_bytes(content)
        with pytest.raises(UserError, match=message):
            ApiKeys.load(file)
    with pytest.raises(UserError, match="No such file"):
        ApiKeys.load(tmp_path / "missing")


def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    original = hmac.compare_digest

    def compare_digest(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return original(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare_digest)
    keys = ["correct horse", "battery staple", "open sesame"]
    for key, is_accepted in (("correct horse", True), ("open sesame", True), ("closed", False), (None, False)):
        compared.clear()
        assert ApiKeys(keys).accept(key) == is_accepted
        assert compared == [(known.encode(), (key or "").encode()) for known in keys]


def test_forms_have_texts_for_numbers_and_flags_and_json_does_not() -> None:
    form, json = (Parameters({"n": "3", "f": "true"}, is_form=is_form) for is_form in (True, False))
    assert (form.number("n", 0, 5), form.flag("f"), form.number("other", 2, 5)) == (3, True, 2)
    for refused in (lambda: json.number("n", 0, 5), lambda: json.flag("f"), lambda: form.number("n", 0, 2)):
        with pytest.raises(Refusal):
            refused()
