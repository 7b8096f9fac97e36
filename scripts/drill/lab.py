"""Where drills take place: a small corpus, small models, the commands, and a record of what went wrong."""

import gc
import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import datasets
import torch

from drill.cases import LIMIT_SECONDS, Case, Disturbance, Ending, forked, fresh
from drill.commands import (
    WITH_REPORT,
    WITHOUT_REPORT,
    composed,
    prepare_command,
    train_command,
    translate_command,
)
from translator.runs.directory import RunDirectory
from translator.verify_resume.comparison import compare_runs

NUM_UPDATES = 16
LONG_AGO = 3_600  # seconds; files younger than a minute may still be in use
CONTINUED_UPDATES = 20  # of a finished run that is continued
SYLLABLES = ("ba", "kan", "to", "mir", "sel", "u", "lo", "den", "ri", "pas", "ge", "on")
SIZES = {"train": 240, "big": 9_000, "valid": 12, "test": 8}  # `big` is large enough for worker processes

_TRANSFORMER = [
    "model=transformer_tiny",
    "model.model_size=16",
    "model.feedforward_size=16",
    "model.num_heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
]
# The rate must not depend on the length of the run: one that is continued from an earlier checkpoint is then the same.
_CONSTANT = ["optim.schedule=constant", "optim.warmup_updates=2"]
_LSTM = ["model=lstm_small", "model.embedding_size=12", "model.hidden_size=12", "model.attention_size=12"]
VARIANTS = {
    "transformer": [*_TRANSFORMER, *_CONSTANT],
    "accumulating": [
        *(*_TRANSFORMER, "trainer.update_tokens=600", "trainer.average=best", "tokenizer.sampling=0.1"),
        WITH_REPORT,
    ],
    "lstm": [*_LSTM, "trainer.ema_decay=0.9", "trainer.average=last"],
}


def tiny_options(shared: Path, variant: str = "transformer", num_updates: int = NUM_UPDATES) -> list[str]:
    """A run of about a second: a few milliseconds per update, with frequent validations and checkpoints."""
    return [
        *VARIANTS[variant],
        *([] if WITH_REPORT in VARIANTS[variant] else [WITHOUT_REPORT]),
        "data=text",
        f"data.train={shared}/train",
        f"data.valid={shared}/valid",
        f"data.test={shared}/test",
        "data.cache_dir=cache",
        "data.num_processes=2",
        "tokenizer.byte_fallback=false",
        "tokenizer.vocab_size=64",
        "trainer.device=cpu",
        "trainer.threads=1",
        "trainer.batch_tokens=200",
        f"trainer.max_updates={num_updates}",
        "trainer.validate_every=6",
        "trainer.save_every=2",
        "trainer.log_every=1",
        "trainer.num_samples=0",
        "trainer.best_metric=loss",
        "decode=greedy",
        "decode.max_length_extra=4",
        "decode.max_length_ratio=1",
    ]


def write_corpus(folder: Path) -> None:
    """Numbered pairs of made-up sentences, so that a pair that does not belong together shows."""
    dice = random.Random(1)
    for split, count in SIZES.items():
        pairs = [_pair(f"{split[0]}{number}", dice) for number in range(count)]
        for side, language in enumerate(("en", "de")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
        rows = [json.dumps({"en": source, "de": target}) + "\n" for source, target in pairs]
        (folder / f"{split}.jsonl").write_text("".join(rows), encoding="utf-8")


def _pair(number: str, dice: random.Random) -> tuple[str, str]:
    words = ["".join(dice.choices(SYLLABLES, k=dice.randint(1, 3))) for _ in range(dice.randint(2, 9))]
    return f"{number} {' '.join(words)}", f"{number} {' '.join(word[::-1] for word in reversed(words))}"


@dataclass
class Lab:
    """One scenario of a drill: a folder of its own, dice of its own, and what was found."""

    shared: Path
    folder: Path
    dice: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    num_cases: int = 0

    def __post_init__(self) -> None:
        datasets.config.HF_DATASETS_CACHE = self.folder / "datasets"

    def start(self, work: Callable[[], int], environment: dict[str, str] | None = None) -> Case:
        self.num_cases += 1
        return forked(self.folder, f"case{self.num_cases}", work, environment)

    def start_fresh(self, *arguments: str) -> Case:
        self.num_cases += 1
        return fresh(self.folder, f"case{self.num_cases}", arguments)

    def run(
        self, work: Callable[[], int], disturbance: Disturbance | None = None, limit: float = LIMIT_SECONDS
    ) -> Ending:
        """Runs a case to its end; whatever no process may do is a problem at once."""
        return self.checked(self.start(work).wait(disturbance, limit))

    def checked(self, ending: Ending) -> Ending:
        if fault := ending.fault():
            self.problems.append(fault)
        return ending

    def require(self, condition: bool, problem: str, ending: Ending | None = None) -> bool:
        """Notes a problem unless the condition holds."""
        if not condition:
            said = f" (exit code {ending.code}, said: {ending.said.strip()[-300:]!r})" if ending else ""
            self.problems.append(problem + said)
        return condition

    def require_same_run(self, expected: Path, found: Path) -> bool:
        """Both runs must be equal bit for bit: checkpoints, curves, random numbers and final weights."""

        def compare() -> int:
            torch.set_num_threads(1)
            findings = compare_runs(RunDirectory(expected), RunDirectory(found))
            differences = [f"{finding.part}: {finding.difference}" for finding in findings if finding.difference]
            print("; ".join(differences))
            return len(differences)

        ending = self.start(compare).wait()
        return self.require(ending.code == 0, f"{found.name} is another run: {ending.wrote.decode()[:300]}", ending)

    def require_tidy(self, folder: Path) -> bool:
        """Nothing temporary may be left where a later process has completed the work."""
        patterns = (".tmp-*", ".*.tmp-*", ".latest-*", "*.partial", "*.partial.json")
        left = [str(path.relative_to(folder)) for pattern in patterns for path in folder.rglob(pattern)]
        return self.require(not left, f"left behind: {', '.join(left)}")

    def let_time_pass(self) -> None:
        """As if an hour had passed: only then is it certain that temporary files belong to nobody."""
        past = time.time() - LONG_AGO
        for path in self.folder.rglob(".*tmp-*"):
            os.utime(path, (past, past))

    def copy(self, source: Path, name: str) -> Path:
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)
        return target


def warm_up(shared: Path) -> None:
    """Imports what the commands import on first use, so that every fork has it already."""
    import sacrebleu  # noqa: F401
    import torch._dynamo  # noqa: F401

    import translator.plots.attention
    import translator.translate_files  # noqa: F401

    composed(tiny_options(shared), lambda config: 0)()  # Hydra's parser keeps its tables
    gc.collect()
    gc.freeze()  # otherwise every fork looks for garbage among all objects of all libraries, and so copies them


def build_references(shared: Path) -> None:
    """The corpus, and undisturbed results of every kind, with which disturbed ones are compared."""
    write_corpus(shared)
    warm_up(shared)
    for variant in VARIANTS:
        _reference(shared, variant, train_command([*tiny_options(shared, variant), "run_dir=run"]))
    _reference(shared, "prepared", prepare_command(big_options(shared)))
    lines = (shared / "valid.en").read_text(encoding="utf-8") * 40
    (shared / "input.txt").write_text(lines, encoding="utf-8")
    arguments = [str(shared / "input.txt"), "-o", "output.txt", "--model", str(shared / "transformer" / "run")]
    _reference(shared, "translated", translate_command(arguments))
    _reference(shared, "answers", translate_command([str(shared / "valid.en"), *arguments[-2:]]))
    ignored = shutil.ignore_patterns("reference.*")
    shutil.copytree(shared / "transformer", shared / "continued", symlinks=True, ignore=ignored)
    _reference(shared, "continued", train_command(["resume=run", f"trainer.max_updates={CONTINUED_UPDATES}"]))


def big_options(shared: Path) -> list[str]:
    """A corpus whose preparation takes as long as a training here, in several processes."""
    return [*tiny_options(shared), f"data.train={shared}/big"]


def _reference(shared: Path, name: str, work: Callable[[], int]) -> None:
    folder = shared / name
    folder.mkdir(exist_ok=True)
    ending = forked(folder, "reference", work).wait()
    if ending.code:
        raise RuntimeError(f"{name}: even undisturbed it failed, with exit code {ending.code}: {ending.said}")
    (folder / "seconds").write_text(str(ending.seconds), encoding="ascii")


def reference_seconds(shared: Path, name: str) -> float:
    """How long it took undisturbed."""
    return float((shared / name / "seconds").read_text(encoding="ascii"))
