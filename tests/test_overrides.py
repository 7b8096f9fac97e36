"""NAME=VALUE arguments: what people type is understood, and what they cannot mean is refused in one line."""

import random

import pytest

from translator import cli
from translator.errors import UserError
from translator.overrides import group_choices, parse_overrides, quoted

GROUPS = group_choices(cli.config_dir(), cli.GROUPS)


@pytest.mark.parametrize(
    "value",
    [
        "daten/größe",
        "/mnt/数据/train",
        "train[:50%]",
        "train[:50%]+test[10%:]",
        "a(b",
        "it's/ä",
        "C:\\ä\\",
        "ä b",
        "x=ä",
    ],
)
def test_paths_and_splits_need_no_quotes(value: str) -> None:
    (override,) = parse_overrides([quoted(f"data.train={value}")], GROUPS)
    assert override.value() == value
    (override,) = parse_overrides([quoted(f"data.train=[{value},plain,3]")], GROUPS)
    assert override.value() == [value, "plain", 3]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a\nb", "run_dir=a…: no option takes a line break; give one line"),
        ("\r", "run_dir=…: no option takes a line break; give one line"),
        ("[a,'b\n']", "run_dir=[a,'b…: no option takes a line break; give one line"),
        ("1" * 5_000, f"run_dir={'1' * 52}…: too large a number"),
        (f"[a,{'1' * 5_000}]", f"run_dir=[a,{'1' * 49}…: too large a number"),
    ],
)
def test_what_no_message_could_show_in_one_line_is_refused(value: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        quoted(f"run_dir={value}")
    assert str(refused.value) == message


def test_any_text_without_commas_arrives_unchanged() -> None:
    rng = random.Random(1)
    for _ in range(300):
        value = "ä" + "".join(rng.choices("ab/ '\"\\[]{}()%:=$?!", k=rng.randrange(12)))
        (override,) = parse_overrides([quoted(f"run_dir={value}")], GROUPS)
        assert override.value() == value


@pytest.mark.parametrize(
    "argument", ["seed=3", "run_dir='a b'", "model=lstm,transformer", "data.train=[a,b]", "--help"]
)
def test_what_hydra_understands_is_left_as_it_is(argument: str) -> None:
    assert quoted(argument) == argument


def test_several_values_stay_several() -> None:
    (override,) = parse_overrides([quoted("data.train=ä/x,ö/y")], GROUPS)
    assert override.is_sweep_override()
    assert list(override.sweep_string_iterator()) == ["'ä/x'", "'ö/y'"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model=[1,2]"], "model=[1,2]: names one configuration; choose one of lstm,"),
        (["data={a: 1}"], "data={a: 1}: names one configuration"),
        (["experiment=[1]"], "experiment=[1]: names one configuration"),
        (["model=null"], "model=null: names one configuration"),
        (["-m", "model=lstm,3"], "model=3: names one configuration"),
        (["seed=???"], "seed=???: ??? stands for a value that is missing"),
        (["optim.betas=[0.9,???]"], "??? stands for a value that is missing"),
        (["~model"], "~model: an option cannot be removed"),
        (["=3"], "=3: the name of the option is missing"),
        (["seed"], "seed: not understood; write NAME=VALUE"),
        (["run_dir='x"], "run_dir='x: not understood"),
        (["run_dir=${nothing}"], "run_dir: ${nothing}: there is no option nothing to refer to"),
        (["run_dir=${oc.env:NO_SUCH}"], "run_dir: there is no environment variable NO_SUCH; set it"),
        (["--resolve"], "--resolve: only together with --cfg"),
        (["--package", "x"], "--package: only together with --cfg"),
        (["--foo"], "unrecognized arguments: --foo"),
        (["model=lstm", "model.teacher_forcing=0.5"], "model.teacher_forcing=0.5: has options of its own; set them"),
        (["data.cleaning=false"], "data.cleaning=False: has options of its own"),
        (["data.cleaning=[1]"], "data.cleaning=[1]: not the kind of value that it takes"),
        (["optim.betas=3"], "optim.betas=3: must be a list, written [a,b]"),
        (["optim.betas=[a,b]"], "optim.betas[0]=a: must be a number"),
        (["run_dir={a: 1}"], "run_dir={'a': 1}: must be a text"),
    ],
)
def test_mistakes_get_one_line_without_the_words_of_a_library(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        cli.main(lambda config: None, arguments)
    assert message in str(error.value)
    for word in ("\n", "Merge error", "subclass", "ListConfig", "AnyNode", "override"):
        assert word not in str(error.value)


def test_a_path_beyond_ascii_reaches_the_configuration() -> None:
    (config,) = cli.main(
        lambda config: config, ["run_dir=läufe/größe 1", "data=hf", "data.path=x", "data.train_split=train[:50%]"]
    )
    assert (config.run_dir, config.data.train_split) == ("läufe/größe 1", "train[:50%]")


def test_a_run_whose_name_is_too_long_is_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"resume=1{300}: cannot be opened \(File name too long\); give the folder"):
        cli.main(lambda config: None, [f"resume={'1' * 300}"])


def test_a_vocabulary_that_bytes_do_not_fit_into_names_both_options() -> None:
    with pytest.raises(
        UserError, match=r"tokenizer\.vocab_size=64: must be at least 261, .*tokenizer\.byte_fallback=true"
    ):
        cli.main(lambda config: None, ["tokenizer.vocab_size=64", "tokenizer.byte_fallback=true"])
