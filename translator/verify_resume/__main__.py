"""Proves that a killed and resumed run ends exactly like one left alone: `python -m translator.verify_resume --help`.

The configuration is trained for a few updates in a temporary folder, once without interruption and once killed
(SIGKILL) at several random moments and resumed; then everything that the two runs left behind is compared bit for bit.
"""

import argparse
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from translator import cli, train
from translator.build.checks import check_config
from translator.command import EXIT_USER_ERROR, exit_code, positive
from translator.config import Config
from translator.devices import choose_device
from translator.errors import UserError
from translator.runs.directory import RunDirectory
from translator.training.monitor import format_seconds
from translator.verify_resume.comparison import Finding, compare_runs

NAME = "verify_resume"
EXIT_DIFFERENT = 1
NUM_HELD_OUT = 8  # sentences of the validation set
_TRAIN_BRIEFLY = f"import sys; from translator.{NAME}.__main__ import train_briefly; sys.exit(train_briefly())"


@dataclass(frozen=True)
class Attempt:
    """One process of a run, from its start until it ended or was killed."""

    updates: list[int]  # that it reported
    was_killed: bool
    seconds: float
    seconds_per_update: float

    @property
    def origin(self) -> str:
        return f"from update {self.updates[0] - 1}" if self.updates else "from the last update"


def main() -> int:
    return exit_code(NAME, run)


def train_briefly() -> int:
    """What each process does: trains as `translator.train` does, but validates on a few sentences only."""

    def job(config: Config) -> int:
        return train.run(config, num_held_out=NUM_HELD_OUT).exit_code

    return exit_code(NAME, lambda: max(cli.main(job, check=check_config)))


def run() -> int:
    options, overrides = _parse_arguments()
    config = _check(overrides)
    if config is None:  # an informational flag such as --cfg job, already answered
        return 0
    if options.kills >= options.updates:
        raise UserError(f"--kills {options.kills}: must be less than --updates {options.updates}")
    device = choose_device(config.trainer.device).type
    print(f"{config.model.kind}, {options.updates} updates on {device}, killed {options.kills} times", flush=True)
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as folder:
        runs = [RunDirectory(Path(folder) / name) for name in ("alone", "killed", "again")]
        brief = [*overrides, *_brief_options(options.updates)]
        alone = _attempt([*brief, f"run_dir='{runs[0].path}'"])
        print(f"  left alone: {options.updates} updates in {format_seconds(alone.seconds)}", flush=True)
        _kill_and_resume(brief, runs[1].path, options, alone.seconds_per_update)
        findings = compare_runs(runs[0], runs[1])
        print(f"\n{table(findings)}\n", flush=True)
        if not any(finding.difference for finding in findings):
            print("Identical bit for bit: resuming changed nothing.")
            return 0
        _attempt([*brief, f"run_dir='{runs[2].path}'"])
        is_repeatable = not any(finding.difference for finding in compare_runs(runs[0], runs[2]))
    print(_explain(is_repeatable, device))
    return EXIT_DIFFERENT


# ---- the command line ----


def _parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog=f"python -m translator.{NAME}",
        description=__doc__,
        epilog="All other arguments are those of translator.train. The folder is created in TMPDIR and removed.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [--updates N] [--kills N] [--seed N] [NAME=VALUE …]",
        allow_abbrev=False,
    )
    parser.add_argument("--updates", type=positive, default=12, help="length of the run (default: %(default)s)")
    parser.add_argument("--kills", type=positive, default=3, help="how often it is killed (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="for the times of the kills (default: a new one, which is shown)")
    return parser.parse_known_args()


def _check(overrides: Sequence[str]) -> Config | None:
    """The configuration, refused where `translator.train` would refuse it; None after a flag such as --cfg."""
    if {"-m", "--multirun"} & set(overrides):
        raise UserError("--multirun: one configuration is verified at a time")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError("torchrun: only a single process can be verified; start it without torchrun")
    configs: list[Config] = []
    cli.main(configs.append, overrides, check=check_config)
    for config in configs:
        if config.resume or config.run_dir:
            name = "resume" if config.resume else "run_dir"
            raise UserError(f"{name}={getattr(config, name)}: a temporary folder is used; leave it out")
    return configs[0] if configs else None


def _brief_options(num_updates: int) -> list[str]:
    """The options of a short run, without the limits that depend on time or on scores."""
    own = {
        "max_updates": num_updates,
        "max_epochs": 0,
        "max_time": "null",
        "patience": 0,
        "validate_every": max(1, num_updates // 2),
        "save_every": max(1, num_updates // 4),
        "log_every": 1,
        "keep_best": 1,
        "keep_last": 2,
        "num_samples": 0,
    }
    return [f"trainer.{name}={value}" for name, value in own.items()]


# ---- running, killing, resuming ----


def _kill_and_resume(brief: list[str], path: Path, options: argparse.Namespace, seconds_per_update: float) -> None:
    """The run in as many processes as it takes; prints where each was killed and where the next one went on."""
    seed = random.randrange(10_000) if options.seed is None else options.seed
    dice = random.Random(seed)
    moments = sorted(dice.sample(range(1, options.updates), options.kills))
    print(f"  to be killed after updates {', '.join(map(str, moments))} (--seed {seed})", flush=True)
    arguments = [*brief, f"run_dir='{path}'"]
    for moment in moments:
        # Somewhere in the update that follows, or in what comes with it: a checkpoint, a validation.
        delay = dice.random() * seconds_per_update
        attempt = _attempt(arguments, kill_after=moment, delay=delay)
        if not attempt.was_killed:
            print(f"  {attempt.origin}: to the end, before it could be killed", flush=True)
            return
        print(f"  {attempt.origin}: killed {delay:.3f}s after update {moment} was reported", flush=True)
        arguments = [f"resume='{path}'"]
    print(f"  {_attempt(arguments).origin}: to the end", flush=True)


def _attempt(arguments: list[str], kill_after: int | None = None, delay: float = 0.0) -> Attempt:
    """Trains in a process of its own; with `kill_after` it is killed so long after it reported that update."""
    command = [sys.executable, "-c", _TRAIN_BRIEFLY, *arguments]
    lines: list[str] = []
    updates: list[int] = []
    times: list[float] = []
    started = time.monotonic()
    was_asked_to_die = False
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                lines.append(line)
                if report := re.match(r"update (\d+) ", line):
                    updates.append(int(report[1]))
                    times.append(time.monotonic())
                    if kill_after is not None and updates[-1] >= kill_after and not was_asked_to_die:
                        time.sleep(delay)
                        process.kill()
                        was_asked_to_die = True
        finally:
            process.kill()
    was_killed = was_asked_to_die and process.returncode == -signal.SIGKILL
    if process.returncode and not was_killed:
        _fail(process.returncode, lines)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return Attempt(updates, was_killed, time.monotonic() - started, statistics.median(gaps or [0.0]))


def _fail(code: int, lines: list[str]) -> None:
    """A run that ended by itself has said why."""
    said = [number for number, line in enumerate(lines) if line.startswith(f"{NAME}: ")]
    if code == EXIT_USER_ERROR and said:
        raise UserError("".join(lines[said[0] :]).removeprefix(f"{NAME}: ").strip())
    raise UserError(f"training failed with exit code {code}:\n{''.join(lines).strip()}")


# ---- the result ----


def table(findings: Sequence[Finding]) -> str:
    rows = [(finding.part, finding.extent, finding.difference or "equal") for finding in findings]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"  {part:<{widths[0]}}  {extent:<{widths[1]}}  {result}" for part, extent, result in rows)


def _explain(is_repeatable: bool, device: str) -> str:
    if is_repeatable:
        return (
            "NOT the same, though a second run that was left alone was. The difference comes from resuming: please"
            " report it with the lines above."
        )
    reason = (
        "this processor's arithmetic is not repeatable; trainer.threads=1 may help"
        if device == "cpu"
        else f"some kernels of {device} add in an order of their own, so equal bits are promised on the CPU only"
        " (verify with trainer.device=cpu)"
    )
    return f"NOT the same, but two runs that were left alone differ as well: {reason}."


if __name__ == "__main__":
    # As with Ctrl-C, end the training process and remove the folder.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    sys.exit(main())
