"""What a model card says."""

from dataclasses import replace
from pathlib import Path

import yaml

from support.exported_runs import make_run
from translator.config import Config, load_file
from translator.export.model_card import model_card
from translator.runs.directory import RunDirectory
from translator.schema.data import DemoDataConfig, HubDataConfig, TextDataConfig


def card(run: RunDirectory, config: Config) -> str:
    return model_card(
        run, config, target="onnx", usage="print(1)", packages="numpy", checks=["all equal"], license_id="mit"
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
