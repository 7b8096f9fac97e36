"""The whole configuration of a run, checked. Values live in `configs/`, types and ranges in `translator/schema/`.

Hydra composes plain YAML; `load` then merges each group into its dataclass, so a mistyped key, a wrong type and a value
out of range are all refused here, by name, before any data is read.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException, ValidationError
from yaml import YAMLError  # type: ignore[import-untyped]

from translator.errors import UserError
from translator.files.atomic import write_text
from translator.schema.checks import did_you_mean
from translator.schema.data import DataConfig, DemoDataConfig, HubDataConfig, TextDataConfig, TokenizerConfig
from translator.schema.decode import SearchOptions
from translator.schema.model import LstmConfig, TieEmbeddings, TransformerConfig
from translator.schema.options import LARGEST_SEED, Options, expected, option
from translator.schema.training import OptimConfig, TrainerConfig

AUTO = "auto"  # a value of `resume`
ModelConfig = LstmConfig | TransformerConfig
SCHEMAS: dict[str, dict[str, type]] = {
    "model": {"lstm": LstmConfig, "transformer": TransformerConfig},
    "data": {"demo": DemoDataConfig, "text": TextDataConfig, "hf": HubDataConfig},
    "tokenizer": {"": TokenizerConfig},
    "optim": {"": OptimConfig},
    "trainer": {"": TrainerConfig},
    "decode": {"": SearchOptions},
}


@dataclass
class RunOptions(Options):
    """The options that belong to no group."""

    seed: int = option(1, "of everything random", minimum=0, maximum=LARGEST_SEED)
    run_dir: str | None = option(None, "folder of the run; null makes a new one under runs/")
    resume: Any = option(
        False,
        "true continues run_dir, or the newest run; a path continues that run; auto continues the run in run_dir, or"
        " the newest unfinished one with the same options, and starts a new run where there is none",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(isinstance(self.resume, bool | str), "resume", "give true, false, auto or the directory of a run")


@dataclass(kw_only=True)
class Config(RunOptions):
    """A whole run."""

    model: ModelConfig
    data: DataConfig
    tokenizer: TokenizerConfig
    optim: OptimConfig
    trainer: TrainerConfig
    decode: SearchOptions

    def __post_init__(self) -> None:
        super().__post_init__()
        self.model.require(
            self.model.tie_embeddings is not TieEmbeddings.all or self.tokenizer.joint,
            "tie_embeddings",
            "source and target share a matrix only with tokenizer.joint=true; use target or none",
        )


def option_names(schema: type) -> list[str]:
    return [option.name for option in fields(schema)]


def load(composed: DictConfig) -> Config:
    """Checks a composed configuration against the schema and turns it into dataclasses."""
    try:
        composed = DictConfig(OmegaConf.to_container(composed, resolve=True))
    except OmegaConfBaseException as error:
        raise UserError(str(error).splitlines()[0]) from error
    known = [*SCHEMAS, *option_names(RunOptions)]
    for key in map(str, composed):
        if key not in known:
            raise UserError(f"{key}: unknown option; {did_you_mean(key, known)}")
    groups = {name: _load_group(name, composed) for name in SCHEMAS}
    top = OmegaConf.masked_copy(composed, option_names(RunOptions))
    options = _merge("", RunOptions, top)
    return Config(**groups, seed=options.seed, run_dir=options.run_dir, resume=options.resume)


def load_file(path: Path) -> Config:
    """The configuration that a run has saved."""
    try:
        saved = OmegaConf.load(path)
    except (YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged ({str(error).splitlines()[0]})") from error
    if not isinstance(saved, DictConfig):
        raise UserError(f"{path}: not a configuration")
    return load(saved)


def save_file(config: Config, path: Path) -> None:
    """Writes the whole configuration as YAML, at once or not at all."""
    write_text(path, to_yaml(config))


def to_yaml(config: Config) -> str:
    groups = {name: OmegaConf.structured(getattr(config, name)) for name in SCHEMAS}
    top = {name: getattr(config, name) for name in option_names(RunOptions)}
    return OmegaConf.to_yaml(OmegaConf.create({**groups, **top}))


def _load_group(name: str, composed: DictConfig) -> Any:
    node = composed.get(name)
    if not isinstance(node, DictConfig):
        raise UserError(f"{name}={node}: choose a configuration of the group, see --help")
    kinds = SCHEMAS[name]
    kind = node.get("kind") if "" not in kinds else ""
    if kind not in kinds:
        raise UserError(f"{name}.kind={kind}: unknown; {did_you_mean(str(kind), list(kinds))}")
    return _merge(name, kinds[kind], node)


def _merge(group: str, schema: type, node: DictConfig) -> Any:
    """The node as an instance of the schema; unknown keys and wrong types are refused by their full name."""
    try:
        return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(schema), node))
    except ConfigKeyError as error:
        key = ".".join(part for part in (group, str(error.full_key)) if part)
        names = [f"{group}.{name}" if group else name for name in option_names(schema)]
        raise UserError(f"{key}: unknown option; {did_you_mean(key, names)}") from error
    except OverflowError as error:
        raise UserError(f"{group}: one of its numbers is too large") from error
    except ValidationError as error:
        if not error.full_key:
            raise UserError(f"{group}: {str(error).splitlines()[0]}") from error
        key = ".".join(part for part in (group, str(error.full_key)) if part)
        value = OmegaConf.select(node, str(error.full_key), throw_on_missing=False)
        raise UserError(f"{key}={value}: {_expected_type(schema, str(error.full_key), value, error)}") from error


def _expected_type(schema: type, key: str, value: object, error: ValidationError) -> str:
    hint: Any = getattr(error, "ref_type", None)
    for name in key.split("."):
        hint = get_type_hints(schema).get(name, hint)
        schema = hint if isinstance(hint, type) else schema
    return expected(hint, value) or str(error).splitlines()[0]
