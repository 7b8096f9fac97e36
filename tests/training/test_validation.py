"""Loss, scores and samples of a validation."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from support.training_toys import make_batch, make_model, make_validator
from translator.errors import Interrupted
from translator.training.distributed import Ranks
from translator.training.validation_result import TextScores, ValidationResult


class OneOfTwo(Ranks):
    """One of two ranks; the other adds nothing to the loss and has `?` for each translation."""

    def maximum(self, *values: float) -> list[float]:
        return list(values)

    def gather_work(self, work: Callable[[], Any], interrupted: Callable[[], bool]) -> list[Any]:
        own = work()
        if isinstance(own, tuple):  # the loss, its parts and the tokens
            return [own]
        return [own, ["?"]] if self.rank == 0 else [["?", "?"], own]


def test_loss_is_torchs_mean_over_all_real_tokens() -> None:
    model = make_model(dropout=0.5).double()
    result = make_validator(model)(model)
    batch = make_batch(range(1000, 1021))
    with torch.no_grad():
        model.eval()
        logits = model.project(model(batch.source, batch.source_mask, batch.target_in).states).flatten(0, 1)
    arguments = (logits, batch.target_out.flatten())
    smoothed = torch.nn.functional.cross_entropy(*arguments, ignore_index=0, label_smoothing=0.1)
    plain = torch.nn.functional.cross_entropy(*arguments, ignore_index=0)
    assert result.loss == pytest.approx(smoothed.item(), rel=1e-9)
    assert result.parts["nll"] == pytest.approx(plain.item(), rel=1e-9)
    assert result.perplexity == pytest.approx(math.exp(plain.item()), rel=1e-9)
    assert result.num_tokens == batch.num_target_tokens


def test_the_model_goes_back_to_the_mode_it_was_in() -> None:
    model = make_model()
    seen = []
    validator = make_validator(model)
    validator.translate_lines = lambda lines: (seen.append(model.training), lines)[1]  # type: ignore[func-returns-value]
    for training in (True, False):
        model.train(training)
        validator(model)
        assert model.training == training
    assert seen == [False, False]

    def fail(lines: list[str]) -> list[str]:
        raise RuntimeError

    validator.translate_lines = fail
    model.train()
    with pytest.raises(RuntimeError):
        validator(model)
    assert model.training


def test_every_module_goes_back_to_its_own_mode() -> None:
    model = make_model()
    model.train()
    model.dropout.eval()  # someone froze this part
    make_validator(model)(model)
    assert [model.training, model.dropout.training, model.hidden.training] == [True, False, True]


class WithoutABatch(Ranks):
    """The third of three ranks when there are two batches; it receives what the others have."""

    def maximum(self, *values: float) -> list[float]:
        return list(values)

    def gather_work(self, work: Callable[[], Any], interrupted: Callable[[], bool]) -> list[Any]:
        others = [(10.0, {"nll": 4.0, "consistency": 1.0}, 4), (20.0, {"nll": 6.0, "consistency": 2.0}, 6)]
        return [*others, work()]


def test_a_rank_without_a_batch_learns_the_parts_from_the_others() -> None:
    model = make_model()
    validator = make_validator(model, WithoutABatch(2, 3))
    validator.batches = list(validator.batches)[:2]
    validator.translate_lines = None
    result = validator(model)
    assert (result.loss, result.parts, result.num_tokens) == (3.0, {"nll": 1.0, "consistency": 0.3}, 10)
    assert result.figures().items() >= {"loss": 3.0, "nll": 1.0, "consistency": 0.3}.items()


def test_samples_and_images_are_those_of_the_first_sentences() -> None:
    model = make_model()
    validator = make_validator(model)
    validator.draw_attention = lambda sources: [f"image of {source}" for source in sources]
    result = validator(model)
    assert [(s.source, s.reference, s.hypothesis) for s in result.samples] == [("a b", "A B", "A B"), ("c", "C", "C")]
    assert result.images == ["image of a b", "image of c"]


def test_without_a_translator_there_is_only_a_loss() -> None:
    model = make_model()
    validator = make_validator(model)
    validator.translate_lines = None
    result = validator(model)
    assert result.scores is None
    assert result.samples == []
    assert result.score("loss") == -result.loss


@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_share_the_work_and_put_it_together_in_order(rank: int) -> None:
    model = make_model()
    translated: list[str] = []
    validator = make_validator(model, OneOfTwo(rank, 2))
    validator.translate_lines = lambda lines: (translated.extend(lines), [line.upper() for line in lines])[1]
    scored: list[list[str]] = []
    validator.score = lambda hypotheses, *_: (scored.append(hypotheses), TextScores({}))[1]
    result = validator(model)
    assert translated == [["a b", "d e f"], ["c"]][rank]
    assert scored == [[["A B", "?", "D E F"]], [["?", "C", "?"]]][rank]
    shares = [(0, 2), (1,)]
    expected = sum(make_batch(range(1000 + 7 * i, 1007 + 7 * i)).num_target_tokens for i in shares[rank])
    assert result.num_tokens == expected


def test_warnings_name_what_collapsed() -> None:
    scores = TextScores({}, {}, {"empty": 0.31, "copied": 0.3, "repeating": 0.9})
    result = ValidationResult(1.0, {"nll": 1.0}, 1, scores, [], [], 1.0)
    assert result.warnings() == ["31% of the translations are empty", "90% of the translations are repeating"]


def test_higher_scores_are_better_for_every_metric() -> None:
    values = {"bleu": 30.0, "chrf": 60.0, "ter": 45.0, "chrf_pp": math.nan}
    result = ValidationResult(2.5, {"nll": 2.0}, 1, TextScores(values), [], [], 1.0)
    scores = [result.score(metric) for metric in ("bleu", "chrf", "ter", "loss", "chrf_pp")]
    assert scores == [30.0, 60.0, -45.0, -2.5, -math.inf]


def test_a_validation_is_given_up_before_the_next_batch() -> None:
    model = make_model()
    model.train()
    validator = make_validator(model)
    answers = iter([False, False, True])
    seen: list[Any] = []
    loss = validator.loss
    validator.loss = lambda *arguments: (seen.append(arguments), loss(*arguments))[1]
    validator.interrupted = lambda: next(answers)
    with pytest.raises(Interrupted):
        validator(model)
    assert len(seen) == 2
    assert model.training
