"""Whatever a run will need later is tried out before its first update."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from support.configurations import configuration as compose_configuration
from translator import train
from translator.build import preflight
from translator.build.data import PreparedData, prepare_data
from translator.build.preflight import rehearse_validation
from translator.build.validation import build_validator
from translator.config import Config
from translator.demo import generate
from translator.errors import UserError
from translator.models.base import Seq2Seq
from translator.runs.model import build_model
from translator.training.distributed import Ranks
from translator.training.precision import Execution
from translator.training.validation import Validator

CPU = Execution(torch.device("cpu"))
Rehearse = Callable[..., None]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    for split, examples in generate(num_train=60, num_valid=6, num_test=3).items():
        for language in ("en", "de"):
            lines = "".join(f"{example.text[language]}\n" for example in examples)
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return folder


def configuration(corpora: Path, *overrides: str) -> Config:
    splits = [f"data.{split}={corpora / split}" for split in ("train", "valid", "test")]
    common = ["data=text", *splits, f"data.cache_dir={corpora / 'cache'}", "tokenizer.vocab_size=400"]
    model = ["model=transformer_tiny", "model.model_size=16", "model.encoder_layers=1", "model.decoder_layers=1"]
    return compose_configuration(*common, *model, *overrides)


@pytest.fixture(scope="module")
def parts(corpora: Path) -> tuple[Config, PreparedData, Seq2Seq, Validator]:
    config = configuration(corpora)
    data = prepare_data(config)
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    validator = build_validator(config, data, model, CPU, Ranks())
    assert validator is not None
    return config, data, model, validator


def rehearse(parts: tuple[Config, PreparedData, Seq2Seq, Validator], **decode: Any) -> None:
    config, data, model, validator = parts
    rehearse_validation(replace(config, decode=config.decode.changed(**decode)), data, model, validator, CPU)


def test_loss_search_scores_and_pictures_are_tried_on_one_sentence(parts: Any) -> None:
    _, data, model, validator = parts
    seen: dict[str, int] = {}

    def noting(name: str, function: Any) -> Any:
        def noted(*arguments: Any, **keywords: Any) -> Any:
            seen[name] = len(arguments[0]) if isinstance(arguments[0], list) else 1
            return function(*arguments, **keywords)

        return noted

    watched = replace(validator, loss=noting("loss", validator.loss), score=noting("score", validator.score))
    rehearse((parts[0], data, model, watched), sample=True, top_p=0.5, no_repeat_ngram=2, forbid=["Hund"])
    assert seen == {"loss": 1, "score": 1}


def test_weights_random_state_and_mode_are_unchanged(parts: Any) -> None:
    model = parts[2].train()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    rehearse(parts, sample=True)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_search_that_fails_is_reported_under_its_options(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise RuntimeError("probability tensor contains inf\nand a second line")

    monkeypatch.setattr("translator.decoding.search.greedy_or_sample", fail)
    with pytest.raises(UserError) as error:
        rehearse(parts, beam_size=1, alpha=2.0)
    message = str(error.value)
    assert message.startswith("decode.beam_size=1, decode.alpha=2.0: the first validation would fail (probability")
    assert "\n" not in message


def test_the_largest_batch_is_tried(parts: Any) -> None:
    config, data, model, validator = parts

    def fail(*arguments: Any, **keywords: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(UserError, match=r"trainer\.batch_tokens=4096: .*out of memory"):
        rehearse_validation(config, data, model, replace(validator, loss=fail), CPU)


def test_a_search_too_wide_for_the_memory_is_refused(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "device_memory", lambda device: 10**9)
    with pytest.raises(UserError, match=r"^decode\.beam_size=100000: 6 sentences .* GB .* cpu has 1\.0 GB"):
        rehearse(parts, beam_size=100_000)
    with pytest.raises(UserError, match=r"^decode\.num_hypotheses=100000: "):
        rehearse(parts, num_hypotheses=100_000, sample=True)
    rehearse(parts, beam_size=50)


def test_a_long_search_is_cut_short(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained model would continue for 100,000 pieces."""
    num_steps = 0
    step = parts[2].step

    def counted(*arguments: Any, **keywords: Any) -> Any:
        nonlocal num_steps
        num_steps += 1
        return step(*arguments, **keywords)

    monkeypatch.setattr(parts[2], "step", counted)
    rehearse(parts, max_length_extra=100_000, min_length=100_000)
    num_searches = 2  # for the scores and for the picture
    assert preflight.REHEARSED_PIECES <= num_steps <= num_searches * (preflight.REHEARSED_PIECES + 1)


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_held_out_set_of_blank_lines_is_refused(split: str, corpora: Path, tmp_path: Path) -> None:
    for language, lines in (("en", "A dog.\n\n \u200b\n"), ("de", "\n\nEin Hund.\n")):
        (tmp_path / f"blank.{language}").write_text(lines, encoding="utf-8")
    with pytest.raises(UserError, match=rf"^{split} \(.*blank\): every line is blank") as error:
        prepare_data(configuration(corpora, f"data.{split}={tmp_path / 'blank'}"))
    assert "\n" not in str(error.value)


def test_a_run_rehearses_before_it_writes_anything(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise ValueError("no such direction")

    monkeypatch.setattr("translator.decoding.search.beam_search", fail)
    with pytest.raises(UserError, match=r"^decode: the first validation would fail"):
        train.run(configuration(corpora, f"run_dir={tmp_path / 'run'}", "trainer=smoke"))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_every_long_stage_reports_its_progress(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("translator.progress_display.QUIET_SECONDS", 0.0)
    caplog.set_level("INFO")
    config = configuration(corpora, f"data.cache_dir={tmp_path}")
    data = prepare_data(config)
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    for split in ("valid", "test"):
        validator = build_validator(config, data, model, CPU, Ranks(), split=split)
        assert validator is not None
        validator(model)
    beginnings = [
        "reading and cleaning the text for the tokenizer: 1 pairs",
        "training the tokenizer on 60 pairs",
        f"train ({corpora / 'train'}): cleaning and tokenising: 1 pairs",
        "validation: loss: 1 of 1 batches",
        "validation: translating: 6 of 6 sentences",
        "test: loss: 1 of 1 batches",
        "test: translating: 3 of 3 sentences",
    ]
    found = [message for message in caplog.messages if any(message.startswith(start) for start in beginnings)]
    assert [message.partition(",")[0] for message in found] == beginnings
