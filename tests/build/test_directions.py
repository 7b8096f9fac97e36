"""One model for both directions, from the command line to scores, and runs that start from it."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from support.configurations import configuration
from support.corpora import ANIMAL_PAIRS
from translator import Translator, train
from translator.build.data import prepare_data
from translator.build.initial_weights import take_over_weights, tokenizer_folder, with_initial_tokenizer
from translator.build.validation import build_validator
from translator.config import load_file, save_file
from translator.errors import UserError
from translator.export.sample import SampleSearch, compare, make_sample
from translator.languages import alignment_tokens
from translator.models.base import Step
from translator.runs.directions import choose_direction, directions_of
from translator.runs.directory import RunDirectory
from translator.runs.latest import point_latest
from translator.runs.loading import load_run
from translator.runs.model import build_model
from translator.runs.weights import collect_weights, read_tensors
from translator.training.distributed import Ranks
from translator.training.precision import Execution

CPU = Execution(torch.device("cpu"))
SETTINGS = (
    *("data=text", "data.num_processes=1", "model=transformer_tiny", "tokenizer.vocab_size=400", "model.model_size=16"),
    *("model.feedforward_size=32", "model.num_heads=2", "model.encoder_layers=1", "model.decoder_layers=1"),
    *("trainer.batch_tokens=200", "trainer.validate_every=20", "trainer.num_samples=0", "trainer.report=false"),
    *(
        "optim.schedule=constant",
        "optim.warmup_updates=0",
        "optim.learning_rate=0.01",
        "trainer.device=cpu",
        "trainer.threads=1",
    ),
    *("decode.beam_size=2", "decode.max_length_ratio=1", "decode.max_length_extra=3", "trainer.ema_decay=0.5"),
    *("tokenizer.sampling=0.1", "decode.min_length=2"),
)


def settings(folder: Path, *others: str) -> list[str]:
    corpora = [f"data.{split}={folder / split}" for split in ("train", "valid", "test")]
    return [*SETTINGS, *corpora, f"data.cache_dir={folder / 'cache'}", *others]


def run(folder: Path, name: str, *others: str) -> Path:
    train.run(configuration(*settings(folder, f"run_dir={folder / name}", *others)))
    return folder / name


def resume(path: Path, *others: str) -> None:
    train.cli.main(train.run, [f"resume={path}", *others], check=train.check_config)


def write_corpora(folder: Path, *splits: list[tuple[str, str]]) -> None:
    for split, pairs in zip(("train", "valid", "test"), splits, strict=True):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("directions")
    write_corpora(folder, ANIMAL_PAIRS[8:], ANIMAL_PAIRS[:4], ANIMAL_PAIRS[4:8])
    return folder


@pytest.fixture(scope="module")
def both(folder: Path) -> Path:
    return run(folder, "both", "data.directions=both", "trainer.max_updates=40")


def metrics(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "metrics.json").read_text(encoding="utf-8"))
    return found


def test_scores_of_each_direction_are_sacrebleus(both: Path) -> None:
    for split, pairs in (("validation", ANIMAL_PAIRS[:4]), ("test", ANIMAL_PAIRS[4:8])):
        figures = metrics(both)[split]
        for to, side in (("de", 0), ("en", 1)):
            lines = Translator.load(both, "cpu", to=to).translate([pair[side] for pair in pairs])
            expected = sacrebleu.corpus_chrf(lines, [[pair[1 - side] for pair in pairs]])
            name = {"de": "en-de", "en": "de-en"}[to]
            assert figures["directions"][name]["chrf"] == pytest.approx(expected.score)
            assert figures["directions"][name]["chrf"] > 10
        parts = figures["directions"].values()
        for metric in ("bleu", "chrf", "loss", "nll"):
            assert figures[metric] == pytest.approx(sum(part[metric] for part in parts) / 2)
    assert json.loads((both / "manifest.json").read_text())["identity"]["data.directions"] == "both"


def test_the_tag_is_in_front_of_every_source_and_never_written(both: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = Translator.load(both, "cpu", to="en")
    loaded = load_run(both, torch.device("cpu"))
    german, english = loaded.tokenizer.tag_ids.values()
    assert translator.encode_sources(["<2de> ein Hund"])[0][0] == english
    assert german not in translator.encode_sources(["<2de> ein Hund"])[0]
    step = translator.model.step

    def step_that_likes_tags(*arguments: Any, **options: Any) -> Step:
        result = step(*arguments, **options)
        logits = result.logits.clone()
        logits[:, [german, english]] += 100
        return result._replace(logits=logits)

    monkeypatch.setattr(translator.model, "step", step_that_likes_tags)
    lines = ["<2de> ein Hund", "<2en>"]
    found = translator.translate_fully(lines, need_alignment=True, need_attention=True)
    for line, translation in zip(lines, found, strict=True):
        output = translation.outputs[0]
        assert output.attention is not None
        assert output.attention[0].source_pieces[0] == "<2en>"
        assert not {"<2de>", "<2en>"} & set(output.attention[0].target_pieces)
        assert all(0 <= source < len(alignment_tokens(line)) for source, _ in output.alignment or [])


def test_the_language_is_asked_for_by_name(both: Path, folder: Path) -> None:
    assert Translator.load(both, "cpu").direction.target == "de"
    with pytest.raises(UserError, match=r"to=fr: .*both translates into de or en only; give that, or a run"):
        Translator.load(both, "cpu", to="fr")
    loaded = load_run(both, torch.device("cpu"))
    one_way = load_file(both / "config.yaml")
    one_way.data.directions = type(one_way.data.directions)("forward")
    assert choose_direction(one_way, loaded.tokenizer, "de", both).tags == (loaded.tokenizer.tag_ids["<2de>"],)
    with pytest.raises(UserError, match="to=en: RUN translates into de only"):
        choose_direction(one_way, loaded.tokenizer, "en", "RUN")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "num_updates", "learning_rate"), [("transformer_tiny", 200, 0.003), ("lstm_small", 300, 0.005)]
)
def test_both_directions_are_learned(tmp_path: Path, model: str, num_updates: int, learning_rate: float) -> None:
    """Of sentences that were held out, but whose words have all been seen with others."""
    held_out = ANIMAL_PAIRS[::6]
    write_corpora(tmp_path, [pair for pair in ANIMAL_PAIRS if pair not in held_out], held_out, held_out)
    own = [
        option for option in settings(tmp_path) if not option.startswith(("model", "tokenizer.sampling", "trainer.ema"))
    ]
    limits = (f"trainer.max_updates={num_updates}", f"trainer.validate_every={num_updates}")
    others = (f"model={model}", "data.directions=both", f"optim.learning_rate={learning_rate}")
    train.run(configuration(*own, *limits, *others, f"run_dir={tmp_path / 'run'}"))
    scores = metrics(tmp_path / "run")["validation"]["directions"]
    assert all(scores[name]["bleu"] > 90 for name in ("en-de", "de-en")), scores


@pytest.mark.slow
def test_resuming_is_exact(both: Path, folder: Path) -> None:
    path = run(folder, "resumed", "data.directions=both", "trainer.max_updates=20")
    resume(path, "trainer.max_updates=40")
    first, second = (read_tensors(one / "model.safetensors", needs_checksum=True) for one in (both, path))
    newest = [sorted((one / "checkpoints").glob("step-*/model.safetensors"))[-1] for one in (both, path)]
    for one, other in ((first, second), tuple(read_tensors(file, needs_checksum=True) for file in newest)):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    figures = [{**metrics(one)["validation"], "seconds": 0} for one in (both, path)]
    assert figures[0] == figures[1]
    with pytest.raises(UserError, match=r"data\.directions: the run has both, now it would be forward"):
        resume(path, "trainer.max_updates=60", "data.directions=forward")


def test_a_run_starts_with_the_weights_and_the_loss_of_another(
    both: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before its first update, its validation loss is the one that the other run ended with."""
    config = configuration(*settings(folder, f"init_from={both}", "tokenizer.vocab_size=350"))
    config = with_initial_tokenizer(config)
    assert (config.tokenizer.vocab_size, config.tokenizer.sampling) == (400, 0.1)
    (warning,) = caplog.messages
    assert warning.endswith("with the tokenizer of that run, tokenizer.vocab_size=400 instead of 350")
    caplog.clear()
    data = prepare_data(config)
    torch.manual_seed(5)
    model = build_model(config.model, data.tokenizer.source_vocab_size, data.tokenizer.target_vocab_size)
    found = take_over_weights(config, model)
    assert found is not None
    assert (found.missing, found.of_other_shape, found.unused) == ([], [], [])
    theirs = read_tensors(both / "model.safetensors", needs_checksum=True)
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in collect_weights(model).items())
    validator = build_validator(config, data, model, CPU, Ranks())
    assert validator is not None
    assert validator(model).loss == pytest.approx(metrics(both)["validation"]["directions"]["en-de"]["loss"], abs=1e-9)
    (direction,) = directions_of(config, data.tokenizer)
    assert str(direction) == "en-de"
    assert direction.tags == (data.tokenizer.tag_ids["<2de>"],)  # what the weights know
    assert not [record for record in caplog.records if record.levelname == "WARNING"], "everything was taken over"


def test_options_of_the_tokenizer_that_nobody_has_given_are_replaced_without_a_word(
    both: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = configuration(*settings(folder, f"init_from={both}", "tokenizer.vocab_size=8000"))  # the default
    assert with_initial_tokenizer(config).tokenizer.vocab_size == 400
    assert not caplog.messages


def test_a_model_that_mostly_begins_at_random_is_warned_of(
    both: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    overrides = settings(folder, f"init_from={both}", "model.encoder_layers=9")
    config = with_initial_tokenizer(configuration(*overrides))
    take_over_weights(config, build_model(config.model, 400, 400))
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert warning.startswith(f"init_from={both}: most weights of this model begin at random; that run has model.")
    assert "model.encoder_layers=1" in warning


@pytest.mark.slow
def test_what_a_run_started_with_is_recorded_and_not_needed_for_resuming(both: Path, folder: Path) -> None:
    first = shutil.copytree(both, folder / "first")
    path = run(folder, "continued", f"init_from={first}", "trainer.max_updates=1", "trainer.validate_every=1")
    record = json.loads((path / "manifest.json").read_text(encoding="utf-8"))["init_from"]
    _, checksum = RunDirectory(first), load_run(first, torch.device("cpu")).weights_checksum
    assert record["weights_sha256"] == checksum
    assert load_file(path / "config.yaml").init_from == str(first)
    shutil.rmtree(first)
    resume(path, "trainer.max_updates=2")
    assert metrics(path)["num_updates"] == 2
    assert tokenizer_folder(load_file(path / "config.yaml")) is not None
    again = settings(folder, f"init_from={first}", f"run_dir={path}", "resume=auto", "trainer.validate_every=1")
    train.run(configuration(*again, "trainer.max_updates=3"))
    assert metrics(path)["num_updates"] == 3
    with pytest.raises(UserError, match=r"init_from: the run has .*, now it would be"):
        resume(path, "trainer.max_updates=3", f"init_from={both}")


def test_only_what_fits_is_taken_over(both: Path, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    overrides = settings(folder, f"init_from={both}", "model.encoder_layers=2", "model.feedforward_size=48")
    config = with_initial_tokenizer(configuration(*overrides))
    model = build_model(config.model, 400, 400)
    before = {name: tensor.clone() for name, tensor in collect_weights(model).items()}
    with caplog.at_level("INFO"):
        found = take_over_weights(config, model)
    assert found is not None
    after, theirs = collect_weights(model), read_tensors(both / "model.safetensors", needs_checksum=True)
    assert all(torch.equal(after[name], theirs[name]) for name in found.taken)
    assert all(torch.equal(after[name], before[name]) for name in after if name not in found.taken)
    assert any(name.startswith("encoder.1.") for name in found.missing)
    assert any("32×16 instead of 48×16" in name for name in found.of_other_shape)
    assert (
        f"{len(found.missing)} are initialised at random, because that run does not have them: encoder.1."
        in caplog.text
    )


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["init_from=nowhere"], "init_from=nowhere: no such directory"),
        (["init_from={both}", "data.source=de", "data.target=fr", "data.directions=both"], r"has no <2fr>"),
        (["data.directions=both", "tokenizer.joint=false", "model.tie_embeddings=none"], "set tokenizer.joint=true"),
        (["data.train_tags=[bt,bt]"], "data.train_tags=.*one tag, or null, for each of the 1 training corpora"),
        (["tokenizer.tags=[s]"], "tokenizer.tags=.*such as bt"),
        (["data.train_tags=[2de]"], "data.train_tags=.*2en and 2de name the language to translate into"),
        (["data.train=[null]"], "data.train=.*give one prefix or a list of them"),
        (["data.train=5"], "data.train=5: give one prefix or a list of them"),
    ],
)
def test_refusals(both: Path, folder: Path, overrides: list[str], message: str) -> None:
    for code in ("train", "valid", "test"):
        shutil.copy(folder / f"{code}.en", folder / f"{code}.fr")
    given = [override.format(both=both) for override in overrides]
    with pytest.raises(UserError, match=message):
        prepare_data(with_initial_tokenizer(configuration(*settings(folder, *given))))


def test_a_run_does_not_begin_from_whatever_is_the_latest(both: Path, folder: Path) -> None:
    point_latest(RunDirectory(both))
    config = configuration(*settings(folder, f"init_from={folder / 'latest'}", "resume=auto"))
    with pytest.raises(UserError, match=rf"latest: leads to another run .*; name the run itself, init_from={both}"):
        with_initial_tokenizer(config)


@pytest.mark.parametrize(
    ("languages", "is_refused"), [(("de", "en"), True), (("de", "fr"), True), (("en", "fr"), False)]
)
def test_vocabularies_of_one_language_each_do_not_change_sides(
    both: Path, folder: Path, tmp_path: Path, languages: tuple[str, str], is_refused: bool
) -> None:
    separate = shutil.copytree(both, tmp_path / "separate")
    theirs = load_file(separate / "config.yaml")
    theirs.data.directions, theirs.tokenizer.joint = "forward", False
    theirs.model.tie_embeddings = "target"
    save_file(theirs, separate / "config.yaml")
    source, target = languages
    given = [f"init_from={separate}", f"data.source={source}", f"data.target={target}", "model.tie_embeddings=target"]
    config = configuration(*settings(folder, *given))
    if is_refused:
        with pytest.raises(UserError, match="has a vocabulary for en and another for de"):
            with_initial_tokenizer(config)
    else:
        assert not with_initial_tokenizer(config).tokenizer.joint


def test_weights_of_another_architecture_are_refused(both: Path, folder: Path) -> None:
    config = configuration(*settings(folder, f"init_from={both}"))
    with pytest.raises(UserError, match="none of its weights fits this model; give the model options of that run"):
        take_over_weights(config, torch.nn.Linear(2, 3))  # type: ignore[arg-type]


def test_a_tagged_corpus(folder: Path) -> None:
    config = configuration(*settings(folder, "data.directions=both", "data.train_tags=[bt]"))
    data = prepare_data(config)
    ids = data.tokenizer.tag_ids
    assert [way[0].tags for way in data.ways] == [(ids["<2de>"], ids["<bt>"]), (ids["<2en>"], ids["<bt>"])]


def test_ctranslate2_translates_in_both_directions(both: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    from translator.export import ctranslate2

    run = shutil.copytree(both, tmp_path / "run")
    for to, side in (("de", 0), ("en", 1)):
        lines = [pair[side] for pair in ANIMAL_PAIRS[:6]]
        ours = Translator.load(run, "cpu", to=to)
        theirs = Translator.load(run, "cpu", to=to, engine="ctranslate2")
        assert theirs.translate(lines) == ours.translate(lines)
    loaded = load_run(run, torch.device("cpu"))
    ctranslate2.write(loaded, tmp_path / "exported")
    assert "pieces = ['<2de>'] + source.encode(" in ctranslate2.usage(loaded)
    export = partial(ctranslate2.translate, tmp_path / "exported", tags=["<2de>"])
    found = compare(loaded, make_sample(loaded, ANIMAL_PAIRS[:6], 6), export, SampleSearch(2))
    assert (found.num_equal + len(found.ties), found.differing) == (found.num_compared, [])
