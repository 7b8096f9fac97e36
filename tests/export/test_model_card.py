"""What a model card says."""

import ast
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
import yaml

from support.exported_runs import make_run
from translator.config import Config, load_file
from translator.export import ctranslate2, huggingface, onnx
from translator.export.folder import save_sentencepiece
from translator.export.model_card import BY_PROGRAM, NORMALIZED_LINE, model_card
from translator.export.sample import MAX_LENGTH
from translator.ids import UNK
from translator.runs.directory import RunDirectory
from translator.runs.loading import load_run
from translator.schema.data import DemoDataConfig, HubDataConfig, TextDataConfig


def card(run: RunDirectory, config: Config) -> str:
    return model_card(
        run,
        config,
        target="onnx",
        usage="print(1)",
        normalization="Normalised.",
        packages="numpy",
        checks=["all equal"],
        license_id="mit",
    )


def test_a_card_has_front_matter_scores_and_data_but_no_folders_of_the_machine(tmp_path: Path) -> None:
    run = RunDirectory(make_run(tmp_path / "run", num_updates=0))
    config = load_file(run.config)
    text = card(run, config)
    front_matter = yaml.safe_load(text.split("---\n")[1])
    assert front_matter["language"] == ["en", "de"]
    assert (front_matter["license"], front_matter["library_name"]) == ("mit", "onnx")
    assert front_matter["pipeline_tag"] == "translation"
    assert "| validation | chrF | 56.78 |" in text
    assert "1,234 parameters" in text
    assert "- all equal" in text
    assert "```python\nprint(1)\n```" in text
    assert str(tmp_path) not in text
    for data, expected in (
        (DemoDataConfig(), "demo corpus"),
        (HubDataConfig(path="some/set", name="de-en"), "`some/set` (de-en)"),
        (TextDataConfig(train=["/secret/a", "/secret/b"], valid="v"), "`a`, `b`"),
    ):
        text = card(run, replace(config, data=data))
        assert expected in text
        assert "/secret" not in text


def test_a_run_that_has_not_finished_has_no_scores(tmp_path: Path) -> None:
    run = RunDirectory(make_run(tmp_path / "run", num_updates=0))
    run.metrics.unlink()
    assert "has no scores" in card(run, load_file(run.config))


@pytest.mark.parametrize("target", [ctranslate2, huggingface, onnx], ids=lambda target: target.__name__.split(".")[-1])
def test_programs_have_the_normalisation_of_the_run_and_the_length_limit_of_verification(
    target: ModuleType, tmp_path: Path
) -> None:
    run = load_run(make_run(tmp_path / "run", num_updates=0), torch.device("cpu"))
    assert run.config.data.cleaning.normalize
    raw = replace(run, config=without_normalization(run.config))
    program, plain = target.usage(run), target.usage(raw)
    for text in (program, plain):
        ast.parse(text)
        assert re.search(rf"max_(length|new_tokens|decoding_length)\W+{MAX_LENGTH}\b", text)
    assert "unicodedata" not in plain
    assert (NORMALIZED_LINE in program) == (target.NORMALIZATION == BY_PROGRAM)


def test_the_program_for_ctranslate2_drops_special_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load_run(make_run(tmp_path / "run", num_updates=0), torch.device("cpu"))
    save_sentencepiece(run.tokenizer, tmp_path)
    pieces = run.tokenizer.target_pieces([*run.tokenizer.encode_target(["Haus"])[0], UNK])
    found = SimpleNamespace(hypotheses=[pieces])
    engine = SimpleNamespace(translate_batch=lambda lines, **options: [found])
    monkeypatch.setattr(ctranslate2.ctranslate2, "Translator", lambda folder: engine)
    exec(ctranslate2.usage(run).replace("FOLDER", str(tmp_path)), {})
    assert capsys.readouterr().out == "Haus\n"


def test_the_card_mentions_normalisation_only_if_the_run_normalises(tmp_path: Path) -> None:
    run = RunDirectory(make_run(tmp_path / "run", num_updates=0))
    config = load_file(run.config)
    assert "Normalised." in card(run, config)
    assert "Normalised." not in card(run, without_normalization(config))


def without_normalization(config: Config) -> Config:
    return replace(config, data=replace(config.data, cleaning=replace(config.data.cleaning, normalize=False)))
