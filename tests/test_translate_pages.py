"""The pages of `translate --attention`: the same translations in all of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.fake_models import ByteTokenizer, CopyModel
from translator import translate_pages
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.serve.offline_page import OfflinePage
from translator.translate_pages import TranslationPages


def write_pages(folder: Path, lines: list[str], **options: Any) -> tuple[TranslationPages, list[dict[str, Any]]]:
    tokenizer = ByteTokenizer()
    copier = LineTranslator(CopyModel(tokenizer.target_vocab_size), tokenizer, options=SearchOptions(**options))
    pages = TranslationPages(folder, copier)
    for number, (line, translation) in enumerate(
        zip(lines, copier.translate_fully(lines, need_attention=True), strict=True)
    ):
        pages.add(number, line, "", translation)
    pages.close()
    text = (folder / "index.html").read_text(encoding="utf-8")
    return pages, json.loads(text.split('id="translations">')[1].split("</script>")[0])


@pytest.mark.parametrize(
    ("options", "num_best"),
    [({"beam_size": 3}, 3), ({"beam_size": 8}, 5), ({"sample": True}, 1), ({"mbr": 4, "num_hypotheses": 2}, 2)],
)
def test_as_many_translations_as_the_search_has_anyway(options: dict[str, Any], num_best: int, tmp_path: Path) -> None:
    tokenizer = ByteTokenizer()
    copier = LineTranslator(CopyModel(tokenizer.target_vocab_size), tokenizer, options=SearchOptions(**options))
    assert TranslationPages(tmp_path, copier).num_best == num_best


def test_a_page_that_is_full_still_has_all_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages, data = write_pages(tmp_path / "whole", ["one", "", "two"], beam_size=2)
    assert pages.note == ""
    assert [line["text"] for line in data] == ["ONE", "", "TWO"]
    assert data[0]["segments"][0]["heads"]["layers"] == 2
    assert data[0]["segments"][0]["beam"]["packed"]
    monkeypatch.setattr(translate_pages, "OfflinePage", lambda title: OfflinePage(title, largest=20_000))
    pages, data = write_pages(tmp_path / "small", ["one"] * 6, beam_size=2)
    assert 0 < len(data) < 6
    assert f"only the first {len(data)} of 6 lines" in pages.note
    assert (tmp_path / "small/maps.html").read_text(encoding="utf-8").count("<table>") == 6
