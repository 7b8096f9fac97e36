"""Stop signals at random moments of a run: the conventional exit code, soon, and resuming ends as if none had come."""

import signal

from drill.cases import Disturbance, Ending
from drill.commands import train_command
from drill.lab import NUM_UPDATES, VARIANTS, Lab, reference_seconds, tiny_options

GOALS = {"signals": 120}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
LONGEST = 10.0  # seconds from the signal to the end of the process
MOST_STOPS = 3  # of one run
# What a run says when it begins to train, before a validation, and before its last validation, choice and test.
MOMENTS = ("", "parameters", "update 6 ", f"update {NUM_UPDATES} ")
SECONDS_AFTER = 0.5


def scenario(lab: Lab, number: int) -> None:
    variant = lab.dice.choice(list(VARIANTS))
    work = train_command([*tiny_options(lab.shared, variant), "run_dir=run", "resume=auto"])
    for _ in range(lab.dice.randint(1, MOST_STOPS)):
        one, moment = lab.dice.choice(SIGNALS), lab.dice.choice(MOMENTS)
        seconds = lab.dice.uniform(0, SECONDS_AFTER if moment else reference_seconds(lab.shared, variant))
        ending = lab.run(work, Disturbance(seconds, one, moment))
        if ending.was_disturbed:
            lab.counts["signals"] += 1
            _check(lab, ending, one)
            lab.let_time_pass()
    ending = lab.run(work)
    if lab.require(ending.code == 0, "it could not continue after a signal", ending):
        lab.require_same_run(lab.shared / variant / "run", lab.folder / "run")
        lab.require((lab.folder / "run" / "metrics.json").exists(), "the test set was never scored")
        lab.require_tidy(lab.folder)


def _check(lab: Lab, ending: Ending, number: signal.Signals) -> None:
    """Where nothing has to be saved, before the first update and after everything is done, it may just end."""
    seconds = ending.seconds_after_disturbance or 0.0
    lab.require(seconds <= LONGEST, f"{seconds:.1f} s from {number.name} to the end", ending)
    is_training = "update " in ending.said and "all figures" not in ending.said + ending.wrote.decode()
    allowed = {128 + number} | (set() if is_training else {0, -number})
    lab.require(ending.code in allowed, f"{number.name}: exit code is not {128 + number}", ending)
    if is_training and ending.code == 128 + number:
        lab.require(f"stopped by {number.name}" in ending.said, f"{number.name}: no message about it", ending)
