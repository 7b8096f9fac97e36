"""BLEU by sentence length, beyond the lengths of training, for each scheme of positions."""

import argparse
from collections.abc import Sequence
from typing import Any

from translator.api import Translator
from translator.atlas.measure.plans import ALL_LENGTHS, POSITIONS, SEEDS, TRAINED_PIECES, length_runs
from translator.atlas.measure.small_runs import add_work_option, command, prepare_corpus, train
from translator.data.tokenizer import Tokenizer
from translator.evaluation.metrics import score_corpus
from translator.files.lines import read_lines

BUCKETS = ((7, 10), (11, 14), (15, 18), (19, 22), (23, 26), (27, 40))  # pieces of the longer side, with EOS
NUM_SENTENCES, NUM_QUICK = 150, 10  # of each bucket
NUM_BOOTSTRAP = 200


def add_options(parser: argparse.ArgumentParser) -> None:
    add_work_option(parser)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), metavar="N", help="default: 1")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    corpus = prepare_corpus(options.work)
    runs = length_runs(options.seeds, options.quick)
    folders = {key: train(options.work, run).path for key, run in runs.items()}
    sources, references = list(read_lines(corpus / "test.en")), list(read_lines(corpus / "test.de"))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in (*POSITIONS, ALL_LENGTHS)}
    num_sentences: list[int] = []
    for (name, seed), folder in folders.items():
        translator = Translator.load(folder, "cpu", beam_size=1)
        translator.max_pieces = 0  # a line longer than the training sentences would be translated in parts
        assert isinstance(translator.tokenizer, Tokenizer)
        buckets = bucket_sentences(
            translator.tokenizer, sources, references, NUM_QUICK if options.quick else NUM_SENTENCES
        )
        num_sentences = [len(bucket) for bucket in buckets]
        scores = [_score(translator, [sources[n] for n in one], [references[n] for n in one]) for one in buckets]
        found[name].append({"seed": seed, "command": command(runs[name, seed]), "scores": scores})
    return {
        "trained_pieces": TRAINED_PIECES,
        "buckets": [list(bucket) for bucket in BUCKETS],
        "num_sentences": num_sentences,
        "schemes": [{"name": name, "runs": results} for name, results in found.items()],
    }


def bucket_sentences(
    tokenizer: Tokenizer, sources: Sequence[str], references: Sequence[str], most: int
) -> list[list[int]]:
    """The first sentences of each bucket, by the longer side, which is what `data.max_pieces` limits."""
    sides = zip(tokenizer.encode_source(sources), tokenizer.encode_target(references), strict=True)
    lengths = [max(len(source), len(target) + 1) for source, target in sides]
    return [
        [number for number, length in enumerate(lengths) if shortest <= length <= longest][:most]
        for shortest, longest in BUCKETS
    ]


def _score(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> dict[str, float | None]:
    """BLEU with the 95 % interval of resampled sentences; nothing where a bucket is empty."""
    if not sources:
        return {"bleu": None, "low": None, "high": None}
    scores = score_corpus(
        translator.translate(sources), references, "de", metrics=("bleu",), num_bootstrap=NUM_BOOTSTRAP
    )
    bleu = scores.by_metric["bleu"]
    return {"bleu": bleu.value, "low": bleu.low, "high": bleu.high}
