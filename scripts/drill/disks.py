"""Disks that are full or read-only: one line or training goes on, nothing is lost, and with room everything completes.

Root gets a small file system of its own, which a mount namespace takes away with the process. Others get the kernel's
limit on the size of files, which makes writes fail in the same way.
"""

import ctypes
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

from drill.cases import Ending
from drill.commands import train_command, translate_command
from drill.lab import Lab, tiny_options

GOALS = {"disks": 40}
_CLONE_NEWNS = 0x00020000
BIG = "size=64m"
FILE_LIMITS = (20_000, 60_000)  # bytes: more than the messages, which go to files too, and less than a checkpoint
SHARE_MOUNTED = 0.7  # where mounting is allowed
_state = {"is_private": False}


def scenario(lab: Lab, number: int) -> None:
    lab.counts["disks"] += 1
    place = lab.folder / "disk"
    place.mkdir()
    may_mount = lab.dice.random() < SHARE_MOUNTED and _can_mount()
    is_mounted = may_mount and _mount(place, f"size={4 * lab.dice.randint(1, 90)}k")
    work = [_train, _translate, _prepare][number % 3]
    is_read_only = is_mounted and lab.dice.random() < 0.25
    if is_read_only:
        _mount(place, "remount,ro")
    largest = None if is_mounted else lab.dice.randint(*FILE_LIMITS)
    lab.counts["small file systems" if is_mounted else "limits on files"] += 1
    try:
        work(lab, place, largest, lambda: not is_mounted or _mount(place, f"remount,rw,{BIG}"))
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)


def _train(lab: Lab, place: Path, largest: int | None, make_room: Callable[[], bool]) -> None:
    """The run on the small disk, the cache elsewhere."""
    arguments = [*tiny_options(lab.shared), f"run_dir={place}/run", "resume=auto"]
    ending = _run(lab, train_command(arguments), largest)
    if not _is_orderly(lab, ending, place):
        return
    published = place / "run" / "model.safetensors"
    if published.exists():  # what is published must be usable, full disk or not
        use = lab.run(translate_command([str(lab.shared / "valid.en"), "--model", str(place / "run")]))
        lab.require(use.code == 0, "the published model cannot be used", use)
    make_room()
    ending = lab.run(train_command(arguments))
    if lab.require(ending.code == 0, "with room it could not continue", ending):
        _require_same_weights(lab, place / "run")


def _translate(lab: Lab, place: Path, largest: int | None, make_room: Callable[[], bool]) -> None:
    arguments = [str(lab.shared / "input.txt"), "--model", str(lab.shared / "transformer" / "run"), "--resume"]
    command = translate_command([*arguments, "-o", str(place / "output.txt")])
    expected = (lab.shared / "translated" / "output.txt").read_bytes()
    ending = _run(lab, command, largest)
    if not _is_orderly(lab, ending, place):
        return
    if ending.code == 0:
        lab.require((place / "output.txt").read_bytes() == expected, "exit code 0, and another translation")
    make_room()
    ending = lab.run(command)
    if lab.require(ending.code == 0, "with room it could not continue", ending):
        lab.require((place / "output.txt").read_bytes() == expected, "the translation differs")


def _prepare(lab: Lab, place: Path, largest: int | None, make_room: Callable[[], bool]) -> None:
    """The cache on the small disk, the run elsewhere."""
    arguments = [*tiny_options(lab.shared), f"data.cache_dir={place}/cache", "run_dir=run", "resume=auto"]
    if not _is_orderly(lab, _run(lab, train_command(arguments), largest), place):
        return
    make_room()
    ending = lab.run(train_command(arguments))
    if not lab.require(ending.code == 0, "with room it could not continue", ending):
        return
    if largest is None:
        lab.require_same_run(lab.shared / "transformer" / "run", lab.folder / "run")
    else:  # the limit was one on the TensorBoard log too, which then ends
        _require_same_weights(lab, lab.folder / "run")


def _require_same_weights(lab: Lab, run: Path) -> None:
    weights = [folder / "model.safetensors" for folder in (run, lab.shared / "transformer" / "run")]
    lab.require(weights[0].read_bytes() == weights[1].read_bytes(), "the final weights are others")


def _run(lab: Lab, work: Callable[[], int], largest: int | None) -> Ending:
    def limited() -> int:
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
        return work()

    return lab.run(limited)


def _is_orderly(lab: Lab, ending: Ending, place: Path) -> bool:
    if ending.fault():
        return False
    if ending.code == 0:
        lab.counts["disks that sufficed"] += 1
        return True
    refusal = ending.refusal() or ""
    names = (place.name, "run_dir", "cache_dir", "checkpoints")  # a limit on files concerns all of them
    return lab.require(any(name in refusal for name in names), "not one line that names the place", ending)


def _can_mount() -> bool:
    """Whether this process may mount; its mounts are then its own and end with it."""
    if os.geteuid() != 0 or not Path("/proc/self/ns/mnt").exists():
        return False
    if not _state["is_private"]:
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
            return False
        private = subprocess.run(["mount", "--make-rprivate", "/"], check=False, capture_output=True)
        if private.returncode:
            return False
        _state["is_private"] = True
    return True


def _mount(place: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
