"""The whole configuration of a run, checked. Values live in `configs/`, types and ranges in `translator/schema/`.

Hydra composes plain YAML; `load` then merges each group into its dataclass, so a mistyped key, a wrong type and a value
out of range are all refused here, by name, before any data is read.
"""

import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException, ValidationError
from yaml import YAMLError

from translator.errors import UserError
from translator.files.atomic import write_text
from translator.files.explain import explain_damage
from translator.schema.checks import did_you_mean
from translator.schema.data import (
    DataConfig,
    DemoDataConfig,
    Directions,
    HubDataConfig,
    TextDataConfig,
    TokenizerConfig,
)
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

# The first line of a saved configuration. Files without it are accepted: users may edit them, and earlier versions did
# not write it.
_CHECKSUM_COMMENT = "# sha256 {} of the lines below; remove this line after editing them"
_CHECKSUM_LINE = re.compile(_CHECKSUM_COMMENT.format("([0-9a-f]{64})"))
_CHECKSUM_REMAINS = re.compile("sha256|lines below|[0-9a-f]{16}")  # a few damaged bytes leave one of these


@dataclass
class RunOptions(Options):
    """The options that belong to no group."""

    seed: int = option(1, "random seed", minimum=0, maximum=LARGEST_SEED)
    init_from: str | None = option(
        None, "a run whose weights, as far as they fit, and tokenizer a new run begins with; null = random weights"
    )
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
        self.data.require(
            self.data.directions is Directions.forward or self.tokenizer.joint,
            "directions",
            "each language is both source and target, so they must share a vocabulary; set tokenizer.joint=true",
        )
        self.decode.require(
            not (self.decode.terms and self.data.reverse_target),
            "terms",
            "a model that writes the end of a line first cannot enforce terms; leave out data.reverse_target",
        )


class UnknownOptionError(UserError):
    """A group was given an option that its schema does not have."""

    def __init__(self, key: str, names: list[str]) -> None:
        super().__init__(f"{key}: unknown option; {did_you_mean(key, names)}")
        self.key = key


def option_names(schema: type) -> list[str]:
    return [option.name for option in fields(schema)]


def load(composed: DictConfig) -> Config:
    """Checks a composed configuration against the schema and turns it into dataclasses."""
    try:
        plain = OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        if variable := re.search(r"Environment variable '([^']*)' not found", reason):
            raise UserError(f"{error.full_key}: there is no environment variable {variable[1]}; set it") from error
        if key := re.search(r"Interpolation key '([^']*)' not found", reason):
            raise UserError(f"{error.full_key}: ${{{key[1]}}}: there is no option {key[1]} to refer to") from error
        raise UserError(f"{error.full_key}: ${{…}} must be the name of another option ({reason})") from error
    return _load(plain)


def _load(plain: Any) -> Config:
    """The configuration from plain values: references such as ${…} are not resolved but refused."""
    for key, value in _leaves(plain):
        if isinstance(value, str) and "${" in value:
            raise UserError(f"{key}={value}: ${{…}} is not resolved here; give the value itself")
    composed = DictConfig(plain)
    known = [*SCHEMAS, *option_names(RunOptions)]
    for key in map(str, composed):
        if key not in known:
            raise UserError(f"{key}: unknown option; {did_you_mean(key, known)}")
    groups = {name: _load_group(name, composed) for name in SCHEMAS}
    top = OmegaConf.masked_copy(composed, option_names(RunOptions))
    options = _merge("", RunOptions, top)
    return Config(**groups, **{name: getattr(options, name) for name in option_names(RunOptions)})


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All keys and all values that are not groups, with their full names."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield name or "the configuration", key
            yield from _leaves(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, name)
    else:
        yield name, value


def load_file(path: Path) -> Config:
    """The configuration that a run has saved, exactly as it was; references such as ${oc.env:HOME} are refused."""
    with explain_damage(path, YAMLError, OmegaConfBaseException, AssertionError):
        text = path.read_text(encoding="utf-8")
        first, _, rest = text.partition("\n")
        recorded = _CHECKSUM_LINE.fullmatch(first)
        if recorded and recorded[1] != _sha256(rest):
            raise ValueError("it does not match the checksum in its first line")
        if not recorded and _CHECKSUM_REMAINS.search(first):
            raise ValueError("its first line, the checksum, is not as it was; remove that line if you have edited it")
        saved = OmegaConf.create(text)
        if not isinstance(saved, DictConfig):
            raise ValueError("not a configuration")
        plain = OmegaConf.to_container(saved, resolve=False)
        try:
            return _load(plain)
        except UserError as error:  # what is wrong is not an option that the user has given now
            raise ValueError(str(error)) from error


def save_file(config: Config, path: Path) -> None:
    """Writes the whole configuration atomically as YAML."""
    text = to_yaml(config)
    write_text(path, _CHECKSUM_COMMENT.format(_sha256(text)) + "\n" + text)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
    for name, hint in get_type_hints(schema).items():
        if (
            isinstance(hint, type)
            and issubclass(hint, Options)
            and not isinstance(node.get(name, {}), dict | DictConfig)
        ):
            full_name, example = f"{group}.{name}", option_names(hint)[0]
            raise UserError(
                f"{full_name}={node[name]}: has options of its own; set them, such as {full_name}.{example}=…"
            )
    try:
        return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(schema), node))
    except ConfigKeyError as error:
        key = ".".join(part for part in (group, str(error.full_key)) if part)
        names = [f"{group}.{name}" if group else name for name in option_names(schema)]
        raise UnknownOptionError(key, names) from error
    except OverflowError as error:
        raise UserError(f"{_first_overflow(group, node)}: too large a number") from error
    except ValidationError as error:
        if not error.full_key:
            raise UserError(f"{group}: {str(error).splitlines()[0]}") from error
        key = ".".join(part for part in (group, str(error.full_key)) if part)
        value = OmegaConf.select(node, str(error.full_key), throw_on_missing=False)
        raise UserError(f"{key}={value}: {_expected_type(schema, str(error.full_key), value, error)}") from error


def _first_overflow(group: str, node: DictConfig) -> str:
    """The full name of the first option whose whole number is too large to be converted to a float."""
    for name, value in ((str(name), value) for name, value in node.items()):
        numbers = value if isinstance(value, ListConfig) else [value]
        if any(isinstance(number, int) and number.bit_length() > sys.float_info.max_exp for number in numbers):
            return f"{group}.{name}"
        if isinstance(value, DictConfig) and (inner := _first_overflow(f"{group}.{name}", value)):
            return inner
    return ""


def _expected_type(schema: type, key: str, value: object, error: ValidationError) -> str:
    """What values the option accepts; the key of a list element ends in its index, such as betas[0]."""
    hint: Any = getattr(error, "ref_type", None)
    for name in key.partition("[")[0].split("."):
        hint = get_type_hints(schema).get(name, hint)
        schema = hint if isinstance(hint, type) else schema
    if get_origin(hint) is list and "[" in key:
        (hint,) = get_args(hint)
    elif get_origin(hint) is list:
        return "must be a list, written [a,b]"
    if get_origin(hint) in (Union, UnionType):
        hint = next(alternative for alternative in get_args(hint) if alternative is not NoneType)
    return expected(hint, value) or "not the kind of value that it takes; see --cfg job"
