"""`latest` beside the runs, which leads to the newest one.

It is a folder of links to what the run contains, except for its TensorBoard log. TensorBoard follows links, so a link
to the run itself would show it twice. Earlier versions made such a link, which is followed until the next run replaces
it.
"""

import contextlib
import logging
import os
import shutil
from pathlib import Path

from translator.errors import UserError
from translator.files.explain import explain_damage, reason
from translator.runs.directory import RunDirectory

logger = logging.getLogger(__name__)

NAME = "latest"
_ATTEMPTS = 10  # another run may be replacing `latest` at the same moment


def point_latest(run: RunDirectory) -> None:
    """Makes `latest` beside the run lead to it; where links cannot be made, it is a text file with the run's name."""
    latest = run.path.parent / NAME
    if run.path.name in ("", NAME):
        return  # the working directory itself, or somebody's own run of that name
    new, old = (latest.with_name(f".{NAME}-{os.getpid()}{suffix}") for suffix in ("", "-old"))
    try:
        _remove_abandoned(latest)
        if _is_a_run(latest):
            return  # somebody's own run of that name
        if others := _other_files(latest):
            logger.warning("%s: does not lead to this run, because %s is in it; move it away", latest, others[0])
            return
        try:
            _make_links(run, new)
        except OSError:
            _remove(new)
            new.write_text(run.path.name + "\n", encoding="utf-8")
        _replace(latest, new, old)
    except OSError as error:  # only a convenience, not worth failing the run
        logger.warning("%s: does not lead to this run (%s)", latest, reason(error))
    finally:
        with contextlib.suppress(OSError):
            _remove(new)
            _remove(old)


def resolve_run(path: Path) -> Path:
    """The run itself where the path is a `latest` that leads to it, and any other path as it is."""
    if name := _linked_run(path):
        return path.parent / name if path.name == NAME else path.resolve().parent / name
    if not (path.name == NAME and path.is_file()):
        return path
    with explain_damage(path, remedy="give the folder of the run instead"):
        name = path.read_text(encoding="utf-8").strip()
        if not name or not name.isprintable():
            raise ValueError("it names no run")
        return path.parent / name


def newest_run(folder: Path) -> Path:
    """The run that `latest` in the folder leads to."""
    latest = folder / NAME
    run = resolve_run(latest)
    if not RunDirectory(run).manifest.exists():
        raise UserError(f"resume=true: {latest} does not lead to a run; give the folder of the run, resume=DIR")
    return run.resolve()


def _linked_run(folder: Path) -> str:
    """The name of the run that a folder of links leads to, or nothing. Stores of files may use links of other kinds."""
    manifest = RunDirectory(folder).manifest
    try:
        target = manifest.readlink().parts
    except (OSError, ValueError):
        return ""
    return target[1] if len(target) == 3 and (target[0], target[2]) == ("..", manifest.name) else ""


def _is_a_run(path: Path) -> bool:
    return not path.is_symlink() and RunDirectory(path).manifest.exists() and not _linked_run(path)


def _other_files(folder: Path) -> list[str]:
    """What somebody has put into a folder of links, apart from the hidden files of file managers."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not (entry.is_symlink() or entry.name.startswith(".")))
    except FileNotFoundError:  # another run is replacing it at this moment
        return []


def _remove_abandoned(latest: Path) -> None:
    """Removes what processes that were killed while they replaced `latest` have left behind."""
    for path in latest.parent.glob(f".{NAME}-*"):
        owner = path.name.removeprefix(f".{NAME}-").removesuffix("-old")
        if owner.isdigit() and (int(owner) == os.getpid() or not _is_alive(int(owner))):
            _remove(path)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def _make_links(run: RunDirectory, folder: Path) -> None:
    """Also to what does not exist yet, such as the weights before the first validation."""
    folder.mkdir()
    for part in run.contents:
        (folder / part.name).symlink_to(Path("..") / run.path.name / part.name)


def _replace(latest: Path, new: Path, old: Path) -> None:
    """A folder cannot replace another one atomically; for a moment there is no `latest`."""
    for attempt in range(_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            latest.rename(old)
        try:
            new.rename(latest)
        except OSError:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            return
        _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)  # of links, which it does not follow
    else:
        path.unlink(missing_ok=True)
