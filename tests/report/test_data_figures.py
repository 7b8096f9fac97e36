from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from torch.utils.tensorboard import SummaryWriter

from support.small_runs import CURVE, TEST, TRAIN
from translator.config import load_file
from translator.data.normalization import normalize_text
from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.evaluation.words import bleu_words
from translator.report.figures.curves import MOST_POINTS, learning_curves, thin
from translator.report.figures.data_card import data_card
from translator.report.figures.reproducibility import reproducibility
from translator.report.material import HeldOut, text_statistics
from translator.report.reading import read_metrics
from translator.runs.directory import RunDirectory
from translator.runs.hardware import hardware

HELD_OUT = HeldOut("test", [source for source, _ in TEST[:4]], [target for _, target in TEST[:4]], "en", "de")


def test_words_are_those_that_sacrebleu_compares() -> None:
    assert bleu_words("de")("Der Hund, müde.") == ["Der", "Hund", ",", "müde", "."]
    assert bleu_words("zh")("那只狗 runs.") == ["那", "只", "狗", "runs", "."]


def test_statistics_of_a_text() -> None:
    found = text_statistics(TRAIN, "en", "de")
    assert (found.num_pairs, found.is_whole) == (20, True)
    assert found.target_words["Mann"] == 5
    assert found.source_words.total() == 5 * (6 + 7 + 5 + 5)  # with the full stops
    assert found.source_lengths == Counter({5: 5, 6: 5, 4: 10})
    assert not text_statistics(TRAIN, "en", "de", at_most=3).is_whole
    late = text_statistics(TRAIN, "en", "de", is_late=lambda: True)
    assert (late.num_pairs, late.is_whole) == (0, False)


def test_lengths_are_in_the_unit_of_the_language() -> None:
    pairs = [("Really?", "真的吗?"), ("Butterflies fly.", "蝴蝶 在飞。")]
    found = text_statistics(pairs, "en", "zh")
    assert found.source_lengths == Counter({1: 1, 2: 1})
    assert found.target_lengths == Counter({4: 1, 5: 1})


def test_the_data_card_counts_what_is_there(small_run: Path) -> None:
    tokenizer = Tokenizer.load(small_run / "tokenizer")
    training = text_statistics(TRAIN, "en", "de")
    card = data_card({"cleaning": ["as it is"]}, HELD_OUT, training, tokenizer)
    assert card["cleaning"] == ["as it is"]
    assert card["training"]["num_pairs"] == 20
    assert card["training"]["num_target_types"] == len({w for _, t in TRAIN for w in bleu_words("de")(t)})
    for shares in card["lengths"]["shares"].values():
        assert sum(shares) == pytest.approx(1)
    starts, width = card["lengths"]["starts"], card["lengths"]["width"]
    short = sum(len(source.split()) < starts[1] + width for source in HELD_OUT.sources) / 4
    assert sum(card["lengths"]["shares"]["held-out source"][:2]) == pytest.approx(short)
    target = card["vocabulary"]["target"]
    ids = [piece for row in tokenizer.encode_target(HELD_OUT.references) for piece in row]
    words = [word for text in HELD_OUT.references for word in bleu_words("de")(text)]
    assert target["num_pieces"] == len(ids)
    assert target["pieces_per_word"] == len(ids) / len(words)
    assert target["share_used"] == len(set(ids)) / (tokenizer.target_vocab_size - 4)
    in_bytes = sum(name.startswith("<0x") for name in tokenizer.target_pieces(ids))
    assert in_bytes > 0
    assert target["share_bytes"] == in_bytes / len(ids)
    known = {word for _, text in TRAIN for word in bleu_words("de")(text)}
    assert target["share_words_in_training"] == sum(word in known for word in words) / len(words)
    assert target["share_types_in_training"] == len(set(words) & known) / len(set(words))


def test_pieces_are_those_of_text_as_the_run_normalises_it(small_run: Path) -> None:
    tokenizer = Tokenizer.load(small_run / "tokenizer")
    composed = HeldOut("test", ["The house."], ["\u00c4nna"], "en", "de")
    decomposed = HeldOut("test", ["The\u00ad house."], ["A\u0308nna"], "en", "de")
    training = text_statistics(TRAIN, "en", "de")
    expected = data_card({}, composed, training, tokenizer)["vocabulary"]
    assert data_card({}, decomposed, training, tokenizer, normalize_text)["vocabulary"] == expected
    assert data_card({}, decomposed, training, tokenizer)["vocabulary"] != expected


def test_curves_come_from_tensorboard_and_from_the_metrics(small_run: Path, tmp_path: Path) -> None:
    curves = learning_curves(RunDirectory(small_run))
    assert curves["train/loss"] == [(step, value + 1) for step, value in CURVE]
    assert curves["validation/loss"] == CURVE
    assert curves["validation/bleu"] == [(10, 100.0), (20, 200.0), (30, 300.0)]
    assert learning_curves(RunDirectory(tmp_path)) == {}
    with SummaryWriter(str(tmp_path / "tensorboard")) as writer:  # a run that is still being trained
        for step, value in ((1, 2.0), (2, float("nan")), (3, 1.0)):
            writer.add_scalar("validation/loss", value, step)
    assert learning_curves(RunDirectory(tmp_path)) == {"validation/loss": [(1, 2.0), (3, 1.0)]}


def test_long_curves_are_thinned_evenly() -> None:
    points = [(step, float(step)) for step in range(10_001)]
    thinned = thin(points)
    assert len(thinned) == MOST_POINTS
    assert (thinned[0], thinned[-1]) == (points[0], points[-1])
    gaps = {b[0] - a[0] for a, b in pairwise(thinned)}
    assert gaps <= {25, 26}


def test_reproducibility_figures_are_those_of_the_manifest(small_run: Path) -> None:
    run = RunDirectory(small_run)
    box = reproducibility(run, load_file(run.config))
    manifest = run.read_manifest()
    assert box["command"] == "python -m translator.train a=b"
    assert box["versions"] == manifest["versions"]
    assert box["hardware"] == manifest["hardware"]
    assert box["hardware"]["processor"] == hardware()["processor"]
    assert box["training"]["num_updates"] == 30
    assert "model_size: 16" in box["configuration"]


def test_damaged_metrics_are_named(tmp_path: Path) -> None:
    assert read_metrics(RunDirectory(tmp_path)) == {}
    (tmp_path / "metrics.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UserError, match=r"metrics\.json: damaged"):
        read_metrics(RunDirectory(tmp_path))
