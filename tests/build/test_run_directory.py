"""`resume=auto`: one command line that starts a run or continues it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from support.configurations import configuration
from translator.build.run_directory import continue_run, decide_resume, is_complete
from translator.config import Config, save_file
from translator.errors import UserError
from translator.runs.directory import RunDirectory
from translator.train_report import finished_outcome
from translator.training.distributed import Ranks


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make_run(name: str, config: Config, age: int = 0, is_finished: bool = False) -> RunDirectory:
    run = RunDirectory(Path("runs") / name)
    run.create(identity={}, details={})
    save_file(replace(config, resume=False), run.config)
    os.utime(run.manifest, (1_000_000 - age, 1_000_000 - age))
    if is_finished:
        run.metrics.write_text("{}")
    return run


def decide(config: Config) -> tuple[object, str | None]:
    decided = decide_resume(config, Ranks())
    assert replace(decided, resume=config.resume, run_dir=config.run_dir) == config
    return decided.resume, decided.run_dir


def test_auto_keeps_the_groups_and_starts_a_run_if_there_is_none() -> None:
    config = configuration("model=lstm_small", "experiment=smoke", "run_dir=runs/x", "resume=auto")
    assert config.resume == "auto"
    assert decide(config) == (False, "runs/x")
    assert decide(replace(config, run_dir=None)) == (False, None)


def test_auto_continues_the_run_in_run_dir() -> None:
    config = configuration("model=lstm_small", "run_dir=runs/x", "resume=auto")
    make_run("x", config)
    assert decide(config) == ("runs/x", "runs/x")


def test_auto_without_a_folder_continues_the_newest_unfinished_run_with_the_same_options() -> None:
    config = configuration("model=lstm_small", "resume=auto")
    make_run("finished", config, age=0, is_finished=True)
    make_run("another-model", configuration("model=transformer_tiny"), age=1)
    make_run("newest", config, age=2)
    make_run("older", config, age=3)
    damaged = make_run("damaged", config, age=1)
    damaged.config.write_text("model: [")
    assert decide(config) == ("runs/newest", "runs/newest")
    assert decide(replace(config, seed=7)) == (False, None)


def test_auto_ignores_a_run_that_another_process_is_training() -> None:
    config = configuration("model=lstm_small", "resume=auto")
    newest, _ = make_run("newest", config, age=1), make_run("older", config, age=2)
    with newest.locked():
        assert decide(config) == ("runs/older", "runs/older")


def test_processes_that_torchrun_starts_again_continue_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    config = configuration("model=lstm_small", "run_dir=runs/x")
    make_run("x", config)
    assert decide(config) == (False, "runs/x"), "the first attempt must not take over somebody's run"
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert decide(config) == ("runs/x", "runs/x")
    assert decide(replace(config, run_dir=None)) == ("runs/x", "runs/x")
    assert decide(replace(config, run_dir="runs/x", resume="runs/x")) == ("runs/x", "runs/x")


def test_the_first_rank_decides() -> None:
    class Second(Ranks):
        def gather(self, value: object) -> list[object]:
            assert value is None
            return ["runs/elsewhere", value]

    decided = decide_resume(configuration("resume=auto"), Second(1, 2))
    assert (decided.resume, decided.run_dir) == ("runs/elsewhere", "runs/elsewhere")


def test_a_run_is_complete_until_something_is_changed() -> None:
    config = configuration("model=lstm_small", "run_dir=runs/x", "resume=auto")
    run = make_run("x", config)
    assert not is_complete(config)
    run.metrics.write_text("{}")
    assert is_complete(config)
    assert not is_complete(replace(config, trainer=replace(config.trainer, max_updates=11)))


@pytest.mark.parametrize("content", ["", "{", "null", "[]"])
def test_damaged_metrics_are_named(content: str) -> None:
    config = configuration("model=lstm_small", "run_dir=runs/x", "resume=auto")
    make_run("x", config).metrics.write_text(content)
    with pytest.raises(UserError, match=r"runs/x/metrics\.json: damaged .* remove it"):
        is_complete(config)
    with pytest.raises(UserError, match=r"runs/x/metrics\.json: damaged"):
        finished_outcome(config)


def test_the_same_command_keeps_the_search_that_was_tuned_since() -> None:
    config = configuration("model=lstm_small", "run_dir=runs/x", "resume=auto")
    run = make_run("x", config, is_finished=True)
    save_file(replace(config, resume=False, decode=replace(config.decode, alpha=0.5, beam_size=3)), run.config)
    assert not is_complete(decide_resume(config, Ranks())), "edited by hand"
    run.tuning.write_text("{}")
    decided = decide_resume(config, Ranks())
    assert (decided.decode.alpha, decided.decode.beam_size) == (0.5, 3)
    assert is_complete(decided)


def test_results_of_earlier_weights_are_removed_when_training_continues() -> None:
    config = configuration("model=lstm_small", "run_dir=runs/x")
    run = make_run("x", config, is_finished=True)
    for path in run.results:
        path.touch()
    continue_run(config, run)
    assert [path.name for path in run.path.iterdir() if path in run.results] == []
    assert run.config.exists()
