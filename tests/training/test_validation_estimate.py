"""An estimate of a validation's time that takes a fraction of that time."""

import time

from support.training_toys import make_model, make_validator
from translator.training.validation_estimate import estimate_validation


def test_the_time_of_a_validation_is_estimated_from_a_sample() -> None:
    model = make_model()
    validator = make_validator(model)
    validator.sources = [f"sentence {number:04}" for number in range(1280)]
    validator.references = validator.sources
    translated: list[str] = []
    drawn: list[str] = []

    def translate_slowly(lines: list[str]) -> list[str]:
        translated.extend(lines)
        time.sleep(0.002 * len(lines))
        return lines

    def draw_slowly(sources: list[str]) -> list[None]:
        drawn.extend(sources)
        return [time.sleep(0.2) for _ in sources]

    validator.translate_lines = translate_slowly
    validator.draw_attention = draw_slowly
    validator.num_samples = 5
    estimate = estimate_validation(validator, model)
    assert len(translated) < 100
    assert "sentence 1200" in translated, "the sample is spread over the set"
    assert len(drawn) == 2
    assert estimate > 0.002 * 1280 + 0.2 * 5


def test_without_translations_only_the_loss_is_timed() -> None:
    model = make_model()
    validator = make_validator(model)
    validator.translate_lines = None
    loss, calls = validator.loss, []

    def slow_loss(*arguments: object) -> object:
        calls.append(1)
        time.sleep(0.05)
        return loss(*arguments)  # type: ignore[arg-type]

    validator.loss = slow_loss  # type: ignore[assignment]
    assert estimate_validation(validator, model) >= 3 * 0.05
    assert len(calls) == 1
