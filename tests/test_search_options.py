"""Every search option, by its field, reaches the search from YAML, the command line and Python."""

import math
import pickle
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from support.configurations import configuration
from translator import compare, evaluate, translate
from translator.config import load_file, save_file
from translator.data.tokenizer import Tokenizer
from translator.decoding.hypotheses import Hypothesis
from translator.errors import OptionError, UserError
from translator.ids import NUM_SPECIAL
from translator.runs.translation import translation_options
from translator.schema.decode import SearchOptions
from translator.schema.flags import flag, given
from translator.schema.options import LARGEST, declaration, is_enum

HINTS = get_type_hints(SearchOptions)
FIELDS = fields(SearchOptions)
NUMBERS = [field for field in FIELDS if HINTS[field.name] in (int, float)]
DEFAULTS = SearchOptions()


def other_value(field: "Field[Any]") -> Any:
    """A value other than the option's default."""
    hint, default = HINTS[field.name], getattr(DEFAULTS, field.name)
    if hint is bool:
        return not default
    if hint in (int, float):
        limits = declaration(field)
        too_much = (limits.maximum is not None and default + 1 > limits.maximum) or (
            limits.below is not None and default + 1 >= limits.below
        )
        return (default or 1) / 2 if too_much else default + 1
    if hint is str:
        return str(Path(__file__).parent / "support" / "terms.tsv")
    if is_enum(hint):
        return next(member for member in hint if member is not default)
    return ["Hund", "Katze"]


def flags_for(field: "Field[Any]", value: Any) -> list[str]:
    if isinstance(value, bool):
        return [flag(field) if value else flag(field).replace("--", "--no-", 1)]
    values = value if isinstance(value, list) else [value]
    return [f"{flag(field)}={one}" for one in values]


def wrong_values(field: "Field[Any]") -> list[tuple[Any, str]]:
    """Values out of range, fractional or not finite, each with what the error message must say."""
    limits, whole = declaration(field), HINTS[field.name] is int
    step = 1 if whole else 0.001
    wrong: list[tuple[Any, str]] = []
    if limits.minimum is not None:
        wrong.append((limits.minimum - step, f"must be at least {limits.minimum}"))
    if limits.above is not None:
        wrong.append((HINTS[field.name](limits.above), f"must be greater than {limits.above}"))
    if limits.below is not None:
        wrong.append((HINTS[field.name](limits.below), f"must be less than {limits.below}"))
    if limits.maximum is not None or whole:
        maximum = LARGEST if limits.maximum is None else limits.maximum
        wrong.append((maximum + step, f"must be at most {maximum}"))
    return wrong + ([(2.5, "a whole number")] if whole else [(math.nan, "finite"), (math.inf, "finite")])


WRONG = [
    pytest.param(field, value, remedy, id=f"{field.name}={value}")
    for field in NUMBERS
    for value, remedy in wrong_values(field)
]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory as training leaves it, with an untrained model."""
    import json

    import torch
    from safetensors.torch import save_file as save_tensors

    from translator.runs.model import build_model
    from translator.runs.weights import collect_weights

    folder = tmp_path_factory.mktemp("run")
    small = ["embedding_size=8", "hidden_size=8", "attention_size=8"]
    config = configuration("model=lstm", *(f"model.{option}" for option in small), "tokenizer.vocab_size=300")
    tokenizer = Tokenizer.train([("A dog reads.", "Ein Hund liest eine Katze.")] * 5, vocab_size=300)
    torch.manual_seed(1)
    model = build_model(config.model, tokenizer.source_vocab_size, tokenizer.target_vocab_size)
    save_file(config, folder / "config.yaml")
    tokenizer.save(folder / "tokenizer")
    save_tensors(collect_weights(model), folder / "model.safetensors")
    (folder / "manifest.json").write_text(json.dumps({"format_version": 1}), encoding="utf-8")
    (folder / "metrics.json").write_text("{}", encoding="utf-8")
    return folder


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[SearchOptions]:
    """The options of every search made; every search returns the same short hypothesis."""
    options_seen: list[SearchOptions] = []

    def search(model: Any, source: Any, mask: Any, options: SearchOptions, **others: Any) -> list[list[Hypothesis]]:
        options_seen.append(options)
        assert bool(others["forbidden"]) == bool(options.forbid)
        return [[Hypothesis([NUM_SPECIAL], -1.0, -1.0)] * options.num_hypotheses for _ in source]

    monkeypatch.setattr("translator.decoding.line_translator.search", search)
    return options_seen


def expected_options(field: "Field[Any]") -> SearchOptions:
    return DEFAULTS.changed(**{field.name: other_value(field)})


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_configuration_option_reaches_the_search(
    field: "Field[Any]", run_dir: Path, tmp_path: Path, searched: list[SearchOptions]
) -> None:
    from translator import Translator

    value = other_value(field)
    text = "[" + ",".join(value) + "]" if isinstance(value, list) else value
    wide = ["decode.beam_size=9"] if field.name == "num_hypotheses" else []
    config = configuration(f"decode.{field.name}={text}", *wide)
    assert getattr(config.decode, field.name) == value
    assert translation_options(config, Tokenizer.load(run_dir / "tokenizer"))["options"] is config.decode
    saved = load_file(run_dir / "config.yaml")
    saved.decode = config.decode
    for path in run_dir.iterdir():
        (tmp_path / path.name).symlink_to(path) if path.name != "config.yaml" else None
    save_file(saved, tmp_path / "config.yaml")
    Translator.load(tmp_path, device="cpu").translate(["A dog reads."])
    assert searched == [config.decode]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_python_option_reaches_the_search(field: "Field[Any]", run_dir: Path, searched: list[SearchOptions]) -> None:
    from translator import Translator

    Translator.load(run_dir, device="cpu", **{field.name: other_value(field)}).translate(["A dog reads."])
    assert searched == [expected_options(field)]
    assert getattr(searched[0], field.name) == other_value(field)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_command_line_option_reaches_the_search(
    field: "Field[Any]", run_dir: Path, tmp_path: Path, searched: list[SearchOptions]
) -> None:
    (tmp_path / "in.en").write_text("A dog reads.\n", encoding="utf-8")
    (tmp_path / "in.de").write_text("Ein Hund liest.\n", encoding="utf-8")
    source, reference, run = str(tmp_path / "in.en"), str(tmp_path / "in.de"), str(run_dir)
    options = [*flags_for(field, other_value(field)), "--device", "cpu"]
    assert translate.main([source, "-o", str(tmp_path / "out.de"), "--model", run, "--quiet", *options]) == 0
    texts = ["--source", source, "--reference", reference, "--bootstrap", "0"]
    assert evaluate.main(["--model", run, *texts, *options]) == 0
    assert compare.main([run, reference, *texts[:-1], "10", "--randomizations", "10", *options]) == 0
    assert searched == [expected_options(field)] * 3


@pytest.mark.parametrize(("field", "value", "remedy"), WRONG)
def test_numbers_out_of_range_are_refused_wherever_they_come_from(
    field: "Field[Any]", value: Any, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError) as error:
        configuration(f"decode.{field.name}={value}")
    assert f"decode.{field.name}={value}: " in str(error.value)
    assert remedy in str(error.value)

    with pytest.raises(OptionError) as error:
        DEFAULTS.changed(**{field.name: value})  # as in `Translator.load`
    assert str(error.value).startswith(f"{field.name}={value}: ")
    assert remedy in str(error.value)

    for command, arguments in (
        (translate, []),
        (evaluate, ["--model", "run", "--reference", "ref"]),
        (compare, ["a", "b", "--reference", "ref"]),
    ):
        with pytest.raises(SystemExit) as ending:
            command.main([*arguments, f"{flag(field)}={value}"])
        assert ending.value.code == 2
        message = capsys.readouterr().err
        assert f"{flag(field)} {value}: " in message
        assert remedy in message
        assert message.count("\n") == 1


@pytest.mark.parametrize("command", [translate, evaluate, compare], ids=lambda command: command.__name__)
def test_help_shows_every_option_with_its_help(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    for field in FIELDS:
        assert flag(field) in text
        assert " ".join(declaration(field).help.split()) in text


def test_only_what_the_user_gave_is_taken_from_the_command_line() -> None:
    assert given(translate.parser().parse_args(["in.txt"]), SearchOptions) == {}
    arguments = ["--nbest", "3", "--no-sample", "--forbid", "a", "--forbid", "b c", "--length-penalty", "gnmt"]
    assert given(translate.parser().parse_args(arguments), SearchOptions) == {
        "num_hypotheses": 3,
        "sample": False,
        "forbid": ["a", "b c"],
        "length_penalty": "gnmt",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_sise": 2}, "beam_sise: unknown option; did you mean beam_size?"),
        ({"length_penalty": "gmt"}, "length_penalty=gmt: must be one of none, average, gnmt; did you mean gnmt?"),
        ({"length_penalty": "nan"}, "length_penalty=nan: must be one of none, average, gnmt"),
        ({"beam_size": "three"}, "beam_size=three: must be a whole number"),
        ({"sample": "yes"}, "sample=yes: must be true or false"),
        ({"alpha": True}, "alpha=True: must be a number"),
        ({"alpha": 10**400}, "must be a finite number"),
        ({"forbid": "word"}, "forbid=word: must be a list"),
        ({"forbid": [3]}, "forbid=[3]: must be a text"),
        ({"forbid": [" "]}, "forbid=[' ']: a forbidden word cannot be blank"),
        ({"num_hypotheses": 3, "beam_size": 2}, "num_hypotheses=3: a beam of 2 cannot give more hypotheses"),
    ],
)
def test_wrong_python_options_are_refused_by_the_name_used(
    options: dict[str, Any], message: str, run_dir: Path
) -> None:
    from translator import Translator

    with pytest.raises(UserError) as error:
        Translator.load(run_dir, device="cpu", **options)
    assert message in str(error.value)
    assert "choose one of none" not in str(error.value), "the choices are named once"


def test_a_longer_list_widens_the_beam_unless_its_size_is_given() -> None:
    assert DEFAULTS.changed(num_hypotheses=9).beam_size == 9
    assert DEFAULTS.changed(num_hypotheses=3).beam_size == DEFAULTS.beam_size
    assert DEFAULTS.changed(num_hypotheses=9, sample=True).beam_size == DEFAULTS.beam_size
    assert DEFAULTS.changed(num_hypotheses=9, beam_size=12).beam_size == 12


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (evaluate, ["--hypothesis", "out.de", "--reference", "ref.de"]),
        (compare, ["a.de", "b.de", "--reference", "ref.de"]),
    ],
    ids=["evaluate", "compare"],
)
def test_finished_translations_cannot_be_searched_for(
    command: Any,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("out.de", "ref.de", "a.de", "b.de"):
        (tmp_path / name).write_text("Ein Hund.\n", encoding="utf-8")
    assert command.main([*arguments, "--beam", "3"]) == 2
    assert "search options need" in capsys.readouterr().err


def test_a_refusal_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(OptionError("decode.beam_size", 0, "must be at least 1")))
    assert str(error) == "decode.beam_size=0: must be at least 1"
