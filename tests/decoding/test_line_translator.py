"""Text in, text out, with a model that copies and a tokenizer that writes capitals."""

import random

import pytest
import torch

from support.fake_models import ByteTokenizer, CopyModel, TableModel
from translator.decoding.interfaces import BLANK
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.errors import Interrupted
from translator.languages import alignment_tokens
from translator.models.base import Seq2Seq

LINES = ["a dog runs", "", "two", "   ", "ein Hund läuft schnell", "狗", "x" * 30, "\t", "last"]


def copier(**options: object) -> LineTranslator:
    tokenizer = ByteTokenizer()
    return LineTranslator(CopyModel(tokenizer.target_vocab_size), tokenizer, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
def test_lines_come_back_in_their_order_and_blank_ones_blank(beam_size: int, batch_tokens: int) -> None:
    translator = copier(options=SearchOptions(beam_size=beam_size, batch_tokens=batch_tokens))
    assert translator.translate(LINES) == [line.strip().upper() for line in LINES]
    assert translator.translate([]) == []
    assert translator.translate(["", " "]) == ["", ""]
    assert translator.translate_fully([" "]) == [BLANK]


@pytest.mark.parametrize("options", [SearchOptions(beam_size=3), SearchOptions(sample=True, num_hypotheses=2)])
def test_a_line_does_not_depend_on_batches_or_neighbours(options: SearchOptions) -> None:
    tokenizer = ByteTokenizer()
    model = TableModel.random(9, vocab_size=tokenizer.target_vocab_size, end=3)
    rng = random.Random(4)
    lines = ["".join(rng.choices("abc ", k=rng.randrange(14))) for _ in range(40)]
    whole = LineTranslator(model, tokenizer, options=options).translate(lines)
    small = LineTranslator(model, tokenizer, options=options.changed(batch_tokens=30))
    assert small.translate(lines) == whole
    pieces = [t for i in range(0, 40, 7) for t in small.translate_fully(lines[i : i + 7], first_line=i)]
    assert [translation.outputs[0].text for translation in pieces] == whole
    assert len(set(whole)) > 10


def test_normalisation_comes_first() -> None:
    assert copier(normalize=lambda text: text.replace("\x00", "")).translate(["a\x00b", "\x00"]) == ["AB", ""]


def test_long_lines_are_translated_in_parts_and_nothing_is_cut() -> None:
    line = "One two three. Four five six seven eight nine ten. " + "y" * 50
    translator = copier(max_pieces=20)
    result = translator.translate_fully([line, "short"])
    assert result[0].num_parts > 3
    assert result[0].outputs[0].text.replace(" ", "") == line.upper().replace(" ", "")
    assert result[1].num_parts == 1
    assert copier(max_pieces=0).translate_fully([line])[0].num_parts == 1
    assert copier(max_pieces=20, joiner="").translate(["狗" * 20]) == ["狗" * 20]


def test_sentences_are_split_on_request() -> None:
    translator = copier(split_sentences=True)
    (result,) = translator.translate_fully(["One two. Three four! Five"])
    assert result.num_parts == 3
    assert result.outputs[0].text == "ONE TWO. THREE FOUR! FIVE"


def test_n_best_lists_and_scores_of_a_line_in_parts_are_sums() -> None:
    translator = copier(options=SearchOptions(beam_size=4, num_hypotheses=4), split_sentences=True)
    whole, first, second = translator.translate_fully(["Ab cd. Ef", "Ab cd.", "Ef"])
    assert [len(result.outputs) for result in (whole, first, second)] == [4, 4, 4]
    for rank in range(4):
        assert whole.outputs[rank].score == pytest.approx(first.outputs[rank].score + second.outputs[rank].score)
    assert whole.outputs[0].num_pieces == first.outputs[0].num_pieces + second.outputs[0].num_pieces


def test_alignments_count_words_through_all_parts() -> None:
    (result, blank) = copier(split_sentences=True, split_words=alignment_tokens).translate_fully(
        ["Ab cd. 狗 ef", ""], need_alignment=True
    )
    assert result.outputs[0].alignment == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]
    assert result.outputs[0].attention is None
    assert blank.outputs[0].text == ""


def test_attention_has_a_row_for_each_piece_written_and_a_column_for_each_piece_read() -> None:
    (result,) = copier().translate_fully(["abc"], need_attention=True)
    assert result.outputs[0].attention is not None
    ((source, target, weights),) = result.outputs[0].attention
    assert source == ["a", "b", "c", "</s>"]
    assert target == ["a", "b", "c", "</s>"]
    torch.testing.assert_close(weights, torch.eye(4))


def test_prefixes_begin_the_translations_they_belong_to() -> None:
    results = copier().translate_fully(["abc", "", "def"], prefixes=["x", "", ""])
    assert results[0].outputs[0].text.startswith("X")
    assert [result.outputs[0].text for result in results[1:]] == ["", "DEF"]


def test_given_translations_are_scored_in_their_order() -> None:
    translator = copier(options=SearchOptions(batch_tokens=1))
    scores = translator.score(["abc", "a", ""], ["abc", "b", ""])
    assert scores[0].score > -1
    assert scores[1].score < -5
    assert len(scores[0].piece_scores) == 4
    assert len(scores[2].piece_scores) == 1


def test_a_model_in_training_is_left_in_training() -> None:
    class Checking(CopyModel):
        def encode(self, source, source_mask):  # type: ignore[no-untyped-def]
            assert not self.training
            return super().encode(source, source_mask)

    model: Seq2Seq = Checking(ByteTokenizer.target_vocab_size)
    model.train()
    LineTranslator(model, ByteTokenizer()).translate(["abc"])
    assert model.training


def test_several_models_make_an_ensemble() -> None:
    model = CopyModel(ByteTokenizer.target_vocab_size)
    assert LineTranslator([model, model], ByteTokenizer()).translate(LINES) == [line.strip().upper() for line in LINES]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_translation_is_given_up_at_the_next_step(beam_size: int, threads: int) -> None:
    calls: list[bool] = []

    def interrupted() -> bool:
        calls.append(len(calls) >= 5)
        return calls[-1]

    options = SearchOptions(beam_size=beam_size, batch_tokens=1)
    num_threads = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with pytest.raises(Interrupted):
            copier(options=options, interrupted=interrupted).translate(["x" * 30] * 8)
    finally:
        torch.set_num_threads(num_threads)
    assert calls.count(True) <= 8, "lines that were started anyway ended at their first step"
