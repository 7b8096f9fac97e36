"""Hydra's command line with short, helpful error messages.

Hydra composes `configs/`. Whatever it cannot compose, or the schema does not allow, is refused before anything else
happens, with the nearest valid name; with `--multirun` every job is checked before the first one starts.
"""

import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from translator.config import AUTO, SCHEMAS, Config, UnknownOptionError, load, load_file, option_names, to_yaml
from translator.errors import UserError
from translator.files.explain import reason
from translator.overrides import group_choices, parse_overrides, quoted
from translator.runs.directory import RUNS
from translator.runs.latest import newest_run, resolve_run
from translator.schema.checks import did_you_mean

GROUPS = (*SCHEMAS, "experiment")
_ABSENT = object()


def _register_defaults() -> None:
    """Offers the schema's defaults to the files in `configs/` as `/schema/NAME`, so that each is defined once."""
    for group, kinds in SCHEMAS.items():
        for kind, schema in kinds.items():
            defaults = OmegaConf.to_container(OmegaConf.structured(schema), enum_to_str=True)
            ConfigStore.instance().store(group="schema", name=kind or group, node=defaults)


_register_defaults()


def config_dir() -> Path:
    """`configs/` beside the package in the repository, inside it once installed."""
    package = Path(__file__).resolve().parent
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def main(
    job: Callable[[Config], Any],
    argv: Sequence[str] | None = None,
    *,
    check: Callable[[Config], None] = lambda config: None,
) -> list[Any]:
    """Runs the job with the configuration that the arguments describe, once or for each job of a sweep.

    `check` may refuse a configuration; it sees every one of them before the first job starts.
    """
    arguments = [quoted(_without_plus(argument)) for argument in (sys.argv[1:] if argv is None else argv)]
    options = _parse_arguments(arguments)
    results: list[Any] = []
    is_question = options.help or options.hydra_help or options.shell_completion or options.info
    if not is_question and options.cfg in (None, "job"):
        resumed = _resumed(options.overrides, options.multirun)
        if resumed is not None and options.cfg:
            print(to_yaml(resumed), end="")
            return []
        if resumed is not None:
            check(resumed)
            return [job(resumed)]

    refusals: list[UserError] = []

    def run_job(composed: DictConfig) -> None:
        try:
            results.append(job(load(_in_sweep_folder(composed))))
        except UserError as error:  # Hydra would add its own lines
            refusals.append(error)

    _check(options, check)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # exceptions of the job propagate unchanged
    sys.argv = [sys.argv[0], *arguments]
    hydra.main(version_base="1.3", config_path=str(config_dir()), config_name="config")(run_job)()
    if refusals:
        raise refusals[0]
    return results


def _parse_arguments(arguments: list[str]) -> Namespace:
    """What Hydra makes of the command line; mistakes get one line."""

    def refuse(message: str) -> NoReturn:
        raise UserError(message.removeprefix("argument "))

    parser = get_args_parser()
    parser.error = refuse  # type: ignore[method-assign]
    options = parser.parse_args(arguments)
    for flag in ("resolve", "package"):
        if getattr(options, flag) and not options.cfg:
            raise UserError(f"--{flag}: only together with --cfg, which shows the configuration")
    return options


def _without_plus(argument: str) -> str:
    """`+model=lstm` as `model=lstm`: Hydra allows a plus only for groups without a default; all of ours have one."""
    match = re.match(rf"\++({'|'.join(GROUPS)})=", argument)
    return argument.lstrip("+") if match else argument


def _resumed(overrides: list[str], multirun: bool) -> Config | None:
    """The saved configuration of the run to be resumed, with the overrides given now; None for a new run."""
    parsed = {override.key_or_group: override for override in _parse(overrides)}
    resume = parsed.pop("resume", None)
    if resume is None or resume.value() in (False, AUTO):  # auto: the whole command line counts, see decide_resume
        return None
    if multirun:
        raise UserError("resume: one run can be resumed at a time, not with --multirun")
    run_dir = parsed.pop("run_dir").value() if "run_dir" in parsed else None
    where = Path(str(run_dir)) if run_dir else None
    if resume.value() is not True:
        if where is not None:
            raise UserError(f"run_dir={where}: resume={resume.value()} names the run already; leave one of them out")
        where = Path(str(resume.value()))
    where, exists = _located(where)
    saved = where / "config.yaml"
    if not exists:
        raise UserError(f"resume={where}: no run is there (config.yaml is missing); give the folder of a run")
    # Complete: options that the run's version did not have yet can be overridden too.
    composed = OmegaConf.create(to_yaml(load_file(saved)))
    assert isinstance(composed, DictConfig)
    for key, override in parsed.items():
        if override.is_sweep_override():
            raise UserError(f"{override.input_line}: one value at a time; write a list as [a,b]")
        if key in GROUPS:
            raise UserError(f"{key}={override.value()}: a resumed run keeps its groups; override single options of it")
        if OmegaConf.select(composed, key, default=_ABSENT) is _ABSENT:
            raise UserError(f"{key}: unknown option; {did_you_mean(key, _dotted_keys(composed))}")
        OmegaConf.update(composed, key, override.value())
    composed.update(resume=str(where), run_dir=str(where))
    return load(composed)


def _located(run_dir: Path | None) -> tuple[Path, bool]:
    """The folder of the run to be resumed, by default the newest one, and whether a saved configuration is there."""
    try:
        where = newest_run(RUNS) if run_dir is None else resolve_run(run_dir).resolve()
        where = where.relative_to(Path.cwd()) if where.is_relative_to(Path.cwd()) else where
        return where, (where / "config.yaml").is_file()
    except OSError as error:  # a name that is too long, for example
        raise UserError(f"resume={run_dir}: cannot be opened ({reason(error)}); give the folder of a run") from error


def _in_sweep_folder(composed: DictConfig) -> DictConfig:
    """With `--multirun`, a folder given as run_dir holds one run for each job."""
    hydra_config = HydraConfig.get()
    if hydra_config.mode == RunMode.MULTIRUN and composed.get("run_dir"):
        composed.run_dir = str(Path(composed.run_dir) / f"{hydra_config.job.num:03d}")
    return composed


def _check(options: Namespace, check: Callable[[Config], None]) -> None:
    """Composes and validates every job that the arguments describe."""
    if options.help or options.hydra_help or options.shell_completion or options.info:
        return
    for flag in ("config_dir", "config_path", "config_name"):
        if getattr(options, flag):
            raise UserError(f"--{flag.replace('_', '-')}: not supported; give options as NAME=VALUE")
    if options.multirun and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError("--multirun: not together with torchrun; start the runs one after the other")
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        for overrides in _jobs(options.overrides, options.multirun):
            composed = _compose(overrides)
            if not options.cfg:
                check(_loaded(composed, overrides))


def _loaded(composed: DictConfig, overrides: list[str]) -> Config:
    """The configuration; an option that its experiment sets, and another choice excludes, is not blamed on the user."""
    try:
        return load(composed)
    except UnknownOptionError as error:
        given = {override.key_or_group: override.value() for override in _parse(overrides)}
        group = error.key.partition(".")[0]
        if error.key in given or group not in given or not given.get("experiment"):
            raise
        raise UserError(
            f"experiment={given['experiment']}: sets {error.key}, and {group}={given[group]} has no such option; leave "
            f"out {group}={given[group]} or the experiment"
        ) from error


def _jobs(overrides: list[str], multirun: bool) -> list[list[str]]:
    """The overrides of each job: one, or the product of all sweeps."""
    choices: list[list[str]] = []
    for override in _parse(overrides):
        line = override.input_line or ""
        if not override.is_sweep_override():
            choices.append([line])
            continue
        if not multirun:
            raise UserError(f"{line}: several values need --multirun; a list is written [a,b]")
        try:
            choices.append([f"{line.split('=', 1)[0]}={value}" for value in override.sweep_string_iterator()])
        except HydraException as error:
            raise UserError(f"{line}: give the values one by one, separated by commas ({error})") from error
    jobs = [list(job) for job in product(*choices)]
    for job in jobs:
        _parse(job)  # each value of a sweep is checked as if it had been given alone
    return jobs


def _parse(overrides: list[str]) -> list[Override]:
    return parse_overrides(overrides, group_choices(config_dir(), GROUPS))


def _compose(overrides: list[str]) -> DictConfig:
    try:
        return hydra.compose("config", overrides)
    except MissingConfigException as error:
        raise UserError(_missing_option(error)) from error
    except (HydraException, ValueError) as error:
        unknown = re.search(r"Could not override '([^']+)'", str(error))
        unfit = re.search(r"Error merging override (.+)", str(error))
        if unfit is not None:
            raise UserError(f"{unfit.group(1)}: not the kind of value that it takes; see --cfg job") from error
        if unknown is None:
            raise UserError(f"{' '.join(overrides)}: {str(error).splitlines()[0]}") from error
        raise UserError(_unknown_key(unknown.group(1), overrides)) from error


def _missing_option(error: MissingConfigException) -> str:
    group, _, name = (error.missing_cfg_file or "").rpartition("/")
    options = sorted(error.options or [])
    return f"{group}={name}: no such choice; {did_you_mean(name, options)}"


def _unknown_key(key: str, overrides: list[str]) -> str:
    """The message for a key that the chosen groups do not have."""
    group, _, name = key.partition(".")
    chosen = hydra.compose("config", [o for o in overrides if o.split("=", 1)[0] in GROUPS])
    for kind, schema in SCHEMAS.get(group, {}).items():
        current = chosen[group].get("kind") if group in chosen else None
        if kind and kind != current and name in option_names(schema):
            return f"{key}: {group}.kind={current} has no such option, {group}.kind={kind} has"
    return f"{key}: unknown option; {did_you_mean(key, _dotted_keys(chosen))}"


def _dotted_keys(node: DictConfig, prefix: str = "") -> list[str]:
    keys = []
    for name in map(str, node):
        keys.append(f"{prefix}{name}")
        child = None if OmegaConf.is_missing(node, name) else node[name]
        if isinstance(child, DictConfig):
            keys += _dotted_keys(child, f"{prefix}{name}.")
    return keys
