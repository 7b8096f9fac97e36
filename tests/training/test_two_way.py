"""The result of two directions is the mean of both, and each is kept."""

import io
import math
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from support.training_toys import make_model, make_validator
from translator.training.monitor import Monitor
from translator.training.two_way import DirectionValidators, mean_result, parts_of
from translator.training.validation_estimate import estimate_validation
from translator.training.validation_result import TextScores, ValidationResult


def result(loss: float, bleu: float, empty: float, tokenizer: str) -> ValidationResult:
    scores = TextScores({"bleu": bleu}, {"bleu": f"tok:{tokenizer}", "chrf": "same"}, {"empty": empty})
    return ValidationResult(loss, {"nll": loss / 2}, 10, scores, [], [], 1.5)


BOTH = {"en-zh": result(2.0, 30.0, 0.9, "zh"), "zh-en": result(4.0, 10.0, 0.0, "13a")}


def test_every_figure_is_the_mean_and_those_of_each_direction_are_kept() -> None:
    mean = mean_result(BOTH)
    assert (mean.loss, mean.parts["nll"], mean.seconds, mean.num_tokens) == (3.0, 1.5, 3.0, 20)
    assert mean.score("bleu") == 20.0
    assert mean.score("loss") == -3.0
    assert mean.perplexity == pytest.approx(math.sqrt(BOTH["en-zh"].perplexity * BOTH["zh-en"].perplexity))
    figures = mean.figures()
    assert figures["directions"] == {name: one.figures() for name, one in BOTH.items()}
    assert figures["signatures"] == {"bleu": "tok:zh | tok:13a", "chrf": "same"}
    assert "directions" not in BOTH["en-zh"].figures()


def test_they_are_shown_one_by_one(tmp_path: Path) -> None:
    stream = io.StringIO()
    monitor = Monitor(tmp_path, log_every=1, stream=stream)
    monitor.start(0)
    monitor.validation(5, mean_result(BOTH), is_best=True)
    monitor.close()
    text = stream.getvalue()
    for line in (
        "update 5: validation loss 3.000  perplexity 4.48  BLEU 20.00  in 3.0s  (best so far)",
        "  en-zh: loss 2.000  perplexity 2.72  BLEU 30.00",
        "  warning: en-zh: 90% of the translations are empty",
    ):
        assert line in text.splitlines()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    values = {tag: events.Scalars(tag)[0].value for tag in events.Tags()["scalars"] if tag.endswith("/bleu")}
    assert values == {"validation/bleu": 20.0, "validation_en-zh/bleu": 30.0, "validation_zh-en/bleu": 10.0}


def test_validators_side_by_side() -> None:
    model = make_model()
    noted: list[ValidationResult] = []
    one, other = make_validator(model, scores=[40.0, 0.0]), make_validator(model, scores=[20.0, 0.0])
    both = DirectionValidators({"a-b": one, "b-a": other}, noted.append)
    found = both(model)
    assert noted == [found]
    assert found.score("bleu") == 30.0
    assert {name: part.score("bleu") for name, part in found.by_direction.items()} == {"a-b": 40.0, "b-a": 20.0}
    assert len(found.samples) == 2 * one.num_samples
    assert both.size == one.size + other.size
    assert [len(part.sources) for part in parts_of(both.limited(slice(1)))] == [1, 1]
    assert parts_of(one) == [one]
    assert estimate_validation(both, model) > 0
