"""SIGKILL at random moments of training, translation and preparation: continued, each ends as if undisturbed."""

import hashlib
import signal
from collections.abc import Callable
from pathlib import Path

from drill.cases import Case, Disturbance
from drill.commands import prepare_command, train_command, translate_command
from drill.lab import VARIANTS, Lab, big_options, reference_seconds, tiny_options

GOALS = {"kills": 300}
MOST_KILLS = 5  # of one piece of work
FRESH_EVERY = 24  # one in so many scenarios starts new processes, as a user does
IMPORT_SECONDS = 6.0  # of a new process, at most; the moment of the kill may be among them


def scenario(lab: Lab, number: int) -> None:
    kind = lab.dice.choices(["training", "translation", "preparation"], [6, 2, 2])[0]
    is_fresh = number % FRESH_EVERY == FRESH_EVERY - 1
    {"training": _training, "translation": _translation, "preparation": _preparation}[kind](lab, is_fresh)
    lab.require_tidy(lab.folder)


def _training(lab: Lab, is_fresh: bool) -> None:
    variant = lab.dice.choice(list(VARIANTS))
    arguments = [*tiny_options(lab.shared, variant), "run_dir=run", "resume=auto"]
    if is_fresh:
        start = lambda: lab.start_fresh("-m", "translator.train", *arguments)  # noqa: E731
    else:
        start = lambda: lab.start(train_command(arguments))  # noqa: E731
    if _killed_until_done(lab, start, reference_seconds(lab.shared, variant), is_fresh):
        lab.require_same_run(lab.shared / variant / "run", lab.folder / "run")


def _translation(lab: Lab, is_fresh: bool) -> None:
    model = str(lab.shared / "transformer" / "run")
    arguments = [str(lab.shared / "input.txt"), "-o", "output.txt", "--resume", "--model", model]
    if is_fresh:
        start = lambda: lab.start_fresh("-m", "translator.translate", *arguments)  # noqa: E731
    else:
        start = lambda: lab.start(translate_command(arguments))  # noqa: E731
    if _killed_until_done(lab, start, reference_seconds(lab.shared, "translated"), is_fresh):
        same = (lab.folder / "output.txt").read_bytes() == (lab.shared / "translated" / "output.txt").read_bytes()
        lab.require(same, "the translation differs from the undisturbed one")


def _preparation(lab: Lab, is_fresh: bool) -> None:
    """Only the cache counts: what training reads from it must be what an undisturbed preparation writes."""
    work = prepare_command(big_options(lab.shared))
    if _killed_until_done(lab, lambda: lab.start(work), reference_seconds(lab.shared, "prepared"), is_fresh=False):
        found, expected = digests(lab.folder / "cache"), digests(lab.shared / "prepared" / "cache")
        lab.require(found == expected, f"the cache differs in {sorted(set(found.items()) ^ set(expected.items()))}")


def _killed_until_done(lab: Lab, start: Callable[[], Case], seconds: float, is_fresh: bool) -> bool:
    """Starts it and kills it a few times, then lets it end; returns whether it did."""
    for _ in range(lab.dice.randint(2, MOST_KILLS)):
        moment = lab.dice.uniform(0, seconds + (IMPORT_SECONDS if is_fresh else 0))
        ending = lab.checked(start().wait(Disturbance(moment)))
        if ending.code == -signal.SIGKILL and ending.was_disturbed:
            lab.counts["kills"] += 1
            lab.counts["kills of new processes"] += is_fresh
            lab.let_time_pass()
        elif not lab.require(ending.code == 0, "it could not continue after a kill", ending):
            return False
    ending = lab.checked(start().wait())
    return lab.require(ending.code == 0, "it could not continue after a kill", ending)


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
