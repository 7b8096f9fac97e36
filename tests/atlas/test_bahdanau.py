"""The attention of an LSTM: alignment errors of checkpoints, and the sentences that are shown."""

import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from translator.atlas.figures.bahdanau import bahdanau, checkpoint_folders, crossing_share, measure_bahdanau
from translator.atlas.figures.held_out import tokenizer_of
from translator.atlas.material import Material, TrainedRun
from translator.build.atlas_command import load_trained_run
from translator.decoding.alignment import align_words
from translator.errors import UserError
from translator.evaluation.alignment import GoldAlignment, parse_pharaoh
from translator.languages import alignment_tokens
from translator.runs.weights import read_tensors, write_tensors


@pytest.fixture(scope="module")
def run(small_lstm: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    """With two checkpoints: of other weights, and of those of the model."""
    folder = tmp_path_factory.mktemp("copies") / "lstm"
    shutil.copytree(small_lstm, folder)
    weights = read_tensors(folder / "model.safetensors", needs_checksum=True)
    for update, scale in ((10, -1.0), (20, 1.0)):
        checkpoint = folder / "checkpoints" / f"step-{update:08d}"
        checkpoint.mkdir(parents=True)
        write_tensors(checkpoint / "model.safetensors", {name: scale * one for name, one in weights.items()})
    loaded = load_trained_run("--lstm-run", folder, "lstm")
    assert loaded is not None
    return loaded


def error_by_hand(run: TrainedRun) -> float:
    """1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|) over all sentences, from the weights of the model's own `score`."""
    held_out, tokenizer = run.held_out, tokenizer_of(run)
    assert held_out is not None
    assert held_out.gold is not None
    found = total = 0
    for source, reference, gold in zip(held_out.sources, held_out.references, held_out.gold, strict=True):
        source_ids, target_ids = tokenizer.encode_source([source])[0], tokenizer.encode_target([reference])[0]
        if len(source_ids) < 3 or len(target_ids) < 2:
            continue
        ids, written = torch.tensor([source_ids]), torch.tensor([[2, *target_ids]])
        decoded = run.translator.model(ids, torch.ones_like(ids, dtype=torch.bool), written, need_weights=True)
        assert decoded.attention is not None
        weights = decoded.attention[0, 0, 0, :-1, :-1].detach()
        pieces = tokenizer.source_pieces(source_ids[:-1]), tokenizer.target_pieces(target_ids)
        links = set(align_words(*pieces, weights, alignment_tokens)[0])
        found += len(links & gold.sure) + len(links & gold.possible)
        total += len(links) + len(gold.sure)
    return 1 - found / total


def test_alignment_errors_of_the_model_and_its_checkpoints(run: TrainedRun) -> None:
    figures = measure_bahdanau(run, quick=False)
    by_hand = error_by_hand(run)
    assert figures["alignment"]["error_rate"] == pytest.approx(by_hand)
    (first, other), (last, same) = figures["curve"]
    assert (first, last) == (10, 20)
    assert same == pytest.approx(by_hand)
    assert other != pytest.approx(by_hand)
    assert figures["validation"] == [(10, 100.0), (20, 200.0), (30, 300.0)]  # as the run's history has them


def test_maps_are_of_words_and_count_what_is_right(run: TrainedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("translator.atlas.figures.bahdanau.FEWEST_WORDS", 3)
    maps = measure_bahdanau(run, quick=True)["maps"]
    assert maps
    for one in maps:
        attention, gold = np.array(one["attention"]), np.array(one["gold"])
        assert attention.shape == gold.shape == (len(one["target"]), len(one["source"]))
        assert np.all(attention.sum(1) <= 1.001)  # the rest is the end of the sentence
        assert one["num_right"] == gold[np.arange(len(gold)), attention.argmax(1)].sum()
    shares = [one["crossing_share"] for one in maps]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("line", ["0-0 1-1 2-2", "0-2 1-1 2-0", "0-0 1-3 2-1 3-2 1-4", "0-0", "", "0-1 1-0 0?0"])
def test_crossing_links(line: str) -> None:
    gold = parse_pharaoh(line)
    pairs = [(a, b) for a, b in combinations(gold.sure, 2) if a[0] != b[0] and a[1] != b[1]]
    expected = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in pairs) / max(1, len(pairs))
    assert crossing_share(gold) == pytest.approx(expected)


def test_what_cannot_be_measured_is_refused(run: TrainedRun, small_lstm: Path) -> None:
    bare = load_trained_run("--lstm-run", small_lstm, "lstm")
    assert bare is not None
    with pytest.raises(UserError, match=r"--lstm-run .*has no checkpoints"):
        checkpoint_folders(bare)
    held_out = run.held_out
    assert held_out is not None
    unaligned = type(held_out)(held_out.name, held_out.sources, held_out.references, "en", "de", None)
    with pytest.raises(UserError, match="no gold alignments"):
        bahdanau(Material(lstm_run=TrainedRun(run.folder, run.config, run.translator, unaligned)))
    assert crossing_share(GoldAlignment(frozenset(), frozenset())) == 0
