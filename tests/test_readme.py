"""The README section on using your own corpus, followed literally on a small one."""

import re
import runpy
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest

from translator import cli, train
from translator.demo import generate

REPOSITORY = Path(__file__).parents[1]
SMALL = ["model=transformer_tiny", "model.encoder_layers=1", "model.decoder_layers=1", "model.model_size=32"]
QUICK = [
    *("trainer=smoke", "trainer.max_updates=2", "trainer.num_samples=0", "trainer.report=false"),
    *("decode=greedy", "tokenizer.vocab_size=500"),
]
LANGUAGES = {"en": "english", "de": "german"}


def section() -> str:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^## Your own corpus\n(.*?)^## ", text, flags=re.MULTILINE | re.DOTALL)
    return str(found)


def commands(*start: str) -> list[list[str]]:
    """The arguments of the commands in the section that begin with `start`."""
    blocks = re.findall(r"^```\n(.*?)^```", section(), flags=re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words[len(start) :] for words in split if words[: len(start)] == list(start)]


TEXT, PARQUET, *ON_THE_HUB = commands("python", "-m", "translator.train")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that the README mentions."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "corpora").mkdir()
    splits = generate(num_train=200, num_valid=12, num_test=8)
    half = len(splits["train"]) // 2
    texts = {**splits, "a": splits["train"][:half], "b": splits["train"][half:]}
    for name, examples in texts.items():
        columns = {language: [example.text[language] for example in examples] for language in LANGUAGES}
        for language, lines in columns.items():
            (folder / "corpora" / f"{name}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tabbed = (f"{example.text['en']}\t{example.text['de']}\n" for example in splits["train"])
    (folder / "corpora" / "train.tsv").write_text("".join(tabbed), encoding="utf-8")
    for name, split in {"a": "train", "b": "valid"}.items():
        columns = {column: [example.text[code] for example in splits[split]] for code, column in LANGUAGES.items()}
        dataset = datasets.Dataset.from_dict(columns)
        dataset.to_parquet(folder / f"{name}.parquet")
        dataset.to_json(folder / f"{name}.jsonl")
        dataset.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the training command in that directory."""
    monkeypatch.chdir(folder)

    def train_with(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["train", *arguments, *SMALL, *QUICK])
        return train.main()

    return train_with


def inline_options() -> list[list[str]]:
    """The `data.train` options in the text between the code blocks, with the options that accompany them."""
    spans = [span.replace("\n", " ") for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", section())]
    return [shlex.split(span) for span in spans if span.lstrip("'").startswith("data.train")]


def test_the_section_contains_what_is_tested_here() -> None:
    assert TEXT[0] == "data=text"
    assert PARQUET[:2] == ["data=hf", "data.path=parquet"]
    assert [option for options in inline_options() for option in options] == [
        "data.train=[corpora/a,corpora/b]",
        "data.train_weights=[1,2]",
        "data.train=corpora/train.tsv",
    ]
    assert len(ON_THE_HUB) == 2
    assert "`data.path=json`" in section()
    assert "`data.path=csv`" in section()


def test_text_files(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*TEXT) == 0
    assert "200 pairs read, 200 kept" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("options", inline_options(), ids=lambda options: options[0])
def test_other_training_files(run: Callable[..., int], options: list[str]) -> None:
    kept = [option for option in TEXT if not option.startswith("data.train=")]
    assert run(*kept, *options) == 0


OTHER_FORMATS = [pytest.param(*names, marks=pytest.mark.slow) for names in (("json", "jsonl"), ("csv", "csv"))]


@pytest.mark.parametrize(("path", "ending"), [("parquet", "parquet"), *OTHER_FORMATS])
def test_local_files_of_the_datasets_library(run: Callable[..., int], path: str, ending: str) -> None:
    arguments = [word.replace("data.path=parquet", f"data.path={path}") for word in PARQUET]
    assert run(*(word.replace(".parquet", f".{ending}") for word in arguments)) == 0


@pytest.mark.parametrize("arguments", ON_THE_HUB, ids=lambda arguments: arguments[0])
def test_commands_that_need_a_network_are_well_formed(arguments: list[str]) -> None:
    (config,) = cli.main(lambda config: config, arguments)
    assert config.data.kind == "hf"


def test_showing_a_batch(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (arguments,) = commands("python", "scripts/show_batch.py")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["show_batch", *arguments, "tokenizer.vocab_size=500"])
    with pytest.raises(SystemExit) as ending:
        runpy.run_path(str(REPOSITORY / "scripts" / "show_batch.py"), run_name="__main__")
    assert ending.value.code == 0
    assert "mask 1 = may be attended to" in capsys.readouterr().out
