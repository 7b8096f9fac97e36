"""Lines divided into parts and joined again, without a model."""

import pytest
import torch

from support.fake_models import ByteTokenizer
from translator.decoding.forced_decoding import Forced
from translator.decoding.hypotheses import Hypothesis
from translator.decoding.length_batches import batches_by_length
from translator.decoding.parts import Part, divide, join

TOKENIZER = ByteTokenizer()


def test_lines_are_divided_at_sentences_and_at_the_maximum_length() -> None:
    lines = ["One two. Three.", "  ", "abcdef"]
    whole = divide(lines, TOKENIZER)
    assert [(part.line, part.is_first) for part in whole] == [(0, True), (2, True)]
    assert [part.line for part in divide(lines, TOKENIZER, at_sentences=True)] == [0, 0, 2]
    short = divide(lines, TOKENIZER, max_pieces=4, prefixes=[[7], [], [8]])
    assert all(len(part.ids) <= 5 for part in short)  # with EOS
    assert [part.prefix for part in short if part.is_first] == [[7], [8]]
    assert not any(part.prefix for part in short if not part.is_first)


def test_seeds_depend_on_the_place_in_the_whole_text() -> None:
    together = [part.seed for part in divide(["One. Two.", "c"], TOKENIZER, at_sentences=True)]
    assert len(set(together)) == 3
    assert [part.seed for part in divide(["c"], TOKENIZER, first_line=1)] == together[-1:]


def part_with(*texts: str) -> Part:
    hypotheses = [Hypothesis(TOKENIZER.encode_target([text])[0], -1.0 - rank, -0.5) for rank, text in enumerate(texts)]
    forced = [Forced(-1.0, [], torch.eye(len(hypothesis.ids) + 1)) for hypothesis in hypotheses]
    ids = TOKENIZER.encode_source([texts[0]])[0]
    written = TOKENIZER.decode_target([hypothesis.ids for hypothesis in hypotheses])
    return Part(0, texts[0], ids, 0, [], True, hypotheses=hypotheses, texts=written, forced=forced)


def test_the_best_outputs_of_the_parts_form_the_best_output() -> None:
    parts = [part_with("a", "b"), part_with("c")]
    joined = join(parts, TOKENIZER, joiner=" ", sum_scores=True, split_words=str.split, need_attention=True)
    assert [output.text for output in joined.outputs] == ["A C", "B C"]
    assert [output.score for output in joined.outputs] == [-2.0, -3.0]
    assert joined.outputs[0].alignment == [(0, 0), (1, 1)]
    assert len(joined.outputs[0].attention or []) == joined.num_parts == 2
    mean = join(parts, TOKENIZER, joiner="", sum_scores=False).outputs[0]
    assert (mean.text, mean.score, mean.alignment, mean.attention) == ("AC", -0.5, None, None)


def test_batches_hold_everything_once_within_the_limits() -> None:
    lengths = [3, 20, 9, 20, 1, 40, 12]
    batches = list(batches_by_length(lengths, budget=45))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(8, *(lengths[index] for index in batch)) <= 45 for batch in batches)
    assert max(len(batch) for batch in batches_by_length(lengths, 10_000, most=[2] * len(lengths))) == 2


@pytest.mark.parametrize("num_together", [1, 2, 4])
def test_batches_computed_together_are_even(num_together: int) -> None:
    lengths = [length for length in range(1, 30) for _ in range(30)]
    for budget in range(600, 1_400, 50):
        plain, even = batches_by_length(lengths, budget), batches_by_length(lengths, budget, None, num_together)
        assert sorted(index for batch in even for index in batch) == list(range(len(lengths)))
        assert len(even) == -(-len(plain) // num_together) * num_together
        tokens = [len(batch) * max(8, lengths[batch[0]]) for batch in even]
        assert max(tokens) <= budget


def test_a_few_sentences_stay_together() -> None:
    assert len(batches_by_length([9] * 40, 1_200, num_together=4)) == 1
    assert len(batches_by_length([9] * 40, 120, None, num_together=4)) == 4
    assert len(batches_by_length([9] * 8, 5, num_together=3)) == 8, "no batch is smaller than a sentence"
