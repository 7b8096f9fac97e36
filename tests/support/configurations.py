"""Configurations as the commands compose them, for tests of what is done with them.

Hydra's command line composes a configuration three times before the job starts, which takes most of a second. Here the
groups are composed once for all tests of a process, and the values of single options are put into the result as Hydra
does it. Tests of the command line itself call `cli.main`.
"""

import copy
from functools import cache
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import OverrideType
from omegaconf import DictConfig, OmegaConf

from translator import cli
from translator.config import Config, load
from translator.overrides import quoted

_ABSENT = object()


def composed_values(*overrides: str) -> Any:
    """What Hydra composes, as plain values that belong to the caller."""
    return copy.deepcopy(_composed_values(*overrides))


@cache
def _composed_values(*overrides: str) -> Any:
    parsed = OverridesParser.create().parse_overrides([quoted(override) for override in overrides])
    groups = [override.input_line for override in parsed if override.key_or_group in cli.GROUPS]
    config = DictConfig(copy.deepcopy(_composed_by_hydra(*groups)))
    for override in parsed:
        key = override.key_or_group
        if key in cli.GROUPS:
            continue
        is_plain = override.type is OverrideType.CHANGE and not override.is_sweep_override()
        if not is_plain or OmegaConf.select(config, key, default=_ABSENT) is _ABSENT:
            return _composed_by_hydra(*(override.input_line for override in parsed))  # or refused
        OmegaConf.update(config, key, override.value(), merge=True)
    return OmegaConf.to_container(config)


@cache
def _composed_by_hydra(*overrides: str) -> Any:
    with initialize_config_dir(str(cli.config_dir()), version_base="1.3"):
        return OmegaConf.to_container(compose("config", list(overrides)))


def configuration(*overrides: str) -> Config:
    return load(DictConfig(composed_values(*overrides)))
