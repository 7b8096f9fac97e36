"""Every YAML file composes; every mistake is refused by name before any work starts."""

import shutil
import subprocess
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import get_type_hints

import pytest
from omegaconf import DictConfig, OmegaConf

from support import warm_python
from support.configurations import composed_values, configuration
from support.processes import environment
from translator import cli
from translator.config import Config, RunOptions, load, load_file, option_names, save_file, to_yaml
from translator.errors import UserError
from translator.runs.model import build_model
from translator.schema.checks import parse_duration
from translator.schema.data import CleaningConfig, DemoDataConfig, HubDataConfig, TextDataConfig, TokenizerConfig
from translator.schema.decode import SearchOptions
from translator.schema.model import LstmConfig, TeacherForcing, TransformerConfig
from translator.schema.options import Options, declaration
from translator.schema.training import OptimConfig, TrainerConfig

CONFIGS = cli.config_dir()
NAMES = sorted(f"{path.parent.name}={path.stem}" for path in CONFIGS.glob("*/*.yaml"))
TEXT = ["data=text", "data.train=a", "data.valid=b"]
HUB = ["data=hf", "data.path=parquet"]


def composed(*overrides: str) -> Config:
    """The configuration that a command passes to its job."""
    configs = cli.main(lambda config: config, list(overrides))
    assert len(configs) == 1
    return configs[0]


def raw(*overrides: str) -> DictConfig:
    """What Hydra composes, before the schema is applied."""
    return DictConfig(composed_values(*overrides))


def refusal(*overrides: str) -> str:
    with pytest.raises(UserError) as error:
        composed(*overrides)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_every_group_has_choices() -> None:
    assert {name.split("=")[0] for name in NAMES} == set(cli.GROUPS)


@pytest.mark.parametrize("name", NAMES)
def test_every_yaml_composes_and_is_valid(name: str) -> None:
    needed = {"data=text": TEXT[1:], "data=hf": HUB[1:]}.get(name, [])
    assert isinstance(configuration(name, *needed), Config)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("model=")])
def test_every_model_preset_can_be_built(name: str) -> None:
    import torch

    config = configuration(name)
    with torch.device("meta"):
        model = build_model(config.model, 1000, 1000)
    assert sum(parameter.numel() for parameter in model.parameters()) > 100_000


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("experiment=")])
def test_keys_of_yaml_are_options_of_the_schema(name: str) -> None:
    """An option known only to the schema would never be found by users."""
    group = name.split("=")[0]
    node = raw(name)[group]
    schema = cli.SCHEMAS[group][node.get("kind") if "" not in cli.SCHEMAS[group] else ""]
    assert set(node) == set(option_names(schema))


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("model=transformer", TransformerConfig),
        ("model=lstm", LstmConfig),
        ("data=demo", DemoDataConfig),
        ("data=text", TextDataConfig),
        ("data=hf", HubDataConfig),
        ("tokenizer=bpe", TokenizerConfig),
        ("optim=adamw", OptimConfig),
        ("trainer=default", TrainerConfig),
        ("decode=beam", SearchOptions),
    ],
)
def test_defaults_of_schema_are_values_of_yaml(name: str, schema: type[Options]) -> None:
    node = OmegaConf.to_container(raw(name)[name.split("=")[0]])
    assert OmegaConf.to_container(OmegaConf.structured(schema), enum_to_str=True) == node


def test_defaults_of_options_without_a_group_are_values_of_yaml() -> None:
    node = raw()
    assert {name: node[name] for name in option_names(RunOptions)} == asdict(RunOptions())


def option_classes() -> list[type[Options]]:
    groups = [schema for kinds in cli.SCHEMAS.values() for schema in kinds.values()]
    return [*groups, RunOptions, CleaningConfig, TeacherForcing]


@pytest.mark.parametrize("schema", option_classes(), ids=lambda schema: schema.__name__)
def test_every_option_has_help_and_every_number_a_range(schema: type[Options]) -> None:
    hints = get_type_hints(schema)
    for field in fields(schema):
        declared = declaration(field)
        assert declared.help
        if hints[field.name] in (int, float):
            assert declared.minimum is not None or declared.above is not None, field.name


def test_a_configuration_from_before_an_option_existed_is_still_read(tmp_path: Path) -> None:
    old = OmegaConf.create(to_yaml(configuration("decode=greedy")))
    for name in ("num_hypotheses", "forbid", "sample", "temperature", "top_k", "top_p", "seed"):
        del old.decode[name]
    OmegaConf.save(old, tmp_path / "config.yaml")
    assert load_file(tmp_path / "config.yaml") == configuration("decode=greedy")
    assert composed(f"resume={tmp_path}", "decode.top_k=3").decode == SearchOptions(beam_size=1, top_k=3)


def test_all_spellings_of_a_group_choice() -> None:
    usual = configuration()
    assert usual.model.kind == "transformer"
    for spelling in ("model=lstm", "+model=lstm", "++model=lstm"):
        assert composed(spelling).model.kind == "lstm"
    assert composed("+model=transformer").model == usual.model


def test_multirun_runs_every_combination() -> None:
    configs = cli.main(lambda config: config, ["--multirun", "+model=lstm,transformer", "seed=1,2"])
    assert [(config.model.kind, config.seed) for config in configs] == [
        (kind, seed) for kind in ("lstm", "transformer") for seed in (1, 2)
    ]


def test_values_may_refer_to_each_other() -> None:
    config = composed("run_dir=runs/${model.kind}-${seed}", "seed=4", "data.seed=${seed}")
    assert config.run_dir == "runs/transformer-4"
    assert config.data == configuration("data.seed=4").data


def test_multirun_is_refused_under_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "torchrun" in refusal("--multirun", "seed=1,2")


def test_multirun_checks_all_jobs_before_the_first() -> None:
    started = []
    with pytest.raises(UserError, match=r"transfomer.*did you mean transformer"):
        cli.main(started.append, ["-m", "model=transformer,transfomer"])
    assert not started


@pytest.mark.parametrize(
    ("overrides", "facts"),
    [
        (["model=transfomer"], ["model=transfomer", "did you mean transformer?"]),
        (["model.num_head=4"], ["model.num_head", "did you mean model.num_heads?"]),
        (["modle=lstm"], ["modle", "did you mean model?"]),
        (["+modle=lstm"], ["modle", "did you mean model?"]),
        (["+model.droput=0.1"], ["model.droput", "did you mean model.dropout?"]),
        (["data.cleaning.max_ratios=3"], ["did you mean data.cleaning.max_ratio?"]),
        (["model.hidden_size=5"], ["model.hidden_size", "model.kind=lstm has"]),
        (["model.model_size=512", "model.num_heads=7"], ["model.num_heads=7", "model.model_size=512", "4 or 8"]),
        (["model.dropout=-0.1"], ["model.dropout=-0.1", "at least 0"]),
        (["model.dropout=high"], ["model.dropout=high", "a number"]),
        (["model.num_heads=2.5"], ["model.num_heads=2.5", "a whole number"]),
        (["model.norm=rmss"], ["model.norm=rmss", "layer, rms", "did you mean rms?"]),
        (["tokenizer.vocab_size=100"], ["tokenizer.vocab_size=100", "261"]),
        (["tokenizer.kind=char", "tokenizer.sampling=0.1"], ["tokenizer.sampling=0.1", "bpe or unigram"]),
        (["tokenizer.joint=false"], ["model.tie_embeddings=all", "tokenizer.joint=true"]),
        (["optim.betas=[0.9]"], ["optim.betas", "two numbers"]),
        (["optim.learning_rate=nan"], ["optim.learning_rate=nan", "finite"]),
        (["optim.learning_rate=1" + "0" * 400], ["optim.learning_rate", "too large"]),
        (["trainer.max_updates=3000000000"], ["trainer.max_updates=3000000000", "at most 2147483647"]),
        (["model.model_size=2147483646"], ["model.model_size=2147483646", "at most 65536"]),
        (["model.model_size=65535"], ["model.num_heads=4", "3 or 5"]),
        (["trainer.max_time=20"], ["trainer.max_time=20", "20m"]),
        (["trainer.device=gpu"], ["trainer.device=gpu", "cuda"]),
        (["seed=one"], ["seed=one", "a whole number"]),
        (["data=text"], ["data.train", "PREFIX"]),
        (["experiment=smoke", "data=text"], ["experiment=smoke: sets data.folder, and data=text has no such option"]),
        (["experiment=smoke", *TEXT, "data.folder=a"], ["data.folder: unknown option"]),
        ([*TEXT, "data.target=en"], ["data.target=en", "data.source"]),
        ([*TEXT, "data.train_weights=[1,2]"], ["data.train_weights", "1 training"]),
        (["data=hf"], ["data.path"]),
        (["data=base"], ["data=base", "choose one of demo, hf, iwslt2017, multi30k, text, wmt14"]),
        ([*HUB, "data.source_column=text", "data.target_column=text"], ["data.target_column=text", "same column"]),
        (["data.target=fr"], ["data.target=fr", "en, de and zh"]),
        (["model=lstm", "model.attend=parallel", "model.teacher_forcing.ratio=0.5"], ["model.attend=parallel"]),
        (["model=null"], ["model"]),
        (["model=lstm,transformer"], ["model=lstm,transformer", "--multirun"]),
        (["seed=1,2"], ["seed=1,2", "--multirun"]),
        (["--multirun", "seed=interval(1,2)"], ["seed=interval(1,2)", "one by one"]),
        (["run_dir=${nothing}"], ["nothing"]),
        (["--config-name", "other"], ["--config-name"]),
        (["resume=runs/a", "run_dir=runs/b"], ["run_dir=runs/b", "resume=runs/a"]),
        (["nonsense"], ["nonsense", "NAME=VALUE"]),
    ],
)
def test_mistakes_are_refused_by_name(overrides: list[str], facts: list[str]) -> None:
    message = refusal(*overrides)
    for fact in facts:
        assert fact in message


def test_an_experiment_with_a_mistake_of_its_own_is_corrected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = shutil.copytree(CONFIGS, tmp_path / "configs")
    text = "# @package _global_\noptim:\n  learning_rat: 0.1\n"
    (configs / "experiment/mine.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(cli, "config_dir", lambda: configs)
    for others in ([], ["model=lstm"]):
        message = refusal("experiment=mine", *others)
        assert message == "optim.learning_rat: unknown option; did you mean optim.learning_rate?"


def test_a_refusal_is_one_line_without_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "translator.train", "model.num_heads=7", "model.model_size=512"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment())
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("train: model.num_heads=7")
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_cfg_job_prints_the_composed_configuration(tmp_path: Path) -> None:
    command = "import sys; from translator.train import main; sys.exit(main())"
    result = warm_python.run(command, "--cfg", "job", "+model=lstm", "seed=7", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (tmp_path / "config.yaml").write_text(result.stdout, encoding="utf-8")
    config = load_file(tmp_path / "config.yaml")
    assert (config.model.kind, config.seed) == ("lstm", 7)


@pytest.mark.parametrize("model", ["lstm", "transformer"])
def test_saved_configuration_is_read_back_unchanged(tmp_path: Path, model: str) -> None:
    config = configuration(f"model={model}", "trainer.max_time=20m", *TEXT, "data.train=[a,b]")
    save_file(config, tmp_path / "config.yaml")
    assert load_file(tmp_path / "config.yaml") == config


def test_a_resumed_run_keeps_its_configuration_except_for_overrides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configuration("model=lstm", "model.hidden_size=32", "seed=5", f"run_dir={tmp_path}")
    save_file(config, tmp_path / "config.yaml")
    resumed = composed(f"resume={tmp_path}", "trainer.max_updates=99")
    assert resumed.model == config.model
    assert (resumed.seed, resumed.trainer.max_updates) == (5, 99)
    assert resumed.run_dir is not None
    assert Path(resumed.run_dir).resolve() == tmp_path.resolve()
    assert cli.main(lambda config: config, ["--cfg", "job", f"resume={tmp_path}", "seed=6"]) == []
    shown = capsys.readouterr().out
    assert "hidden_size: 32" in shown
    assert "seed: 6" in shown
    assert "did you mean model.hidden_size?" in refusal(f"resume={tmp_path}", "model.hiden_size=3")
    assert "one value at a time" in refusal(f"resume={tmp_path}", "seed=1,2")
    assert "keeps its groups" in refusal(f"resume={tmp_path}", "model=transformer")
    assert "no run is there" in refusal(f"resume={tmp_path / 'nowhere'}")


@pytest.fixture(scope="module")
def saved_content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("saved") / "config.yaml"
    save_file(configuration("model=lstm"), path)
    return path.read_bytes()


@pytest.fixture
def saved(saved_content: bytes, tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_bytes(saved_content)
    return tmp_path / "config.yaml"


def without_checksum(text: str) -> str:
    """The file as written by an earlier version or edited by hand."""
    first, _, rest = text.partition("\n")
    assert "sha256" in first
    return rest


@pytest.mark.parametrize("place", range(0, 95, 6))
def test_damage_to_the_checksum_itself_does_not_hide_other_damage(saved: Path, place: int) -> None:
    text = saved.read_text()
    assert text[place] != "~"
    saved.write_text((text[:place] + "~" + text[place + 1 :]).replace("hidden_size: 256", "hidden_size: 255"))
    with pytest.raises(UserError, match="first line"):
        load_file(saved)


@pytest.mark.parametrize("place", ["run_dir: null", "score: additive", "source: en"])
def test_a_saved_configuration_is_never_resolved(
    saved: Path, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    text = without_checksum(saved.read_text())
    assert place in text
    saved.write_text(text.replace(place, place.split(":")[0] + ": ${oc.env:A_SECRET}"))
    with pytest.raises(UserError) as caught:
        load_file(saved)
    refused = refusal(f"resume={saved.parent}"), refusal("--cfg", "job", f"resume={saved.parent}")
    for message in (str(caught.value), *refused):
        assert f"{saved.resolve()}: damaged" in message.replace(str(saved), str(saved.resolve()))
        assert "${oc.env:A_SECRET}" in message
        assert "hunter2" not in message
    assert "hunter2" not in capsys.readouterr().out


def test_environment_variables_are_not_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    monkeypatch.setenv("NAME", "${oc.env:A_SECRET}")
    message = refusal("run_dir=${oc.env:NAME}")
    assert "run_dir=${oc.env:A_SECRET}" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"- a\n- b\n",
        b"5",
        b"just text",
        b"\x00\x01\xff\xfe" * 50,
        b"model: [\n",
        b"model: !!python/object/apply:os.system ['false']\n",
        b"a: &a [*a]\n",
        b"? [1, 2]\n: 3\n",
        b"5: 6\n",
        b"model: ???\n",
        b"[" * 5_000,
        "model: lstm\n".encode("utf-16"),
    ],
)
def test_anything_but_a_configuration_is_refused_in_one_line(saved: Path, content: bytes) -> None:
    saved.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_file(saved)
    assert str(caught.value).startswith(f"{saved}: damaged (")
    assert "\n" not in str(caught.value)


def refused_or_read(path: Path) -> Config | str:
    """The configuration, or the message of its refusal; anything else is a traceback."""
    try:
        return load_file(path)
    except UserError as error:
        return str(error)


@pytest.mark.parametrize("shift", range(2))
def test_no_value_in_a_saved_configuration_ends_in_a_traceback(saved: Path, shift: int) -> None:
    """Every option in turn gets a value that is mostly wrong."""
    values = ["[]", "{}", "null", "???", "1e999", "2024-01-01", "!!binary aGk=", "yes", "-1", "${x}", "[{a: b}]"]
    lines = without_checksum(saved.read_text()).splitlines()
    for number in range(shift, len(lines), 2):
        changed = f"{lines[number].split(':')[0]}: {values[number % len(values)]}"
        saved.write_text("\n".join([*lines[:number], changed, *lines[number + 1 :]]) + "\n")
        answer = refused_or_read(saved)
        assert isinstance(answer, Config) or (answer.startswith(str(saved)) and "\n" not in answer), changed


def test_no_flipped_bit_changes_a_saved_configuration_unnoticed(saved: Path) -> None:
    content, config = saved.read_bytes(), load_file(saved)
    first_line = content.index(b"\n")
    for place in [*range(0, first_line, 10), first_line, *range(first_line, len(content), 7)]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        saved.write_bytes(damaged)
        answer = refused_or_read(saved)
        assert (place < first_line and answer == config) or "config.yaml: damaged" in str(answer)
    for size in range(0, len(content), 50):
        saved.write_bytes(content[:size])
        with pytest.raises(UserError, match=r"config\.yaml: damaged"):
            load_file(saved)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("20m", 1200), ("1.5h", 5400), ("1h30m", 5400), ("1h1m1s", 3661)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration("trainer.max_time", text) == seconds


@pytest.mark.parametrize("text", ["", "20", "m", "1m1h", "-5m", "0s", "1" + "0" * 400 + "h"])
def test_wrong_durations(text: str) -> None:
    with pytest.raises(UserError, match=r"trainer\.max_time"):
        parse_duration("trainer.max_time", text)


def test_load_refuses_a_value_in_place_of_a_group() -> None:
    wrong = raw()
    wrong.model = 5
    with pytest.raises(UserError, match="model=5"):
        load(wrong)
