"""The generation settings of an export to Hugging Face are those of the run."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from support.exported_runs import SMALL, make_run
from translator.export.__main__ import main
from translator.export.huggingface import write
from translator.ids import BOS, EOS, PAD, UNK
from translator.runs.loading import load_run
from translator.schema.decode import LengthPenalty, SearchOptions
from translator.schema.model import TransformerConfig


def written(folder: Path, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """config.json and generation_config.json of an exported run."""
    loaded = load_run(make_run(folder / "run", num_updates=0, **options), torch.device("cpu"))
    (folder / "exported").mkdir()
    write(loaded, folder / "exported")
    configuration, generation = (
        json.loads((folder / "exported" / name).read_text(encoding="utf-8"))
        for name in ("config.json", "generation_config.json")
    )
    return configuration, generation


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_special_pieces(norm_order: str, tmp_path: Path) -> None:
    model = TransformerConfig(**SMALL, norm_order=norm_order)  # type: ignore[arg-type]
    configuration, generation = written(tmp_path, model=model)
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    for settings in (configuration, generation):
        assert settings["decoder_start_token_id"] == 2
        assert (settings["pad_token_id"], settings["bos_token_id"], settings["eos_token_id"]) == (0, 2, 3)
    # Pegasus and Marian would otherwise force one of the pieces that they end with themselves: 1 or 0.
    assert configuration["forced_eos_token_id"] is None
    assert generation.get("forced_eos_token_id") is None
    assert generation["suppress_tokens"] == [PAD, UNK, BOS]
    assert generation["max_length"] == configuration["max_position_embeddings"] == 1_024


def test_a_run_without_byte_fallback_may_write_the_unknown_piece(tmp_path: Path) -> None:
    _, generation = written(tmp_path, byte_fallback=False)
    assert generation["suppress_tokens"] == [PAD, BOS]


@pytest.mark.parametrize(
    ("decode", "expected"),
    [
        (SearchOptions(beam_size=4, alpha=0.7), {"num_beams": 4, "length_penalty": 0.7, "early_stopping": True}),
        (
            SearchOptions(beam_size=2, alpha=0.7, length_penalty=LengthPenalty.none),
            {"num_beams": 2, "length_penalty": 0.0, "early_stopping": True},
        ),
        (SearchOptions(beam_size=1, alpha=0.7), {"num_beams": 1, "length_penalty": None, "early_stopping": None}),
        (SearchOptions(), {"min_new_tokens": 1, "no_repeat_ngram_size": 0}),
        (SearchOptions(min_length=3, no_repeat_ngram=2), {"min_new_tokens": 3, "no_repeat_ngram_size": 2}),
    ],
    ids=["beam", "no-penalty", "greedy", "limits-default", "limits"],
)
def test_search_options(decode: SearchOptions, expected: dict[str, Any], tmp_path: Path) -> None:
    _, generation = written(tmp_path, decode=decode)
    assert {name: generation.get(name) for name in expected} == expected


@pytest.mark.slow
def test_a_run_with_limits_of_its_own_is_verified_without_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", decode=SearchOptions(beam_size=3, min_length=30, no_repeat_ngram=1))
    assert main([str(run), "--to", "huggingface", "-o", str(tmp_path / "exported")]) == 0
    assert capsys.readouterr().err.count("6 of 6 translations equal") == 2
