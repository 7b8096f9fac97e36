"""Options with strange values, made from the schema: refused in one line that names the option, or they work.

An accepted value is tried in a run of one update; one that only asks for more work than there is time for (a million
sentences, a thousand layers) is taken as far as the checks before a run.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import Enum
from types import NoneType
from typing import Any, get_args, get_type_hints

from drill.commands import composed, whole_train_command, without_pictures
from drill.lab import Lab, tiny_options
from translator.config import SCHEMAS, RunOptions
from translator.schema.options import Declaration, Options, declaration

GOALS = {"options": 2_000}
PER_SCENARIO = 5
SHARE_TRAINED = 0.3  # the others are only checked, which takes a tenth of the time
MOST_WORK = 50  # a larger number may ask for hours of work
LONG_WORK = {"trainer.max_updates", "trainer.max_time", "trainer.compile"}
STRANGE = (
    *("inf", "-inf", "nan", "1e308", "-1e308", "1e-300", "0", "-0.0", "-1", "1", "0.5", "1e3", "0x10", "1_000"),
    *("2147483647", "2147483648", "-2147483649", "9223372036854775808", f"1{'0' * 400}", "1" * 5_000),
    *("", "''", '""', "' '", "???", "'???'", "null", "None", "true", "false", "yes", "[]", "[1,2]", "[a,b,c]", "[[1]]"),
    *(
        "{}",
        "{a:1}",
        "{a:{b:c}}",
        "'a b'",
        '"quoted"',
        "it's",
        "ä",
        "日本語",
        "🙂",
        "\u2028",
        "\udcff",
        "\\",
        "/",
        "..",
    ),
    *("/dev/null", "~", "*", "%s", "${seed}", "${oc.env:HOME}", "${nonsense}", "${", "$HOME", "=", "a=b", "a,b", "1,2"),
    *("@", "#x", "-", "--help", "!!python/object:os.system", "range(1,3)", "x" * 300, "\t", "\x1b[31m", "a\nb"),
)


@dataclass(frozen=True)
class Option:
    """A declared option, with the other options of a run in which it can be given."""

    name: str
    hint: Any
    declared: Declaration
    base: str  # transformer, lstm, demo or hf


def all_options() -> list[Option]:
    schemas = [(group, kind, schema) for group, kinds in SCHEMAS.items() for kind, schema in kinds.items()]
    found: dict[str, Option] = {}
    for group, kind, schema in [*schemas, ("", "", RunOptions)]:
        base = kind if kind in ("lstm", "demo", "hf") else "transformer"
        for option in _options_of(group, schema, base):
            found.setdefault(f"{base} {option.name}", option)
    return list(found.values())


def _options_of(prefix: str, schema: type[Options], base: str) -> Iterator[Option]:
    hints = get_type_hints(schema)
    for one in fields(schema):
        name = f"{prefix}.{one.name}" if prefix else one.name
        if isinstance(hints[one.name], type) and issubclass(hints[one.name], Options):
            yield from _options_of(name, hints[one.name], base)
        if "declaration" in one.metadata:
            yield Option(name, hints[one.name], declaration(one), base)


def value_for(option: Option, dice: random.Random) -> str:
    """Any strange text, a value at an edge of the range, or one that belongs there."""
    kinds: list[Callable[[Option, random.Random], str]] = [_strange, _strange, _edge, _fitting]
    return dice.choice(kinds)(option, dice)


def _strange(option: Option, dice: random.Random) -> str:
    return dice.choice(STRANGE)


def _edge(option: Option, dice: random.Random) -> str:
    declared = option.declared
    edges = [edge for edge in (declared.minimum, declared.above, declared.maximum, declared.below) if edge is not None]
    if not edges:
        return _fitting(option, dice)
    edge = dice.choice(edges)
    return str(dice.choice([edge, edge - 1, edge + 1, edge * (1 - 1e-9), edge * (1 + 1e-9), -edge]))


def _fitting(option: Option, dice: random.Random) -> str:
    hint = next((one for one in get_args(option.hint) if one is not NoneType), option.hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return str(dice.choice(list(hint)).value)
    if hint is bool:
        return dice.choice(["true", "false"])
    if hint in (int, float):
        low = option.declared.minimum or 0
        high = min(filter(None, (option.declared.maximum, option.declared.below, low + 100)))
        return str(dice.randint(int(low), int(high)) if hint is int else dice.uniform(low, high))
    return dice.choice(["a", "1", "[0.5,0.9]", "20m", "cpu", "en"])


def scenario(lab: Lab, number: int) -> None:
    options = all_options()
    for _ in range(PER_SCENARIO):
        option = lab.dice.choice(options)
        _try(lab, option, value_for(option, lab.dice))


def _try(lab: Lab, option: Option, value: str) -> None:
    argument = f"{option.name}={value}"
    arguments = [*_base(lab, option.base), argument]
    lab.counts["options"] += 1
    is_trained = not _is_long(option, value) and lab.dice.random() < SHARE_TRAINED
    if is_trained:  # it makes the same checks first
        place = [] if option.name == "run_dir" else [f"run_dir=run{lab.num_cases}"]
        ending = lab.run(_train([*arguments, *place]))
        lab.counts["options trained with"] += ending.code == 0
    else:
        ending = lab.run(composed(arguments, lambda config: 0))
    if ending.fault():
        lab.problems[-1] += f" ({argument[:200]!r} with {option.base})"
    elif ending.code:
        refusal = ending.refusal()
        # A value that only turns out to be wrong later is named by what was made of it, such as a file name.
        names = [option.name.rpartition(".")[2], f".{value}", *([value] if len(value) > 1 else [])]
        is_named = refusal is not None and any(name in refusal for name in names)
        what = "trained with" if is_trained else "checked"
        lab.require(is_named, f"{argument[:200]!r} {what}: not one line that names the option", ending)
    else:
        lab.counts["options accepted"] += 1


def _train(arguments: list[str]) -> Callable[[], int]:
    def work() -> int:
        without_pictures()
        return whole_train_command(arguments)()

    return work


def _base(lab: Lab, base: str) -> list[str]:
    options = tiny_options(lab.shared, "lstm" if base == "lstm" else "transformer", num_updates=1)
    if base not in ("demo", "hf"):
        return options
    others = [one for one in options if not one.startswith("data")]
    common = ["data.cache_dir=cache"]
    if base == "demo":
        sizes = ["data.num_train=80", "data.num_valid=5", "data.num_test=5"]
        return [*others, "data=demo", "data.folder=demo", "tokenizer.vocab_size=200", *sizes, *common]
    splits = {"train": "train", "validation": "valid", "test": "test"}
    files = ",".join(f"{split}:{lab.shared}/{file}.jsonl" for split, file in splits.items())
    return [*others, "data=hf", "data.path=json", f"data.data_files={{{files}}}", *common]


def _is_long(option: Option, value: str) -> bool:
    if option.name in LONG_WORK:
        return True
    try:
        is_large = float(value) > MOST_WORK
    except ValueError:
        return False
    is_work = option.name.partition(".")[0] in ("model", "decode") or option.name.startswith("data.num_")
    return is_large and is_work
