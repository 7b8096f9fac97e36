"""Values that no option should have: each is refused by name at once, or it is harmless."""

import functools
import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

import pytest
import torch
from omegaconf import DictConfig

from support.configurations import composed_values, configuration
from translator.build import checks
from translator.build.checks import check_config
from translator.build.preflight import check_memory
from translator.config import SCHEMAS, Config, RunOptions, load
from translator.config import _load_group as load_group
from translator.errors import UserError
from translator.schema.options import Options
from translator.training import memory

NASTY = (0, -1, 2**31, 2**31 - 1, 2**63, 10**400, 1e308, math.inf, math.nan, 1e-300)
NEEDED = {"text": ["data=text", "data.train=a", "data.valid=b"], "hf": ["data=hf", "data.path=parquet"]}


def numeric_options(group: str, schema: type[Options]) -> Iterator[tuple[str, bool]]:
    """The full name of every option that is a number or a list of numbers, and whether it is a list."""
    for name, hint in get_type_hints(schema).items():
        if name not in [field.name for field in fields(schema)]:
            continue
        full_name = f"{group}.{name}" if group else name
        if isinstance(hint, type) and issubclass(hint, Options):
            yield from numeric_options(full_name, hint)
        elif hint in (int, float):
            yield full_name, False
        elif any(inner in (list[float], float) for inner in (hint, *get_args(hint))):
            yield full_name, True


def cases() -> list[tuple[str, str, str, bool]]:
    schemas = [(group, kind, schema) for group, kinds in SCHEMAS.items() for kind, schema in kinds.items()]
    return [
        (group, kind, option, is_list)
        for group, kind, schema in [*schemas, ("", "", RunOptions)]
        for option, is_list in numeric_options(group, schema)
    ]


@functools.cache
def unchanged(overrides: tuple[str, ...]) -> Config:
    return configuration(*overrides)


def loaded(group: str, kind: str, option: str, value: Any) -> Config:
    """As `load` does it; the groups that are as they were are loaded once for all values."""
    overrides = NEEDED.get(kind, [f"{group}={kind}"] if kind else [])
    config = composed_values(*overrides)
    *path, name = option.split(".")
    functools.reduce(dict.__getitem__, path, config)[name] = value
    if not group:
        return load(DictConfig(config))
    own = load_group(group, DictConfig({group: config[group]}))
    return replace(unchanged(tuple(overrides)), **{group: own})


def test_the_cases_cover_all_groups() -> None:
    assert len(cases()) > 70
    assert {group for group, *_ in cases()} == {"", *SCHEMAS}
    assert ("optim", "", "optim.betas", True) in cases()
    assert ("model", "lstm", "model.teacher_forcing.updates", False) in cases()


@pytest.mark.parametrize(
    ("group", "kind", "option", "is_list"), cases(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_nasty_values_are_refused_by_name_or_harmless(group: str, kind: str, option: str, is_list: bool) -> None:
    length = 2 if option == "optim.betas" else 1
    accepted, refusals = [], []
    for number in NASTY:
        try:
            check_config(loaded(group, kind, option, [number] * length if is_list else number))
            accepted.append(number)
        except UserError as error:
            refusals.append(str(error))
    assert all(refusal.startswith(option) and "\n" not in refusal for refusal in refusals), refusals
    assert all(map(math.isfinite, accepted))
    if group in ("optim", "decode") and not option.endswith("seed"):  # these are used in tensor computations
        in_float32 = torch.tensor(accepted, dtype=torch.float32)
        assert in_float32.isfinite().all()
        assert 0 in accepted or in_float32.all(), "zero is refused, so values that round to it must be refused too"


def refusal(*overrides: str) -> str:
    with pytest.raises(UserError) as error:
        check_config(configuration(*overrides))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_model_too_large_for_the_machine_is_refused_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("translator.build.preflight.device_memory", lambda device: 8 * 10**9)
    message = refusal("model.model_size=65536", "model.feedforward_size=1024")
    assert message.startswith("model.model_size=65536: ")
    assert "parameters needs at least" in message
    assert "cpu has 8.0 GB" in message
    assert refusal("model=lstm", "model.hidden_size=60000").startswith("model.hidden_size=60000: ")
    check_config(configuration("model=transformer_base"))


def test_the_estimate_is_that_of_the_built_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 pieces: the model fits exactly into four floats for each parameter, and into no less."""
    from translator.runs.model import build_model

    for overrides in (
        ["model=transformer_tiny"],
        ["model=lstm_small"],
        ["model=transformer_tiny", "trainer.ema_decay=0.9"],
    ):
        config = configuration(*overrides)
        num_parameters = sum(p.numel() for p in build_model(config.model, 1000, 1000).parameters())
        needed = num_parameters * (20 if config.trainer.ema_decay else 16)
        monkeypatch.setattr("translator.build.preflight.device_memory", lambda device, needed=needed: needed)
        check_memory(config, 1000, 1000, torch.device("cpu"))
        monkeypatch.setattr("translator.build.preflight.device_memory", lambda device, needed=needed: needed - 1)
        with pytest.raises(UserError, match=f"{num_parameters:,} parameters"):
            check_memory(config, 1000, 1000, torch.device("cpu"))


def test_a_container_has_less_memory_than_its_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_CONTAINER_LIMITS", (str(limit),))
    whole = memory.device_memory(torch.device("cpu"))
    assert whole is not None
    assert whole > 10**8
    limit.write_text("max\n", encoding="ascii")
    assert memory.device_memory(torch.device("cpu")) == whole
    limit.write_text("123456789\n", encoding="ascii")
    assert memory.device_memory(torch.device("cpu")) == 123456789


def test_more_workers_than_the_machine_can_run_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.os, "sched_getaffinity", lambda process: {0, 1})
    assert refusal("trainer.threads=4000").startswith("trainer.threads=4000: this machine has 2 cores")
    assert refusal("data.num_processes=4000").startswith("data.num_processes=4000: ")
    check_config(configuration("trainer.threads=8", "data.num_processes=8"))


def test_a_recurrent_model_is_not_compiled() -> None:
    assert refusal("model=lstm", "trainer.compile=true").startswith("trainer.compile=true: ")
    check_config(configuration("model=transformer", "trainer.compile=true"))
