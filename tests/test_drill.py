"""The drills notice what they are for, and a short form of all of them finds nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from drill import cases, texts
from drill.cases import Case, Disturbance, Ending
from drill.commands import composed
from drill.damages import DAMAGES
from drill.lab import Lab
from drill.lanes import Finding, Lanes, counts_of
from drill.options import all_options, value_for
from support.processes import REPOSITORY, environment
from translator.config import SCHEMAS


def started(folder: Path, program: str) -> Case:
    return cases.fresh(folder, "case", ["-c", program])


def ending(code: int = 0, said: str = "") -> Ending:
    return Ending(code, said, b"", 1.0)


def test_a_case_ends_with_its_exit_code_and_its_messages(tmp_path: Path) -> None:
    found = started(tmp_path, "import sys; print('out'); print('train: a: b', file=sys.stderr); sys.exit(2)").wait()
    assert (found.code, found.wrote, found.refusal(), found.fault()) == (2, b"out\n", "a: b", "")
    assert not found.was_disturbed


def test_a_case_is_killed_after_it_has_said_something(tmp_path: Path) -> None:
    program = "import sys, time; print('now', file=sys.stderr, flush=True); time.sleep(60)"
    found = started(tmp_path, program).wait(Disturbance(0.0, signal.SIGKILL, "now"))
    assert found.code == -signal.SIGKILL
    assert found.was_disturbed
    assert found.said == "now\n"


def test_a_case_that_hangs_and_workers_that_stay_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "LEFTOVER_SECONDS", 0.2)
    program = "import os, time; os.fork(); time.sleep(60)"
    found = started(tmp_path, program).wait(limit=1.0)
    assert found.is_hung
    assert found.num_leftovers == 1
    assert "still running" in found.fault()
    found = started(tmp_path, "import os, time; os.fork() or time.sleep(60)").wait()
    assert found.code == 0
    assert found.fault() == "1 worker processes left behind"


@pytest.mark.parametrize(
    ("code", "said", "refusal"),
    [
        (2, "cleaning\ntrain: run_dir=a: is a file\n", "run_dir=a: is a file"),
        (1, "train: run_dir=a: is a file\n", None),
        (2, "", None),
        (2, "train: one line\nand another\n", None),
        (2, "train: one line\ntrain: and another\n", None),
    ],
)
def test_a_refusal_is_one_line_at_the_end(code: int, said: str, refusal: str | None) -> None:
    assert ending(code, said).refusal() == refusal


def test_a_traceback_is_a_fault() -> None:
    assert ending(1, "Traceback (most recent call last):\n …\nValueError: a\n").fault() == "traceback: ValueError: a"
    assert ending(1, "nothing of the kind").fault() == ""


def make_lab(folder: Path) -> Lab:
    return Lab(folder, folder, random.Random(1))


def test_what_is_left_behind_is_a_problem(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    assert lab.require_tidy(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".config.yaml.tmp-17").touch()
    assert not lab.require_tidy(tmp_path)
    assert lab.problems == ["left behind: run/.config.yaml.tmp-17"]


def test_time_passes_for_temporary_files_only(tmp_path: Path) -> None:
    for name in (".tmp-table-a", "table-a"):
        (tmp_path / name).touch()
    make_lab(tmp_path).let_time_pass()
    now = time.time()
    assert (tmp_path / ".tmp-table-a").stat().st_mtime < now - 3_000 < (tmp_path / "table-a").stat().st_mtime


def test_options_of_all_groups_get_values() -> None:
    options, dice = all_options(), random.Random(1)
    groups = {option.name.partition(".")[0] for option in options}
    assert {*SCHEMAS, "seed", "run_dir", "resume"} <= groups
    assert "data.cleaning.max_ratio" in [option.name for option in options]
    layers = next(option for option in options if option.name == "model.encoder_layers")
    values = {value_for(layers, dice) for _ in range(300)}
    assert {"0", "1", "nan", "???"} < values


@pytest.mark.parametrize("name", DAMAGES)
def test_every_damage_changes_the_file(name: str) -> None:
    content = bytes(range(1, 256)) * 4
    assert all(DAMAGES[name](content, random.Random(seed)) != content for seed in range(20))
    DAMAGES[name](b"", random.Random(1))  # an empty file has nothing to damage


def test_nasty_lines_are_single_lines_that_can_be_written() -> None:
    lines = [texts.nasty_line(random.Random(seed)) for seed in range(2_000)]
    assert all("\n" not in line and line.encode() for line in lines if line)
    assert "" in lines
    assert all(any(nasty in line for line in lines) for nasty in texts.NASTY)


def part(name: str, per_scenario: int, problem: str = "") -> ModuleType:
    """A part whose scenarios write their random numbers down and do nothing."""
    module = ModuleType(name)

    def scenario(lab: Lab, number: int) -> None:
        lab.counts["cases"] += per_scenario
        lab.counts["sum"] += number * lab.dice.randrange(100)
        if problem and number == 1:
            lab.problems.append(problem)

    module.scenario = scenario  # type: ignore[attr-defined]
    return module


def run_lanes(folder: Path, seconds: float = 60.0, scenario: int | None = None) -> list[Finding]:
    parts = {"few": part("few", 5), "many": part("many", 2, "it went wrong")}
    goals = {"few": {"cases": 20}, "many": {"cases": 40}}
    folder.mkdir()
    return Lanes(parts, goals, 7, folder, time.monotonic() + seconds, 2, scenario).run(lambda found: None)


def test_lanes_bring_all_parts_to_their_goals_together(tmp_path: Path) -> None:
    found = run_lanes(tmp_path / "a")
    assert counts_of(found, "few")["cases"] == 20
    assert counts_of(found, "many")["cases"] == 40
    assert [(one["part"], one["problems"]) for one in found if one["problems"]] == [("many", ["it went wrong"])]
    for lane in (0, 1):  # at any moment both parts are about equally far
        own = [one["part"] for one in found if one["scenario"] % 2 == lane]
        assert own == 2 * ["few", *5 * ["many"]]
    sums = {(one["part"], one["scenario"]): one["counts"]["sum"] for one in found}
    assert sums == {(one["part"], one["scenario"]): one["counts"]["sum"] for one in run_lanes(tmp_path / "b")}
    (again,) = run_lanes(tmp_path / "c", scenario=3)
    assert again["counts"]["sum"] == sums["few", 3], "one scenario can be repeated"


def test_lanes_begin_nothing_after_the_deadline(tmp_path: Path) -> None:
    assert run_lanes(tmp_path / "a", seconds=-1.0) == []


def test_work_with_a_configuration_has_the_exit_codes_of_train(capfd: pytest.CaptureFixture[str]) -> None:
    assert composed(["seed=7"], lambda config: config.seed)() == 7
    assert composed(["seed=7"], lambda config: None)() == 0
    assert composed(["seed=x"], lambda config: 0)() == 2
    assert capfd.readouterr().err.startswith("train: seed=x: ")


@pytest.mark.slow
def test_a_short_drill_of_every_kind_finds_nothing() -> None:
    variables = environment(OMP_NUM_THREADS="1")
    variables["PYTHONPATH"] += os.pathsep + str(REPOSITORY / "scripts")
    command = [sys.executable, "-m", "drill", "--scale", "0.02", "--minutes", "30"]
    done = subprocess.run(command, env=variables, cwd=REPOSITORY, capture_output=True, text=True, timeout=2_400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, undetected, hung or crashed" in done.stdout
