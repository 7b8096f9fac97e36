"""A run that translates in both directions is served as two models, which share its weights."""

from pathlib import Path

import pytest
import torch

from support.servers import running
from support.small_runs import TEST, make_small_run, write_corpora
from translator import Translator
from translator.export import ctranslate2
from translator.inspection.inspect import inspect_line
from translator.runs.directions import directions_of
from translator.runs.loading import load_run
from translator.serve.exported_model import ExportedModel
from translator.serve.torch_model import load_models

SENTENCES = {"de": "A man reads.", "en": "Ein Mann liest."}  # by the language that they are translated into


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("both")
    write_corpora(folder / "corpora")
    return make_small_run(folder / "run", folder / "corpora", both_directions=True)


def test_each_direction_is_served(both: Path) -> None:
    models = load_models(both, "cpu", engine="torch", int8=False, options={})
    assert [(model.source, model.target) for model in models] == [("en", "de"), ("de", "en")]
    first, second = (next(model.translator.model.parameters()) for model in models)
    assert first is second
    with running(models) as server:
        for model in models:
            text = SENTENCES[model.target]
            expected = Translator.load(both, "cpu", to=model.target).translate([text])[0]
            answer = server.post("/translate", {"q": text, "source": model.source, "target": model.target})
            assert answer.json["translatedText"] == expected


def test_the_tag_is_shown_as_a_piece_but_is_not_a_word(both: Path) -> None:
    translator = Translator.load(both, "cpu", to="en")
    seen = inspect_line(translator, SENTENCES["en"], need_beam=True)
    (segment,) = seen["segments"]
    assert seen["text"] == translator.translate([SENTENCES["en"]])[0]
    assert segment["source_pieces"][0] == "<2en>"
    assert segment["source"] == SENTENCES["en"]
    assert [word for *_, word in segment["source_words"]] == ["Ein", "Mann", "liest", "."]
    for first, after, word in segment["source_words"]:
        assert "".join(segment["source_pieces"][first:after]).strip("▁") == word
    best = segment["hypotheses"][0]
    assert len(best["attention"][0]) == len(segment["source_pieces"])
    assert all(len(row) == 4 for row in best["word_attention"])
    shown = {other["piece"] for piece in best["pieces"] for other in piece["runners_up"]}
    assert not shown & {"<2de>", "<2en>"}
    assert not {node["piece"] for node in segment["beam"]["nodes"]} & {"<2de>", "<2en>"}


def test_terms_are_those_of_one_direction(both: Path, tmp_path: Path) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("liest\tman\n", encoding="utf-8")
    into_german = Translator.load(both, "cpu", terms=str(terms), forbid=["man"])
    assert into_german.translate([SENTENCES["de"]])
    into_english = into_german.towards(
        directions_of(into_german.config, load_run(both, torch.device("cpu")).tokenizer)[1]
    )
    plain = Translator.load(both, "cpu", to="en", forbid=["man"]).translate([SENTENCES["en"]])
    assert into_english.translate([SENTENCES["en"]]) == plain
    assert into_german.options.terms == str(terms)
    with_terms = Translator.load(both, "cpu", to="en", terms=str(terms))
    seen = inspect_line(with_terms, SENTENCES["en"], need_beam=True)
    assert seen["text"] == with_terms.translate([SENTENCES["en"]])[0] != plain[0]
    assert seen["segments"][0]["beam"] is None, "the beam of a search without terms is another one"


def test_an_export_puts_the_tag_of_its_direction_in_front(both: Path, tmp_path: Path) -> None:
    ctranslate2.write(load_run(both, torch.device("cpu")), tmp_path)
    model, translator = ExportedModel(tmp_path, num_threads=1), Translator.load(both, "cpu")
    lines = [source for source, _ in TEST[:2]]
    found, expected = model.translate(lines, model.options), translator.translate_fully(lines)
    assert [result.text() for result in found] == [translation.outputs[0].text for translation in expected]
    assert [result.num_source_pieces for result in found] == [one.num_source_pieces for one in expected]
