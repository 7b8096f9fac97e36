"""Configurations as the commands compose them, for tests of what is done with them.

Hydra's command line composes a configuration three times before the job starts; here it is done once for all tests of
a process. Tests of the command line itself call `cli.main`.
"""

import copy
from functools import cache
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from translator import cli
from translator.config import Config, load
from translator.overrides import quoted


def composed_values(*overrides: str) -> Any:
    """What Hydra composes, as plain values that belong to the caller."""
    return copy.deepcopy(_composed_values(*overrides))


@cache
def _composed_values(*overrides: str) -> Any:
    with initialize_config_dir(str(cli.config_dir()), version_base="1.3"):
        return OmegaConf.to_container(compose("config", [quoted(override) for override in overrides]))


def configuration(*overrides: str) -> Config:
    return load(DictConfig(composed_values(*overrides)))
