"""Two processes that train together, one of which is killed: the other says so and ends, and both can be resumed."""

import signal
import socket
from contextlib import suppress
from pathlib import Path

from drill.cases import Disturbance, Ending
from drill.commands import train_command
from drill.lab import Lab, tiny_options

GOALS = {"kills of one of two": 10}
LONGEST = 60.0  # seconds that the other one may take to notice
SECONDS_AFTER = 0.8  # once both are connected, up to the middle of training
RUN_SECONDS = 300.0


def scenario(lab: Lab, number: int) -> None:
    expected = lab.shared / "two"
    if not _undisturbed(lab, expected):
        return
    killed = lab.dice.randrange(2)
    # Both are connected once the first update is announced.
    endings = _run_two(lab, "run", killed, lab.dice.uniform(0, SECONDS_AFTER))
    other = endings[1 - killed]
    if endings[killed].code == -signal.SIGKILL:
        lab.counts["kills of one of two"] += 1
        lab.checked(other)
        lab.require(other.code not in (0, -signal.SIGKILL), "the other one did not notice", other)
        lab.require("rank" in other.said, "the other one does not say which is gone", other)
        lab.require(other.seconds <= endings[killed].seconds + LONGEST, f"noticed after {other.seconds:.0f} s", other)
    for ending in _run_two(lab, "run"):
        if not lab.require(ending.code == 0, "the two could not continue", ending):
            return
    lab.require_same_run(expected / "run", lab.folder / "run")


def _undisturbed(lab: Lab, expected: Path) -> bool:
    """Makes the run to compare with, unless another scenario has."""
    if (expected / "run").is_dir():
        return True
    endings = _run_two(lab, "alone")
    if lab.require(all(ending.code == 0 for ending in endings), "two undisturbed processes failed", endings[0]):
        expected.mkdir(exist_ok=True)
        with suppress(OSError):  # another scenario has made it meanwhile
            (lab.folder / "alone").rename(expected / "run")
        return True
    return False


def _run_two(lab: Lab, run: str, killed: int | None = None, moment: float = 0.0) -> list[Ending]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    work = train_command([*tiny_options(lab.shared), f"run_dir={run}", "resume=auto"])
    cases = [lab.start(work, {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(2)]
    if killed is None:
        return [lab.checked(case.wait(limit=RUN_SECONDS)) for case in cases]
    first = cases[0].paths[1]  # what the first rank says
    disturbance = Disturbance(moment, after="update 1 ", listen_to=first)
    dead = cases[killed].wait(disturbance, RUN_SECONDS)
    return sorted_by_rank(killed, dead, cases[1 - killed].wait(limit=RUN_SECONDS))


def sorted_by_rank(killed: int, dead: Ending, other: Ending) -> list[Ending]:
    return [dead, other] if killed == 0 else [other, dead]
