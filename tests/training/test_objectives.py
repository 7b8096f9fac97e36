"""Objectives and metrics are named in the configuration; unknown names are refused before anything happens."""

import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics import CHRF

from translator import train
from translator.build.checks import check_config
from translator.evaluation.metrics import METRICS, Metric
from translator.schema.training import OptimConfig
from translator.training import objectives
from translator.training.objectives import build_loss, objective_names
from translator.training.objectives.cross_entropy import CrossEntropy

NEW_OBJECTIVE = """
from translator.training.objectives.cross_entropy import CrossEntropy

class Sharpened(CrossEntropy):
    pass

def build(options):
    return Sharpened(options.label_smoothing / 2)
"""


def test_a_new_objective_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sharpened.py").write_text(NEW_OBJECTIVE)
    monkeypatch.setattr(objectives, "__path__", [*objectives.__path__, str(tmp_path)])
    assert set(objective_names()) >= {"cross_entropy", "sharpened"}
    loss = build_loss(OptimConfig(loss="sharpened", label_smoothing=0.4))
    assert type(loss).__name__ == "Sharpened"
    assert isinstance(loss, CrossEntropy)
    assert loss.label_smoothing == 0.2
    sys.modules.pop("translator.training.objectives.sharpened")


def refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, list[int]]:
    """Exit code and message of `translator.train`, and the seeds of the runs it started."""
    started: list[int] = []
    monkeypatch.setattr(train, "run", lambda config: started.append(config.seed))
    monkeypatch.setattr(sys, "argv", ["train", *arguments])
    return train.main(), capsys.readouterr().err, started


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["trainer.best_metric=bleue"],
            "trainer.best_metric=bleue: not available; did you mean bleu?",
        ),
        (
            ["trainer.best_metric=ter"],
            "trainer.best_metric=ter: not available; choose one of loss, bleu, chrf, chrf_pp",
        ),
        (
            ["optim.loss=crossentropy"],
            "optim.loss=crossentropy: not available; did you mean cross_entropy?",
        ),
        (
            ["--multirun", "seed=1,2", "trainer.best_metric=loss,chrff"],
            "trainer.best_metric=chrff: not available; did you mean chrf?",
        ),
    ],
)
def test_unknown_names_are_refused_before_the_first_run(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(monkeypatch, capsys, *arguments) == (2, f"train: {message}\n", [])


def test_a_registered_metric_can_choose_the_best_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "chrf_1", Metric("chrF1", lambda language, references: CHRF(word_order=1)))
    configs = train.cli.main(lambda config: config, ["trainer.best_metric=chrf_1"], check=check_config)
    assert configs[0].trainer.best_metric == "chrf_1"


def test_the_configuration_itself_stays_light() -> None:
    code = "import sys, translator.config; sys.exit('torch' in sys.modules or 'sacrebleu' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
