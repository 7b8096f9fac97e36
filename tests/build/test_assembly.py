"""Building data, validator, trainer and run directory from a configuration, on a few hundred demo pairs."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from support.configurations import configuration
from translator.build.data import PreparedData, build_loader, prepare_data
from translator.build.run_directory import claim_run_directory
from translator.build.training import build_trainer, teacher_forcing_of
from translator.build.validation import attention_images, build_validator
from translator.config import Config
from translator.data.batching import Batch
from translator.decoding.interfaces import BLANK
from translator.decoding.line_translator import LineTranslator
from translator.errors import Interrupted, UserError
from translator.ids import EOS
from translator.models.base import Seq2Seq
from translator.runs.latest import newest_run
from translator.runs.loading import load_run
from translator.runs.model import build_model
from translator.runs.weights import collect_weights, write_tensors
from translator.training.distributed import Ranks
from translator.training.monitor import Monitor
from translator.training.precision import Execution

CPU = Execution(torch.device("cpu"))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("assembly")
    options = ["experiment=smoke", f"data.folder={folder / 'demo'}", f"data.cache_dir={folder / 'cache'}"]
    sizes = ["data.num_train=120", "data.num_valid=8", "data.num_test=8", "data.num_processes=1"]
    return configuration(*options, *sizes, "trainer.max_updates=7", "optim.clip_norm=0.5")


@pytest.fixture(scope="module")
def data(config: Config) -> PreparedData:
    return prepare_data(config)


def test_prepared_data_is_reused(config: Config, data: PreparedData) -> None:
    again = prepare_data(config)
    assert again.fingerprints() == data.fingerprints()
    assert [len(table) for table in again.train_tables] == [len(table) for table in data.train_tables]


def test_batches_hold_the_training_text(config: Config, data: PreparedData) -> None:
    """The decoded targets of an epoch are the cleaned training text, each sentence once."""
    seen = []
    with build_loader(config, data, Ranks()) as loader:
        for batch in loader:
            rows = [[piece for piece in row if piece != EOS] for row in batch.target_out.tolist()]
            seen += data.tokenizer.decode_target(rows)
            if loader.epoch == 1:
                break
    assert sorted(seen) == sorted(target for _, target in data.cleaned.train[0][0])


def test_an_update_of_many_epochs_is_refused_with_the_largest_that_works(config: Config, data: PreparedData) -> None:
    def load_with(update_tokens: int) -> None:
        with build_loader(replace(config, trainer=replace(config.trainer, update_tokens=update_tokens)), data, Ranks()):
            pass

    (corpus, _), *_ = data.cleaned.train
    pieces = data.tokenizer.encode_target([target for _, target in corpus])
    epoch_tokens = sum(len(row) + 1 for row in pieces)  # with EOS
    largest = 10 * epoch_tokens
    load_with(largest)
    with pytest.raises(UserError, match=rf"trainer.update_tokens={largest + 1}: .* give at most {largest}$"):
        load_with(largest + 1)


@torch.no_grad()
def mean_nll(model: Seq2Seq, batches: Iterable[Batch]) -> float:
    total, num_tokens = 0.0, 0
    for batch in batches:
        logits = model.project(model(batch.source, batch.source_mask, batch.target_in).states)  # (B, T, V)
        total += float(F.cross_entropy(logits[batch.target_mask], batch.target_out[batch.target_mask], reduction="sum"))
        num_tokens += int(batch.target_mask.sum())
    return total / num_tokens


def test_validator_scores_the_raw_lines(config: Config, data: PreparedData) -> None:
    torch.manual_seed(0)
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    validator = build_validator(config, data, model, CPU, Ranks())
    assert validator is not None
    assert list(zip(validator.sources, validator.references, strict=True)) == list(data.raw.valid)
    result = validator(model)
    assert result.parts["nll"] == pytest.approx(mean_nll(model.eval(), validator.batches), rel=1e-5)
    assert result.scores is not None
    assert {"bleu", "chrf"} <= result.scores.values.keys()


def test_attention_is_drawn_for_validation_only_and_can_be_interrupted(config: Config, data: PreparedData) -> None:
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    valid, test = (build_validator(config, data, model, CPU, Ranks(), split=split) for split in ("valid", "test"))
    assert valid is not None
    assert test is not None
    assert valid.num_samples == config.trainer.num_samples
    assert test.num_samples == 0
    answers = iter([False, True])
    line_translator = LineTranslator(model, data.tokenizer, interrupted=lambda: next(answers, False))
    line_translator.translate_fully = lambda *arguments, **options: [BLANK]  # type: ignore[method-assign]
    assert list(attention_images(line_translator, ["a"])) == []
    with pytest.raises(Interrupted):
        list(attention_images(line_translator, ["a"]))


def test_there_is_no_validator_without_a_test_set(config: Config, data: PreparedData) -> None:
    without = replace(data, raw=replace(data.raw, test=None))
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    assert build_validator(config, without, model, CPU, Ranks(), split="test") is None


def test_trainer_has_the_options_of_the_configuration(config: Config, data: PreparedData, tmp_path: Path) -> None:
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    validator = build_validator(config, data, model, CPU, Ranks())
    assert validator is not None
    claimed = replace(config, run_dir=str(tmp_path / "run"))
    with build_loader(config, data, Ranks()) as loader:
        trainer = build_trainer(
            config,
            model=model,
            loader=loader,
            validator=validator,
            monitor=Monitor(None, log_every=1),
            execution=CPU,
            ranks=Ranks(),
            run=claim_run_directory(claimed, data, model, Ranks()),
            work_after_fit=1.0,
        )
    assert (trainer.settings.max_updates, trainer.settings.clip_norm) == (7, 0.5)
    assert trainer.updater.optimizer.param_groups[0]["lr"] == config.optim.learning_rate


def test_teacher_forcing_follows_the_schedule_of_the_model(config: Config) -> None:
    schedule = ["schedule=linear", "ratio=1.0", "final_ratio=0.5", "updates=10"]
    scheduled = configuration("model=lstm_small", *(f"model.teacher_forcing.{one}" for one in schedule))
    assert [teacher_forcing_of(scheduled.model)(update) for update in (0, 5, 10, 99)] == [1.0, 0.75, 0.5, 0.5]
    assert teacher_forcing_of(config.model)(99) == 1.0


def test_a_claimed_run_directory_is_a_run(config: Config, data: PreparedData, tmp_path: Path) -> None:
    claimed = replace(config, run_dir=str(tmp_path / "run"))
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    run = claim_run_directory(claimed, data, model, Ranks())
    assert newest_run(tmp_path) == run.path.resolve()
    with pytest.raises(UserError, match="holds another run"):
        claim_run_directory(claimed, data, model, Ranks())
    write_tensors(run.weights, collect_weights(model))
    loaded = load_run(run.path, torch.device("cpu"))
    assert loaded.tokenizer.fingerprint == data.tokenizer.fingerprint
    assert loaded.config == claimed
    for name, weight in collect_weights(loaded.model).items():
        torch.testing.assert_close(weight, collect_weights(model)[name], rtol=0, atol=0)
