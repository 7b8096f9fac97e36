"""Fuzzed corpora in every format: refused in one line that names the file or option, or no pair is misaligned or lost.

Every sentence begins with the number of its pair, so that pairs that do not belong together show.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.parquet

from drill.commands import composed
from drill.lab import Lab, tiny_options
from drill.texts import BLANK, NASTY, sentence
from translator.build.data import prepare_data
from translator.config import Config

GOALS = {"corpora": 500}
FORMATS = ("text", "tsv", "csv", "json", "parquet")
MISALIGNED, LOST = 3, 4  # exit codes of the check
Pairs = list[tuple[Any, Any]]


def scenario(lab: Lab, number: int) -> None:
    lab.counts["corpora"] += 1
    dice, kind = lab.dice, FORMATS[number % len(FORMATS)]
    sentences = [sentence(dice) for _ in range(dice.choice([1, 5, 40, 120]))]
    pairs: Pairs = [(f"n{n} {text}", f"n{n} {text[::-1]} end") for n, text in enumerate(sentences)]
    harmed = _harm(pairs, dice)
    ordinary = [f"n{n}" for n in range(len(pairs)) if n not in harmed]
    options = _write_text(lab, pairs, kind) if kind in ("text", "tsv") else _write_columns(lab, pairs, kind)
    content_is_whole = _spoil_file(lab, kind)
    others = [option for option in tiny_options(lab.shared) if not option.startswith("data")]
    arguments = [*others, *options, "data.cache_dir=cache"]
    ending = lab.run(_check_command(arguments, ordinary if content_is_whole else []))
    if ending.fault():
        return
    if ending.code in (MISALIGNED, LOST):
        what = "misaligned" if ending.code == MISALIGNED else "lost"
        lab.require(False, f"{kind}: pairs {what}: {ending.wrote.decode(errors='replace')[:200]}")
    elif ending.code:
        refusal = ending.refusal() or ""
        names = ("train", "data.", "tokenizer.", "valid")
        lab.require(any(name in refusal for name in names), f"{kind}: not one line that names the file", ending)
        lab.counts["corpora refused"] += 1


def _harm(pairs: Pairs, dice: random.Random) -> set[int]:
    """Makes some of the sentences strange; returns which pairs."""
    harmed = set()
    for place, pair in enumerate(pairs):
        if dice.random() < 0.3:
            sides = list(pair)
            side = dice.randrange(2)
            strange = dice.choice(NASTY)
            text, huge = sides[side], f"n{place} " + "x" * 5_000
            sides[side] = dice.choice([f"{text} {strange}", f"{text}{strange}x", dice.choice(BLANK), strange, huge])
            pairs[place] = (sides[0], sides[1])
            harmed.add(place)
    return harmed


def _write_text(lab: Lab, pairs: Pairs, kind: str) -> list[str]:
    held_out = [f"data.valid={lab.shared}/valid", f"data.test={lab.shared}/test"]
    end = lab.dice.choice(["\n", "\n", "\r\n"])
    if kind == "tsv":
        lines = [f"{source}\t{target}{end}" for source, target in pairs]
        (lab.folder / "train.tsv").write_bytes("".join(lines).encode())
        return ["data=text", "data.train=train.tsv", *held_out]
    for side, language in enumerate(("en", "de")):
        (lab.folder / f"train.{language}").write_bytes("".join(pair[side] + end for pair in pairs).encode())
    return ["data=text", "data.train=train", *held_out]


def _write_columns(lab: Lab, pairs: Pairs, kind: str) -> list[str]:
    held_out: Pairs = [(f"v{n} {text}", f"v{n} {text[::-1]} end") for n, text in enumerate([sentence(lab.dice)] * 4)]
    write = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}[kind]
    for name, rows in (("train", pairs), ("validation", held_out)):
        write(lab.folder / f"{name}.{kind}", rows, lab.dice)
    files = f"{{train:train.{kind},validation:validation.{kind}}}"
    return ["data=hf", f"data.path={kind}", f"data.data_files={files}", "data.test_split=null"]


def _table(pairs: Pairs) -> pyarrow.Table:
    columns = [pyarrow.array([pair[side] for pair in pairs], pyarrow.string()) for side in (0, 1)]
    return pyarrow.table(columns, names=["en", "de"])


def _write_csv(path: Path, pairs: Pairs, dice: random.Random) -> None:
    pyarrow.csv.write_csv(_table(pairs), path)


def _write_parquet(path: Path, pairs: Pairs, dice: random.Random) -> None:
    pyarrow.parquet.write_table(_table(pairs), path)


def _write_json(path: Path, pairs: Pairs, dice: random.Random) -> None:
    rows = [json.dumps({"en": en, "de": de}, ensure_ascii=dice.random() < 0.5) for en, de in pairs]
    path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")


def _spoil_file(lab: Lab, kind: str) -> bool:
    """Damages the training file as a whole in one of four cases; returns whether it was left alone."""
    if lab.dice.random() < 0.75:
        return True
    path = next(path for path in sorted(lab.folder.iterdir()) if path.stem == "train" and path.suffix in _SUFFIXES)
    content = path.read_bytes()
    path.write_bytes(lab.dice.choice(_SPOILS)(content, lab.dice))
    return False


_SUFFIXES = (".en", ".de", ".tsv", ".csv", ".json", ".parquet")
_SPOILS: list[Callable[[bytes, random.Random], bytes]] = [
    lambda content, dice: b"",
    lambda content, dice: b"\n \n\t\n",
    lambda content, dice: b"\xef\xbb\xbf" + content,
    lambda content, dice: content[: dice.randrange(len(content) + 1)],
    lambda content, dice: content + b"n999 one line more\n",
    lambda content, dice: content + b"\xff\xfe\n",
    lambda content, dice: content.replace(b"\n", b"\r"),
    lambda content, dice: content.replace(b"n1", b"n1\x00", 1),
    lambda content, dice: content.replace(b'"n', b'"\\ud800n', 1),
    lambda content, dice: content.replace(b'"en"', b'"fr"', 1),
    lambda content, dice: content.decode("utf-8", "replace").encode("utf-16"),
    lambda content, dice: dice.randbytes(200),
    lambda content, dice: content + b'{"en": 3, "de": null}\n',
]


def _check_command(arguments: list[str], ordinary: list[str]) -> Callable[[], int]:
    """Prepares the data as `train` does and looks at the pairs that training would see."""

    def check(config: Config) -> int:
        data = prepare_data(config)
        pairs = [pair for corpus, _ in data.cleaned.train for pair in corpus]
        numbers = [[next(iter(side.split()), "") for side in pair] for pair in pairs]
        for source, target in numbers:
            are_numbers = all(one[:1] == "n" and one[1:].isdigit() for one in (source, target))
            if are_numbers and source != target:
                print(source, target)
                return MISALIGNED
        lost = set(ordinary) - {source for source, _ in numbers}
        print(*sorted(lost))
        return LOST if lost else 0

    return composed(arguments, check)
