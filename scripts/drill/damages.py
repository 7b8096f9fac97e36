"""Every file of a run and of the cache, damaged in every way: noticed and named, or the result is the undamaged one's.

A file that is not needed, is rebuilt, or is passed over for an older one may be damaged without harm. Another result
with exit code 0, a traceback, or a refusal that does not name the file is a problem.
"""

import pickle
import random
from collections.abc import Callable
from pathlib import Path

from drill.cases import Ending
from drill.commands import train_command, translate_command
from drill.lab import CONTINUED_UPDATES, Lab, tiny_options

GOALS = {"damages": 500}
SHARE_OF_IMPORTANT_FILES = 0.8
Damage = Callable[[bytes, random.Random], bytes | None]  # None: the file is gone


def _flip(content: bytes, dice: random.Random, count: int = 1) -> bytes:
    changed = bytearray(content)
    for place in dice.sample(range(len(changed)), min(count, len(changed))):
        changed[place] ^= 1 << dice.randrange(8)
    return bytes(changed)


def _zero_block(content: bytes, dice: random.Random) -> bytes:
    start = dice.randrange(len(content) + 1)
    length = min(len(content) - start, 512)
    return content[:start] + bytes(length) + content[start + length :]


DAMAGES: dict[str, Damage] = {
    "one bit flipped": _flip,
    "five bits flipped": lambda content, dice: _flip(content, dice, 5),
    "cut off": lambda content, dice: content[: dice.randrange(len(content) or 1)],
    "last byte missing": lambda content, dice: content[:-1],
    "first half missing": lambda content, dice: content[len(content) // 2 :],
    "emptied": lambda content, dice: b"",
    "zeros": lambda content, dice: bytes(len(content)),
    "a block of zeros": _zero_block,
    "random bytes": lambda content, dice: dice.randbytes(len(content)),
    "bytes appended": lambda content, dice: content + dice.randbytes(dice.randint(1, 99)),
    "twice": lambda content, dice: content + content,
    "JSON of another kind": lambda content, dice: dice.choice([b"{}", b"[]", b"null", b"3", b'"a"', b'{"a": NaN}']),
    "a pickle": lambda content, dice: pickle.dumps({"weights": [1.0, 2.0]}),
    "text": lambda content, dice: "not what you expect\nüöä \u2028\n".encode(),
    "invalid UTF-8": lambda content, dice: b"\xff\xfe" + content,
    "deleted": lambda content, dice: None,
}


def scenario(lab: Lab, number: int) -> None:
    run, cache = (lab.copy(lab.shared / "transformer" / name, name) for name in ("run", "cache"))
    files = sorted(path for folder in (run, cache) for path in folder.rglob("*") if path.is_file())
    victim = _victim(lab, files)
    content = victim.read_bytes()
    name = lab.dice.choice([*DAMAGES, "another file"])
    damaged = lab.dice.choice(files).read_bytes() if name == "another file" else DAMAGES[name](content, lab.dice)
    if damaged is None:
        victim.unlink()
    else:
        victim.write_bytes(damaged)
    if victim.is_relative_to(cache):
        use = _train_anew
    elif victim.is_relative_to(run / "checkpoints") or victim.is_relative_to(run / "tensorboard"):
        use = _resume
    else:
        use = lab.dice.choice([_resume, _translate])
    ending, is_same = use(lab)
    lab.counts["damages"] += 1
    what = f"{victim.relative_to(lab.folder)}: {name}, then {use.__name__.strip('_')}"
    if ending.fault():
        lab.problems[-1] += f" ({what})"
    elif ending.code == 0:
        lab.counts["damages without effect"] += is_same
        lab.require(is_same, f"{what}: a different result, silently", ending)
    else:
        refusal = ending.refusal()
        names = [victim.name, *(folder.name for folder in victim.relative_to(lab.folder).parents if folder.name)]
        is_named = refusal is not None and any(name in refusal for name in names if name not in ("run", "cache"))
        lab.require(is_named, f"{what}: not one line that names it", ending)


def _victim(lab: Lab, files: list[Path]) -> Path:
    """Any file, but most of them are in checkpoints that are only needed when the newest one is damaged."""
    newest = max(path.parent.name for path in files if path.parent.parent.name == "checkpoints")
    important = [path for path in files if "checkpoints" not in path.parts or path.parent.name == newest]
    return lab.dice.choice(important if lab.dice.random() < SHARE_OF_IMPORTANT_FILES else files)


def _translate(lab: Lab) -> tuple[Ending, bool]:
    ending = lab.run(translate_command([str(lab.shared / "valid.en"), "--model", "run"]))
    return ending, ending.wrote == (lab.shared / "answers" / "reference.out").read_bytes()


def _resume(lab: Lab) -> tuple[Ending, bool]:
    ending = lab.run(train_command(["resume=run", f"trainer.max_updates={CONTINUED_UPDATES}"]))
    return ending, _same_weights(lab.folder / "run", lab.shared / "continued" / "run")


def _train_anew(lab: Lab) -> tuple[Ending, bool]:
    ending = lab.run(train_command([*tiny_options(lab.shared), "run_dir=new"]))
    return ending, _same_weights(lab.folder / "new", lab.shared / "transformer" / "run")


def _same_weights(first: Path, second: Path) -> bool:
    paths = [run / "model.safetensors" for run in (first, second)]
    return all(path.is_file() for path in paths) and paths[0].read_bytes() == paths[1].read_bytes()
