"""The pages of `translate --attention`: the same translations in all of them."""

import argparse
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from support.fake_command import TranslateCommand
from support.fake_models import ByteTokenizer, CopyModel
from translator import translate_pages
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.serve.offline_page import OfflinePage
from translator.translate_jobs import attention_folders
from translator.translate_pages import TranslationPages


def write_pages(folder: Path, lines: list[str], **options: Any) -> tuple[TranslationPages, list[dict[str, Any]]]:
    tokenizer = ByteTokenizer()
    copier = LineTranslator(CopyModel(tokenizer.target_vocab_size), tokenizer, options=SearchOptions(**options))
    pages = TranslationPages(folder, copier, languages=("en", "de"))
    for number, (line, translation) in enumerate(
        zip(lines, copier.translate_fully(lines, need_attention=True), strict=True)
    ):
        pages.add(number, line, "", translation)
    pages.close()
    return pages, embedded(folder)


def embedded(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "index.html").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text.split('id="translations">')[1].split("</script>")[0])
    return found


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
    assert all(line["languages"] == ["en", "de"] for line in data)
    assert data[0]["segments"][0]["heads"]["layers"] == 2
    assert data[0]["segments"][0]["beam"]["packed"]
    monkeypatch.setattr(translate_pages, "OfflinePage", partial(OfflinePage, largest=20_000))
    pages, data = write_pages(tmp_path / "small", ["one"] * 6, beam_size=2)
    assert 0 < len(data) < 6
    assert f"only the first {len(data)} of 6 lines" in pages.note
    assert (tmp_path / "small/maps.html").read_text(encoding="utf-8").count("<table>") == 6


def test_images_of_an_earlier_run_are_removed_and_those_of_others_are_not(
    translate: TranslateCommand, tmp_path: Path
) -> None:
    (tmp_path / "long.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (tmp_path / "short.txt").write_text("four\n", encoding="utf-8")
    assert translate("long.txt", "-o", "out", "--attention", "maps")[0] == 0
    maps = tmp_path / "maps"
    shutil.copy(maps / "000002.png", maps / "kept.png")
    Figure().savefig(maps / "000009.png")
    for name in ("000003-1.png", "notes.txt"):
        (maps / name).write_bytes(b"mine")
    assert translate("short.txt", "-o", "out", "--attention", "maps")[0] == 0
    assert embedded(maps)[0]["languages"] == ["en", "de"]
    others = ["000003-1.png", "000009.png", "kept.png", "notes.txt"]
    assert sorted(path.name for path in maps.iterdir()) == sorted(["000001.png", *others, "index.html", "maps.html"])
    assert (maps / "notes.txt").read_bytes() == (maps / "000003-1.png").read_bytes() == b"mine"


def test_several_files_each_have_their_own_pages(translate: TranslateCommand, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("three\n", encoding="utf-8")
    assert translate("a.txt", "b.txt", "-o", "out/", "--attention", "maps")[0] == 0
    written = sorted(str(path.relative_to(tmp_path / "maps")) for path in (tmp_path / "maps").glob("*/*"))
    pages = ["index.html", "maps.html"]
    assert written == [
        *(f"a.txt/{name}" for name in ["000001.png", "000002.png", *pages]),
        *(f"b.txt/{name}" for name in ["000001.png", *pages]),
    ]
    for name, texts in (("a.txt", ["ONE", "TWO"]), ("b.txt", ["THREE"])):
        page = (tmp_path / "maps" / name / "maps.html").read_text(encoding="utf-8")
        assert [f"<h2>{number}. {text}</h2>" in page for number, text in enumerate(texts, 1)] == [True] * len(texts)
        assert page.count("<table>") == len(texts)
        assert page.endswith("</html>\n")


def test_one_output_of_several_files_has_its_pages_together() -> None:
    options = argparse.Namespace(attention=Path("maps"))
    assert attention_folders(options, [([Path("a"), Path("b")], Path("out"))]) == [Path("maps")]
    assert attention_folders(argparse.Namespace(attention=None), [([Path("a")], Path("out"))]) == [None]


def test_pages_where_the_translations_go_are_refused(translate: TranslateCommand, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("one\n", encoding="utf-8")
    code, _, err = translate("a.txt", "b.txt", "-o", "out/", "--attention", "out")
    assert (code, err) == (2, "translate: --attention out: out/a.txt is also written by -o; give another folder\n")
    assert translate("a.txt", "-o", "new.txt", "--attention", "new.txt/maps")[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]
