"""Runs that write from right to left (data.reverse_target): batches, validation, resuming, and starting from them."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from support.configurations import configuration
from support.corpora import ANIMAL_PAIRS
from translator import Translator, train
from translator.build.data import PreparedData, build_loader, prepare_data
from translator.build.initial_weights import take_over_weights
from translator.build.run_directory import claim_run_directory, decide_resume
from translator.build.validation import build_validator
from translator.config import Config, load_file, save_file
from translator.data.batching import Batch
from translator.data.loader import Place
from translator.data.streaming import StreamedBatches
from translator.errors import UserError
from translator.ids import BOS, EOS, PAD
from translator.models.base import Seq2Seq
from translator.runs.model import build_model
from translator.runs.weights import collect_weights, write_tensors
from translator.training.distributed import Ranks
from translator.training.precision import Execution

CPU = Execution(torch.device("cpu"))
HELD_OUT = ANIMAL_PAIRS[::6]
TRAINING = [pair for pair in ANIMAL_PAIRS if pair not in HELD_OUT]
SETTINGS = (
    *("data=text", "data.num_processes=1", "tokenizer.vocab_size=400", "trainer.batch_tokens=200"),
    *("trainer.num_samples=0", "trainer.report=false", "trainer.device=cpu", "trainer.threads=1"),
    *("decode.beam_size=2", "decode.max_length_ratio=1", "decode.max_length_extra=3", "model=transformer_tiny"),
    *("optim.schedule=constant", "optim.warmup_updates=0", "optim.learning_rate=0.003", "optim.label_smoothing=0"),
    *("tokenizer.sampling=0.2", "data.directions=both"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reverse")
    for split, pairs in (("train", TRAINING), ("valid", HELD_OUT)):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    return folder


def settings(folder: Path, *others: str) -> Config:
    corpora = [f"data.{split}={folder / split}" for split in ("train", "valid")]
    return configuration(*SETTINGS, *corpora, f"data.cache_dir={folder / 'cache'}", *others)


@pytest.fixture(scope="module")
def plain(folder: Path) -> tuple[Config, PreparedData]:
    config = settings(folder)
    assert not config.data.reverse_target
    return config, prepare_data(config)


def turned(config: Config, is_turned: bool = True) -> Config:
    return replace(config, data=replace(config.data, reverse_target=is_turned))


def model_for(config: Config, data: PreparedData) -> Seq2Seq:
    torch.manual_seed(3)
    return build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)


def first_batches(config: Config, data: PreparedData) -> list[Batch]:
    with build_loader(config, data, Ranks()) as loader:
        return list(islice(loader, 12))


def assert_reversed(batch: Batch, other: Batch) -> None:
    """The same batch, except that the pieces of the targets are reversed between BOS and EOS."""
    for name in ("source", "source_mask", "target_mask", "indices", "num_source_tokens", "num_target_tokens"):
        own, changed = getattr(batch, name), getattr(other, name)
        assert torch.equal(own, changed) if isinstance(own, torch.Tensor) else own == changed
    for first, second, inputs in zip(batch.target_out, other.target_out, other.target_in, strict=True):
        *pieces, end = first[first != PAD].tolist()
        assert end == EOS
        assert second[second != PAD].tolist() == [*reversed(pieces), EOS]
        assert inputs[inputs != PAD].tolist() == [BOS, *reversed(pieces)]


@pytest.mark.parametrize("sampling", [0.0, 0.2])
def test_only_the_order_of_target_pieces_changes(
    plain: tuple[Config, PreparedData], folder: Path, sampling: float
) -> None:
    """By default every target has the pieces of its text in their order. Tokenizer and tables serve both orders."""
    config, data = plain
    config = replace(config, tokenizer=replace(config.tokenizer, sampling=sampling))
    cached = sorted(path.name for path in (folder / "cache").iterdir())
    turned_data = prepare_data(turned(config))
    assert sorted(path.name for path in (folder / "cache").iterdir()) == cached
    assert turned_data.fingerprints() == data.fingerprints()
    texts = {text for pair in TRAINING for text in pair}
    usual = dict(zip(texts, data.tokenizer.encode_target(list(texts)), strict=True))
    for batch, other in zip(first_batches(config, data), first_batches(turned(config), turned_data), strict=True):
        for target in batch.target_out:
            ids = target[target != PAD].tolist()[:-1]
            (text,) = data.tokenizer.decode_target([ids])
            assert text in texts
            assert sampling or ids == usual[text]
        assert_reversed(batch, other)


def test_streamed_batches(plain: tuple[Config, PreparedData]) -> None:
    options: dict[str, Any] = {"batch_tokens": 150, "seed": 1, "shuffle_buffer": 30, "sampling": 0.2}
    streams = [
        StreamedBatches(ANIMAL_PAIRS, plain[1].tokenizer, **options, reverse_target=reverse)
        for reverse in (False, True)
    ]
    assert streams[0].description == streams[1].description
    both = zip(*(stream.batches(Place()) for stream in streams), strict=True)
    for (batch, place), (other, other_place) in islice(both, 20):
        assert place == other_place
        assert_reversed(batch, other)


def test_the_validation_loss_is_that_of_the_reversed_references(plain: tuple[Config, PreparedData]) -> None:
    config, data = turned(plain[0]), plain[1]
    model = model_for(config, data)
    validator = build_validator(config, data, model, CPU, Ranks())
    assert validator is not None
    found = validator(model).loss
    model.double().eval()
    means = []
    for tag, side in (("<2de>", 0), ("<2en>", 1)):
        scores: list[float] = []
        for pair in HELD_OUT:
            (source,), (pieces,) = (
                data.tokenizer.encode_source([pair[side]]),
                data.tokenizer.encode_target([pair[1 - side]]),
            )
            sources, written = torch.tensor([[data.tokenizer.tag_ids[tag], *source]]), [*reversed(pieces), EOS]
            with torch.no_grad():
                states = model(sources, sources != PAD, torch.tensor([[BOS, *written[:-1]]])).states[0]
                log_probs = torch.log_softmax(model.project(states), -1)
            scores += log_probs.gather(1, torch.tensor(written)[:, None]).flatten().tolist()
        means.append(-sum(scores) / len(scores))
    assert found == pytest.approx(sum(means) / 2, rel=1e-5)


def test_the_option_belongs_to_the_run(
    plain: tuple[Config, PreparedData], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config, data = turned(plain[0]), plain[1]
    directory = claim_run_directory(config, data, model_for(config, data), Ranks())
    assert directory.read_manifest()["identity"]["data.reverse_target"] is True
    for is_turned, found in ((True, str(directory.path)), (False, False)):
        auto = replace(turned(config, is_turned), resume="auto")
        assert decide_resume(auto, Ranks()).resume == found
    resumed = replace(turned(config, False), resume=str(directory.path), run_dir=str(directory.path))
    with pytest.raises(UserError, match=r"data\.reverse_target: the run has True, now it would be False"):
        claim_run_directory(resumed, data, model_for(config, data), Ranks())
    assert claim_run_directory(turned(resumed), data, model_for(config, data), Ranks()).path == directory.path


def test_a_run_from_before_the_option_writes_from_left_to_right(
    plain: tuple[Config, PreparedData], tmp_path: Path
) -> None:
    config, path = plain[0], tmp_path / "config.yaml"
    save_file(config, path)
    lines = path.read_text(encoding="utf-8").splitlines()[1:]  # without the checksum
    earlier = [line for line in lines if line != "  reverse_target: false"]
    assert len(earlier) == len(lines) - 1
    path.write_text("".join(f"{line}\n" for line in earlier), encoding="utf-8")
    assert load_file(path) == config
    with pytest.raises(UserError, match=r"decode\.terms=a\.tsv: .* leave out data\.reverse_target"):
        replace(turned(config), decode=replace(config.decode, terms="a.tsv"))


@pytest.mark.parametrize("is_turned", [True, False])
def test_starting_from_a_run_of_the_other_order_is_worth_a_warning(
    plain: tuple[Config, PreparedData], tmp_path: Path, is_turned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    config, data = replace(turned(plain[0]), run_dir=str(tmp_path / "run")), plain[1]
    directory = claim_run_directory(config, data, model_for(config, data), Ranks())
    write_tensors(directory.weights, collect_weights(model_for(config, data)))
    following = replace(turned(config, is_turned), init_from=str(directory.path), run_dir=None)
    found = take_over_weights(following, model_for(following, data))
    assert found is not None
    assert not found.missing
    assert ("was trained with data.reverse_target=true" in caplog.text) is not is_turned


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "num_updates", "learning_rate"), [("transformer_tiny", 200, 0.003), ("lstm_small", 300, 0.005)]
)
def test_it_is_learned_and_read_from_left_to_right(
    folder: Path, model: str, num_updates: int, learning_rate: float
) -> None:
    path = folder / model
    limits = (f"trainer.max_updates={num_updates}", f"trainer.validate_every={num_updates}", "tokenizer.sampling=0")
    own = ("data.directions=forward", "data.reverse_target=true", f"model={model}", f"run_dir={path}")
    train.run(settings(folder, *limits, *own, f"optim.learning_rate={learning_rate}"))
    figures = json.loads((path / "metrics.json").read_text(encoding="utf-8"))["validation"]
    sources, references = zip(*HELD_OUT, strict=True)
    lines = Translator.load(path, "cpu").translate(sources)
    assert figures["bleu"] == pytest.approx(sacrebleu.corpus_bleu(lines, [list(references)]).score)
    assert figures["bleu"] > 90
