"""The attention of a trained LSTM beside the true alignment, and how it gets there during training.

Letters: Wt target words, Ws source words.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from translator.atlas.figures.held_out import sample, tokenizer_of
from translator.atlas.material import Material, TrainedRun
from translator.atlas.shipped import shipped
from translator.data.tokenizer import Tokenizer
from translator.decoding.alignment import piece_words, word_attention
from translator.decoding.line_translator import LineTranslator
from translator.errors import UserError
from translator.evaluation.alignment import GoldAlignment
from translator.languages import alignment_tokens
from translator.report.figures.attention import attention_figures
from translator.report.figures.curves import learning_curves
from translator.report.forced_pass import force_references
from translator.report.material import ForcedSentence, HeldOut
from translator.runs.directory import RunDirectory
from translator.runs.model import build_model
from translator.runs.weights import read_tensors, restore_weights

NUM_SENTENCES, NUM_QUICK = 200, 40
NUM_MAPS = 3
FEWEST_WORDS, MOST_WORDS = 7, 13  # of a sentence that is shown


def bahdanau(material: Material) -> dict[str, Any] | None:
    """Measured on the run that is given and has its corpora, or else the measurement that is shipped."""
    if material.lstm_run is None or material.lstm_run.held_out is None:
        return shipped("bahdanau")
    return {"provenance": None, "figures": measure_bahdanau(material.lstm_run, quick=material.quick)}


def measure_bahdanau(run: TrainedRun, *, quick: bool) -> dict[str, Any]:
    held_out, lines = sample(run, NUM_QUICK if quick else NUM_SENTENCES, "--lstm-run")
    if held_out.gold is None:
        raise UserError(
            f"--lstm-run {run.folder}: {held_out.name} has no gold alignments (PREFIX.{held_out.source_language}-"
            f"{held_out.target_language}.align), which this chapter compares with; the demo corpus has them"
        )
    sentences = force_references(run.translator, held_out.sources, held_out.references)
    return {
        "held_out": held_out.name.partition(" (")[0],  # test or validation, without the path of its files
        "num_sentences": len(sentences),
        "alignment": _error(sentences, tokenizer_of(run), held_out.gold),
        "maps": _maps(sentences, lines, tokenizer_of(run), held_out.gold),
        "curve": _curve(run, held_out),
        "validation": learning_curves(RunDirectory(run.folder)).get("validation/bleu", []),
    }


def crossing_share(gold: GoldAlignment) -> float:
    """The share of pairs of sure links that cross: 0 where both languages have the same word order."""
    links = sorted(gold.sure)
    pairs = [
        (one, other)
        for n, one in enumerate(links)
        for other in links[n + 1 :]
        if one[0] != other[0] and one[1] != other[1]
    ]
    return sum(one[1] > other[1] for one, other in pairs) / len(pairs) if pairs else 0.0


def _error(sentences: Sequence[ForcedSentence], tokenizer: Tokenizer, gold: Sequence[GoldAlignment]) -> dict[str, Any]:
    figures = attention_figures(sentences, tokenizer, gold)
    assert figures is not None, "an LSTM always has attention"
    result: dict[str, Any] = figures["alignment"]["of_mean"]
    return result


def _curve(run: TrainedRun, held_out: HeldOut) -> list[tuple[int, float]]:
    """The alignment error of every checkpoint that the run has kept: (update, error rate)."""
    assert held_out.gold is not None
    folders = checkpoint_folders(run)
    model = build_model(run.config.model, tokenizer_of(run).source_vocab_size, tokenizer_of(run).target_vocab_size)
    translator = LineTranslator(model, tokenizer_of(run), "cpu", normalize=run.translator.normalize)
    result = []
    for update, folder in folders:
        average = folder / "ema.safetensors"
        weights = average if average.exists() else folder / "model.safetensors"
        restore_weights(model, read_tensors(weights, needs_checksum=True), str(weights))
        sentences = force_references(translator, held_out.sources, held_out.references)
        result.append((update, _error(sentences, tokenizer_of(run), held_out.gold)["error_rate"]))
    return result


def checkpoint_folders(run: TrainedRun) -> list[tuple[int, Path]]:
    """The checkpoints of a run and their updates, in order."""
    folders = sorted((run.folder / "checkpoints").glob("step-*"))
    if not folders:
        raise UserError(
            f"--lstm-run {run.folder}: has no checkpoints (checkpoints/step-…), whose alignments this chapter "
            "compares; give a run that still has them"
        )
    return [(int(folder.name.removeprefix("step-")), folder) for folder in folders]


def _maps(
    sentences: Sequence[ForcedSentence], lines: Sequence[int], tokenizer: Tokenizer, gold: Sequence[GoldAlignment]
) -> list[dict[str, Any]]:
    """The sentences whose word order differs most between the languages: attention and truth, word by word."""
    fitting: list[dict[str, Any]] = []
    for sentence in sentences:
        source_words, source_shares = piece_words(tokenizer.source_pieces(sentence.source_ids[:-1]), alignment_tokens)
        target_words, target_shares = piece_words(tokenizer.target_pieces(sentence.target_ids[:-1]), alignment_tokens)
        if not all(FEWEST_WORDS <= len(words) <= MOST_WORDS for words in (source_words, target_words)):
            continue
        assert sentence.attention is not None
        weights = torch.from_numpy(sentence.attention[0, 0, :-1, :-1]).float()
        attention = word_attention(weights, source_shares, target_shares)  # (Wt, Ws)
        truth = gold[sentence.index]
        fitting.append(
            {
                "line": lines[sentence.index],
                "source": source_words,
                "target": target_words,
                "attention": [[round(value, 3) for value in row] for row in attention.tolist()],
                "gold": [
                    [int((s, t) in truth.sure) for s in range(len(source_words))] for t in range(len(target_words))
                ],
                "num_right": sum((best, t) in truth.possible for t, best in enumerate(attention.argmax(1).tolist())),
                "crossing_share": crossing_share(truth),
            }
        )
    return sorted(fitting, key=lambda one: -one["crossing_share"])[:NUM_MAPS]
