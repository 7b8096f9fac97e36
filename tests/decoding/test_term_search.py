"""Search with required terms, compared with brute force over all outputs and with the search without terms."""

from collections import Counter
from itertools import product

import pytest
import torch

from support.fake_models import TableModel, all_outputs, batch_of
from support.spelled_pieces import FewPieces
from translator.decoding.hypotheses import Hypothesis, length_penalty
from translator.decoding.search import search
from translator.decoding.term_progress import PieceTexts, RequiredTerms
from translator.decoding.term_search import Candidate, allocate, term_search
from translator.ids import EOS
from translator.schema.decode import SearchOptions

TOKENIZER = FewPieces()
PIECES = PieceTexts(TOKENIZER)
SOURCES = [[4, 5, EOS], [6, EOS], [5, 5, 7, 4, EOS]]


def words_of(output: tuple[int, ...] | list[int]) -> Counter[str]:
    return Counter(TOKENIZER.decode_target([output])[0].split())


def contains(output: tuple[int, ...] | list[int], terms: list[str]) -> bool:
    if terms == ["a b"]:
        return " a b " in f" {' '.join(TOKENIZER.decode_target([output])[0].split(' '))} "
    return not Counter(terms) - words_of(output)


def found(
    model: TableModel, options: SearchOptions, terms: list[list[str]], **others: object
) -> list[list[Hypothesis]]:
    required = [RequiredTerms(one, PIECES) for one in terms]
    return term_search(model, *batch_of(SOURCES[: len(terms)]), options, required, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize("terms", [["ab"], ["b", "b"], ["a b"], ["ab", "b"], ["bb"]])
@pytest.mark.parametrize("penalty", ["none", "average"])
def test_a_wide_beam_finds_the_best_outputs_that_contain_the_terms(terms: list[str], penalty: str) -> None:
    options = SearchOptions(
        beam_size=800, num_hypotheses=3, max_length_ratio=0, max_length_extra=4, length_penalty=penalty, stop="exact"
    )
    for seed in range(3):
        model = TableModel.random(seed, vocab_size=8)
        outputs = {ids: score for ids, score in all_outputs(model, SOURCES[0], 4).items() if ids}
        # By log-probability: the mean of all pieces would reward padding.
        possible = sorted(((score, ids) for ids, score in outputs.items() if contains(ids, terms)), reverse=True)[:3]
        (hypotheses,) = found(model, options, [terms])
        assert [tuple(one.ids) for one in hypotheses] == [ids for _, ids in possible]
        assert [one.score for one in hypotheses] == pytest.approx([score for score, _ in possible])
        for one in hypotheses:
            assert one.normalized_score == pytest.approx(one.score / length_penalty(len(one.ids) + 1.0, options))


@pytest.mark.parametrize(
    ("beam_size", "penalty", "stop"), [(2, "average", "first"), (3, "none", "first"), (4, "gnmt", "exact")]
)
def test_without_terms_it_is_the_usual_search(beam_size: int, penalty: str, stop: str) -> None:
    options = SearchOptions(
        beam_size=beam_size, num_hypotheses=2, length_penalty=penalty, stop=stop, max_length_extra=6
    )
    for seed in range(10):
        model = TableModel.random(seed, vocab_size=8, end=0.5)
        assert found(model, options, [[]] * 3) == search(model, *batch_of(SOURCES), options)


@pytest.mark.parametrize("beam_size", [2, 5])
def test_every_output_has_its_terms_whatever_its_neighbours_and_its_limits(beam_size: int) -> None:
    lists = [["ab", "b", "a"], ["b", "b"], []]
    for seed, extra in product(range(6), (5, 9)):
        model = TableModel.random(seed, vocab_size=8, scale=4, end=4)
        options = SearchOptions(beam_size=beam_size, num_hypotheses=2, max_length_ratio=0, max_length_extra=extra)
        together = found(model, options, lists)
        for place, terms in enumerate(lists):
            assert together[place]
            assert all(contains(one.ids, terms) and len(one.ids) <= extra for one in together[place])
            required = [RequiredTerms(terms, PIECES)]
            assert term_search(model, *batch_of([SOURCES[place]]), options, required) == [together[place]]


def test_terms_are_stronger_than_other_constraints_and_come_after_a_prefix() -> None:
    options = SearchOptions(beam_size=3, max_length_ratio=0, max_length_extra=5, no_repeat_ngram=1)
    for seed in range(5):
        model = TableModel.random(seed, vocab_size=8)
        ((best, *_),) = found(model, options, [["b", "b"]], prefixes=[[5, 5]], forbidden=[(6,)])
        assert best.ids[:2] == [5, 5]
        assert contains(best.ids[2:], ["b", "b"])


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_every_listed_output_keeps_the_prefix_even_at_the_limit(longest: int) -> None:
    options = SearchOptions(beam_size=12, num_hypotheses=12, max_length_ratio=0, max_length_extra=longest)
    num_listed = 0
    for seed in range(10):
        model = TableModel.random(seed, vocab_size=8)
        (hypotheses,) = found(model, options, [["b"]], prefixes=[[5, 6]])
        num_listed += len(hypotheses)
        assert [one.ids[:2] for one in hypotheses] == [[5, 6]] * len(hypotheses)
        assert all(one.score > -1e9 for one in hypotheses)
    assert num_listed >= 10


def test_a_model_that_has_diverged_still_writes_its_terms() -> None:
    model = TableModel(torch.full((11, 8), torch.nan, dtype=torch.double))
    ((best, *_),) = found(model, SearchOptions(beam_size=2, max_length_extra=5), [["ab"]])
    assert contains(best.ids, ["ab"])


def test_every_bank_gets_a_slot_and_the_best_are_first() -> None:
    candidates = [Candidate(-float(rank), 0, 4, bank, b"") for rank, bank in enumerate([0, 0, 0, 1, 0, 2])]
    assert [one.bank for one in allocate(candidates, 3)] == [0, 1, 2]
    assert [one.value for one in allocate(candidates, 4)] == [0, -1, -3, -5]
    assert allocate(candidates, 6) == candidates
    assert [one.bank for one in allocate(candidates, 2)] == [1, 2], "those with the most terms are kept"
