import math
from collections import Counter

import pytest
import torch

from support.fake_models import TableModel, all_outputs, batch_of
from translator.decoding.forced_decoding import score_targets
from translator.decoding.greedy_and_sampling import draw, truncated_probabilities
from translator.decoding.search import SearchOptions, search
from translator.ids import EOS


def test_truncation_keeps_exactly_the_top_k_and_the_top_p() -> None:
    probabilities = torch.tensor([[0.1, 0.4, 0.2, 0.3]], dtype=torch.double)
    log_probs = probabilities.log()

    def truncated(**options: float) -> list[float]:
        return truncated_probabilities(log_probs, SearchOptions(**options))[0].tolist()  # type: ignore[arg-type]

    assert truncated() == pytest.approx([0.1, 0.4, 0.2, 0.3])
    assert truncated(top_k=2) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert truncated(top_k=9) == pytest.approx([0.1, 0.4, 0.2, 0.3])
    assert truncated(top_p=0.69) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert truncated(top_p=0.71) == pytest.approx([0, 4 / 9, 2 / 9, 3 / 9])
    assert truncated(epsilon=0.25) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert truncated(epsilon=0.9) == pytest.approx([0, 1, 0, 0])  # the likeliest remains
    assert truncated(epsilon=0.15, top_k=2) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert truncated(top_p=0.01) == pytest.approx([0, 1, 0, 0])
    assert truncated(top_k=2, top_p=0.5) == pytest.approx([0, 1, 0, 0])  # 0.4 is 4/7 of the two
    squares = torch.tensor([0.01, 0.16, 0.04, 0.09]) / 0.3
    assert truncated(temperature=0.5) == pytest.approx(squares.tolist())


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_the_coldest_samples_are_the_likeliest_pieces(dtype: torch.dtype) -> None:
    log_probs = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.0, 0.0, 0.0, 1.0]], dtype=dtype).log()
    options = SearchOptions(sample=True)
    for temperature in (1e-4, 1e-30, 1e-300):
        options.temperature = temperature  # which may be less than the schema allows
        assert truncated_probabilities(log_probs, options).tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize(
    "options", [{"sample": True}, {"beam_size": 1}, {"beam_size": 3}, {"sample": True, "top_k": 2}]
)
@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_scores_are_finite_even_if_the_model_has_diverged(options: dict[str, int], value: float) -> None:
    model = TableModel.random(3, vocab_size=6)
    model.table.fill_(value)
    (found,) = search(model, *batch_of([[4, 5, EOS]]), SearchOptions(**options))  # type: ignore[arg-type]
    assert found
    for one in found:
        assert math.isfinite(one.score)
        assert math.isfinite(one.normalized_score)


def test_drawing_inverts_the_distribution_function_and_never_takes_the_impossible() -> None:
    probabilities = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0]], dtype=torch.double)
    uniform = torch.tensor([0.0, 0.2499, 0.25, 0.9999999], dtype=torch.double)
    assert draw(probabilities.expand(4, -1), uniform).tolist() == [1, 1, 3, 3]


def test_samples_follow_the_known_distribution_of_whole_outputs() -> None:
    model = TableModel.random(3, vocab_size=6)
    source = [4, 5, EOS]
    limits = {"max_length_ratio": 0.0, "max_length_extra": 2, "min_length": 0}
    num_samples = 20_000
    options = SearchOptions(num_hypotheses=num_samples, sample=True, seed=7, **limits)  # type: ignore[arg-type]
    (samples,) = search(model, *batch_of([source]), options)
    counts = Counter(tuple(sample.ids) for sample in samples)
    outputs = all_outputs(model, source, max_length=2)
    # An output of maximum length is certain to end, and PAD and BOS are never drawn: normalise each step by hand.
    expected = _distribution(model, source, max_length=2)
    assert set(counts) <= set(outputs)
    assert sum(expected.values()) == pytest.approx(1)
    statistic = sum((counts[ids] - num_samples * p) ** 2 / (num_samples * p) for ids, p in expected.items())
    degrees = len(expected) - 1
    assert statistic < degrees + 4 * math.sqrt(2 * degrees)  # four standard deviations


def _distribution(model: TableModel, source: list[int], max_length: int) -> dict[tuple[int, ...], float]:
    allowed = [piece for piece in range(model.table.size(1)) if piece not in (0, 2)]
    finished: dict[tuple[int, ...], float] = {}

    def go_on(ids: tuple[int, ...], code: torch.Tensor, previous: int, probability: float) -> None:
        if len(ids) == max_length:
            finished[ids] = probability
            return
        code = model.next_codes(code, torch.tensor(previous))
        probabilities = torch.softmax(model.table[code].flatten()[allowed], 0).tolist()
        for piece, share in zip(allowed, probabilities, strict=True):
            if piece == EOS:
                finished[ids] = probability * share
            else:
                go_on((*ids, piece), code, piece, probability * share)

    go_on((), model.encode(*batch_of([source])).summary, 2, 1.0)
    return finished


def test_samples_carry_the_models_own_score_and_come_likeliest_first() -> None:
    model = TableModel.random(3, vocab_size=20)
    source, mask = batch_of([[4, EOS], [5, 6, EOS]])
    options = SearchOptions(num_hypotheses=6, length_penalty="none", sample=True, temperature=0.7, top_k=5, top_p=0.9)
    found = search(model, source, mask, options)
    for rank in range(6):
        forced = score_targets(model, source, mask, [sentence[rank].ids for sentence in found])
        assert [sentence[rank].score for sentence in found] == pytest.approx([result.score for result in forced])
    for sentence in found:
        assert [h.score for h in sentence] == sorted((h.score for h in sentence), reverse=True)


def test_the_seed_decides() -> None:
    model = TableModel.random(3, vocab_size=50)
    batch = batch_of([[4, EOS]])

    def sampled(seed: int, line: int) -> list[int]:
        options = SearchOptions(sample=True, seed=seed)
        return search(model, *batch, options, seeds=[line])[0][0].ids

    assert sampled(1, 0) == sampled(1, 0)
    assert len({tuple(sampled(seed, line)) for seed in range(3) for line in range(3)}) > 5
