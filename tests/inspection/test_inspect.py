"""What is shown of a translation: the text of `translate`, the probabilities of forced decoding, the same alignment."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from support.exported_runs import SMALL, make_run
from support.fake_models import ByteTokenizer, CopyModel, TableModel
from support.small_runs import make_small_run, write_corpora
from translator import Translator
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.inspection.inspect import inspect_line, probability, words_of
from translator.languages import alignment_tokens
from translator.schema.model import TransformerConfig

LINES = ["A man reads.", '<b>&"', " \t", "שלום", "狗在跑。"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    write_corpora(folder / "corpora")
    models = {"transformer": 1, "lstm": 2}
    return {name: make_small_run(folder / name, folder / "corpora", name, seed=seed) for name, seed in models.items()}


@pytest.fixture(scope="module", params=["transformer", "lstm", "ensemble"])
def translator(request: pytest.FixtureRequest, runs: dict[str, Path]) -> Translator:
    folders = list(runs.values()) if request.param == "ensemble" else runs[request.param]
    return Translator.load(folders, "cpu", max_length_extra=1)


def table_translator(**options: Any) -> LineTranslator:
    tokenizer = ByteTokenizer()
    model = TableModel.random(5, vocab_size=tokenizer.target_vocab_size, end=2)
    return LineTranslator(model, tokenizer, options=SearchOptions(**options), split_words=alignment_tokens)


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_it_is_the_translation(translator: Translator, line: str) -> None:
    (translation,) = translator.translate_fully([line], need_alignment=True)
    seen = inspect_line(translator, line, need_heads=True, need_beam=True)
    assert seen["text"] == translator.translate([line])[0]
    assert seen["source"] == line
    json.dumps(seen, allow_nan=False)
    if not line.strip():
        assert seen["segments"] == []
        return
    (segment,) = seen["segments"]
    assert segment["source"] == line
    assert [" ".join(word for *_, word in segment["source_words"])] == [" ".join(alignment_tokens(line))]
    (hypothesis,) = segment["hypotheses"]
    assert hypothesis["alignment"] == [list(pair) for pair in translation.outputs[0].alignment or []]
    assert hypothesis["score"] == pytest.approx(translation.outputs[0].score)
    *_, end = [node for node in segment["beam"]["nodes"] if node["best"]]
    assert end["score"] == pytest.approx(hypothesis["score"], abs=1e-3)


def test_probabilities_are_those_of_forced_decoding(translator: Translator) -> None:
    line = "Anna has 12 red dogs."
    (segment,) = inspect_line(translator, line, num_hypotheses=3, num_runners_up=4)["segments"]
    assert len(segment["hypotheses"]) == 3
    assert segment["heads"] is segment["beam"] is None
    for hypothesis in segment["hypotheses"]:
        (forced,) = translator.score([line], [hypothesis["text"]], need_attention=True)
        pieces = hypothesis["pieces"]
        if len(forced.piece_scores) == len(pieces):  # otherwise the model did not spell it as the tokenizer does
            expected = [math.exp(score) for score in forced.piece_scores]
            assert [piece["probability"] for piece in pieces] == pytest.approx(expected, rel=1e-3)
            assert torch.tensor(hypothesis["attention"]) == pytest.approx(forced.attention, abs=1e-3)
        total = sum(math.log(piece["probability"]) for piece in pieces)
        assert total == pytest.approx(hypothesis["score"], abs=2e-2)
        for piece in pieces:
            others = [other["probability"] for other in piece["runners_up"]]
            assert len(others) == 4
            assert others == sorted(others, reverse=True)
            assert sum(others) + piece["probability"] <= 1.001
            assert piece["piece"] not in [other["piece"] for other in piece["runners_up"]]


def test_runners_up_against_the_table() -> None:
    translator = table_translator(beam_size=2)
    model = translator.model
    assert isinstance(model, TableModel)
    (segment,) = inspect_line(translator, "ab", num_runners_up=3)["segments"]
    (hypothesis,) = segment["hypotheses"]
    (ids,) = translator.tokenizer.encode_source(["ab"])
    code = model.encode(torch.tensor([ids]), torch.ones(1, 3, dtype=torch.bool)).summary[0]
    names = translator.tokenizer.target_pieces(range(model.table.size(1)))
    previous = 2
    for piece in hypothesis["pieces"]:
        code = model.next_codes(code, torch.tensor(previous))
        probabilities = torch.softmax(model.table[code], -1)
        order = [n for n in probabilities.argsort(descending=True).tolist() if names[n] != piece["piece"]]
        order = [n for n in order if n not in (0, 2)][:3]  # padding and BOS are never written
        assert [other["piece"] for other in piece["runners_up"]] == [names[n] for n in order]
        expected = [float(probabilities[n]) for n in order]
        assert [other["probability"] for other in piece["runners_up"]] == pytest.approx(expected, rel=1e-3)
        previous = names.index(piece["piece"])


def test_heads_average_to_the_map_that_aligns(translator: Translator) -> None:
    (segment,) = inspect_line(translator, "The house is red.", need_heads=True)["segments"]
    heads, hypothesis = segment["heads"], segment["hypotheses"][0]
    weights = torch.tensor(heads["weights"])
    sizes = (heads["layers"], heads["heads"], len(hypothesis["pieces"]), len(segment["source_pieces"]))
    assert weights.shape == sizes
    assert sizes[:2] == ((2, 2) if type(translator.model).__name__ == "Transformer" else (1, 1))
    assert weights.mean((0, 1)) == pytest.approx(torch.tensor(hypothesis["attention"]), abs=2e-3)
    assert weights.sum(-1) == pytest.approx(torch.ones(sizes[:3]), abs=2e-2)


def test_heads_are_those_of_the_hypothesis_asked_for(translator: Translator) -> None:
    for rank, shown in ((0, 0), (1, 1), (9, 2)):
        seen = inspect_line(
            translator, "The house is red.", num_hypotheses=3, need_heads=True, heads_rank=rank, need_beam=True
        )
        (segment,) = seen["segments"]
        assert segment["heads"]["rank"] == shown
        mean = torch.tensor(segment["heads"]["weights"]).mean((0, 1))
        assert mean == pytest.approx(torch.tensor(segment["hypotheses"][shown]["attention"]), abs=2e-3)


def test_a_prefix_is_kept_and_the_rest_translated_again(translator: Translator) -> None:
    line = "A man reads a book."
    (expected,) = translator.translate_fully([line], prefixes=["Zwei Hunde"])
    seen = inspect_line(translator, line, prefix="Zwei Hunde")
    assert seen["text"] == expected.outputs[0].text
    assert seen["text"].startswith("Zwei Hunde")
    assert seen["segments"][0]["num_forced"] == len(translator.tokenizer.encode_target(["Zwei Hunde"])[0])
    assert inspect_line(translator, line, prefix=["Zwei Hunde"]) == seen
    assert inspect_line(translator, line)["segments"][0]["num_forced"] == 0


def test_a_long_line_has_segments_each_with_its_prefix() -> None:
    tokenizer = ByteTokenizer()
    copier = LineTranslator(CopyModel(tokenizer.target_vocab_size), tokenizer, max_pieces=12)
    line = "One two. Three four. Five"
    seen = inspect_line(copier, line)
    assert seen["text"] == copier.translate([line])[0] == "ONE TWO. THREE FOUR. FIVE"
    assert [segment["source"] for segment in seen["segments"]] == ["One two.", "Three four.", "Five"]
    assert seen["segments"][1]["hypotheses"][0]["alignment"] == [[0, 0], [1, 1]]
    seen = inspect_line(copier, line, prefix=["", "x"])
    assert [segment["num_forced"] for segment in seen["segments"]] == [0, 1, 0]
    assert seen["text"] == "ONE TWO. XHREE FOUR. FIVE"


def test_words_are_spans_of_pieces() -> None:
    assert words_of(["▁The", "▁do", "g", "."], alignment_tokens) == [[0, 1, "The"], [1, 3, "dog"], [3, 4, "."]]
    assert words_of(["▁狗", "在雪", "。"], alignment_tokens) == [[0, 1, "狗"], [1, 2, "在"], [1, 2, "雪"], [2, 3, "。"]]
    assert words_of(["▁", "<0xE2>", "<0x98>", "<0x83>"], alignment_tokens) == [[1, 4, "☃"]]
    assert words_of([], alignment_tokens) == []


@pytest.mark.parametrize("options", [{"sample": True}, {"beam_size": 1}], ids=["samples", "greedy"])
def test_only_a_beam_has_a_tree(options: dict[str, Any]) -> None:
    (segment,) = inspect_line(table_translator(**options), "ab", need_beam=True)["segments"]
    assert segment["beam"] is None


def test_the_translator_stays_as_it_is() -> None:
    translator = table_translator(beam_size=2)
    seen = inspect_line(translator, "ab", num_hypotheses=4)
    assert len(seen["hypotheses"]) == 4
    assert seen["hypotheses"][0]["text"] == seen["text"]
    assert translator.options == SearchOptions(beam_size=2)


def test_a_model_that_has_diverged_still_gives_json() -> None:
    tokenizer = ByteTokenizer()
    model = TableModel(torch.full((11, tokenizer.target_vocab_size), math.nan, dtype=torch.double))
    seen = inspect_line(LineTranslator(model, tokenizer), "ab", need_heads=True, need_beam=True)
    json.dumps(seen, allow_nan=False)
    assert probability(math.nan) == probability(-math.inf) == 0
    assert probability(math.log(0.25)) == 0.25


@pytest.mark.slow
def test_with_ctranslate2_the_search_is_its_own(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")
    run = make_run(tmp_path / "run", TransformerConfig(**SMALL))
    engine, torch_only = Translator.load(run, engine="ctranslate2"), Translator.load(run, "cpu")
    for line in ("A dog reads.", "She sings the old book."):
        seen = inspect_line(engine, line, num_hypotheses=2, need_heads=True, need_beam=True)
        own = inspect_line(torch_only, line, num_hypotheses=2, need_heads=True, need_beam=True)
        assert seen["text"] == engine.translate([line])[0] == own["text"]
        assert seen["segments"][0]["beam"] == own["segments"][0]["beam"]
        assert seen["segments"][0]["heads"] == own["segments"][0]["heads"]
