"""Ranks with different text or options are refused before training begins."""

import socket
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.configurations import configuration
from translator.build.agreement import check_same_data, check_same_options
from translator.build.data import PreparedData
from translator.errors import UserError
from translator.training.distributed import Ranks


class OneOfThree(Ranks):
    """One of three ranks, of which the second and the third have the values in `others`."""

    others: tuple[Any, Any]

    def gather(self, value: Any) -> list[Any]:
        own = value[1]
        return [value, *((host, own | change) for host, change in zip(("near", "far"), self.others, strict=True))]


def ranks(rank: int, second: dict[str, Any], third: dict[str, Any]) -> Ranks:
    one = OneOfThree(rank, 3)
    object.__setattr__(one, "others", (second, third))
    return one


def prepared() -> PreparedData:
    fingerprints = {"train": ["a", "b"], "valid": "c", "test": None, "tokenizer": "d"}
    return cast(PreparedData, SimpleNamespace(fingerprints=lambda: fingerprints))


def test_ranks_with_the_same_options_and_text_are_accepted() -> None:
    check_same_options(configuration(), ranks(0, {}, {}))
    check_same_data(prepared(), ranks(0, {}, {}))
    check_same_options(configuration(), Ranks())
    check_same_data(prepared(), Ranks())


def test_a_different_corpus_is_named_in_one_line() -> None:
    with pytest.raises(UserError) as refusal:
        check_same_data(prepared(), ranks(0, {}, {"training text": ["a", "x"], "tokenizer": "y"}))
    assert str(refusal.value).startswith("rank 2 on far does not have the same training text, tokenizer as rank 0: ")
    assert "\n" not in str(refusal.value)


def test_a_different_option_is_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"rank 1 on near has seed=2 \(not 1\): start all ranks with the same options"):
        check_same_options(configuration(), ranks(0, {"seed": 2}, {}))


def test_the_other_ranks_leave_the_message_to_the_first() -> None:
    with pytest.raises(SystemExit) as ended:
        check_same_options(configuration(), ranks(1, {"seed": 2}, {}))
    assert ended.value.code == 2


def test_paths_and_devices_may_differ_between_machines() -> None:
    seen: list[dict[str, Any]] = []

    class Watching(Ranks):
        def gather(self, value: Any) -> list[Any]:
            assert value[0] == socket.gethostname()
            seen.append(value[1])
            return [value]

    config = configuration()
    check_same_options(config, Watching(0, 2))
    elsewhere = replace(config.data, cache_dir="/scratch/cache", folder="/scratch/demo", num_processes=3)
    trainer = replace(config.trainer, threads=7, device="cuda:1")
    check_same_options(replace(config, data=elsewhere, trainer=trainer, run_dir="/a"), Watching(0, 2))
    assert seen[0] == seen[1]
