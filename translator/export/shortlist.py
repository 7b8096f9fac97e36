"""A lexical shortlist: the few target pieces that each source piece may be translated to.

CTranslate2 then computes logits only for the pieces that the sentences of a batch may need.
Translation probabilities come from IBM Model 1 (Brown et al. 1993, section 4.1) on the pieces of the training corpus:

    t(f | e) ∝ Σ_pairs Σ_positions of f  t(f | e) / Σ_e' t(f | e')
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from translator.data.tokenizer import Tokenizer
from translator.errors import UserError
from translator.ids import EOS, NUM_SPECIAL

FILE = "vmap.txt"
MOST_LINKS = 20_000_000  # pairs of a source and a target position: a few hundred megabytes
NUM_ITERATIONS = 5
NUM_TRANSLATIONS = 40  # target pieces of each source piece
NUM_FREQUENT = 100  # target pieces that are always candidates
LEAST_PROBABILITY = 1e-4
CHUNK = 1_000  # pairs that are split into pieces together


def write_shortlist(pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer, path: Path) -> int:
    """Writes the shortlist as CTranslate2 reads it; returns the number of pairs it was learned from."""
    sources, targets = _encoded(pairs, tokenizer)
    if not sources:
        raise UserError("--shortlist: the run's training corpus has no pair with text on both sides; leave it out")
    source_ids, target_ids, probabilities = translation_table(sources, targets)
    likely = probabilities >= LEAST_PROBABILITY
    source_ids, target_ids, probabilities = source_ids[likely], target_ids[likely], probabilities[likely]
    source_names = tokenizer.source_pieces(range(tokenizer.source_vocab_size))
    target_names = tokenizer.target_pieces(range(tokenizer.target_vocab_size))
    number_of = {name: number for number, name in enumerate(target_names)}
    counts = np.bincount(np.concatenate(targets), minlength=len(target_names))
    frequent = np.argsort(-counts, kind="stable")[:NUM_FREQUENT].tolist()
    lines = [_line("", [EOS, *frequent], target_names)]
    order = np.lexsort((-probabilities, source_ids))  # by source piece, the likeliest first
    starts = np.searchsorted(source_ids[order], np.arange(len(source_names) + 1))
    for piece in range(NUM_SPECIAL, len(source_names)):
        name = source_names[piece]
        best = target_ids[order[starts[piece] : starts[piece + 1]][:NUM_TRANSLATIONS]].tolist()
        same = [number_of[name]] if name in number_of else []  # names and figures are copied
        if (best or same) and not any(character.isspace() for character in name):
            lines.append(_line(name, [*same, *best], target_names))
    path.write_text("".join(lines), encoding="utf-8")
    return len(sources)


def translation_table(
    sources: Sequence[np.ndarray], targets: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Source pieces, target pieces and t(target | source) for all that occur together, after some steps of EM."""
    num_targets = 1 + int(max(target.max() for target in targets))
    lengths = [(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    pairs = zip(sources, targets, strict=True)
    keys = np.concatenate([(source * num_targets + target[:, None]).ravel() for source, target in pairs])
    # Every target position distributes its count of one among the source positions of its sentence.
    positions = np.repeat(
        np.arange(sum(target for _, target in lengths)), np.repeat(*np.array(lengths, dtype=np.int64).T)
    )
    found, links = np.unique(keys, return_inverse=True)
    source_ids, target_ids = found // num_targets, found % num_targets
    probabilities = np.ones(len(found))
    for _ in range(NUM_ITERATIONS):
        weights = probabilities[links]
        weights /= np.bincount(positions, weights)[positions]
        counts = np.bincount(links, weights, minlength=len(found))
        probabilities = counts / np.bincount(source_ids, counts)[source_ids]
    return source_ids, target_ids, probabilities


def _encoded(pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The pieces of the first pairs, until MOST_LINKS is reached."""
    sources: list[np.ndarray] = []
    targets: list[np.ndarray] = []
    num_links = 0
    chunk: list[tuple[str, str]] = []

    def add() -> int:
        source_rows = tokenizer.encode_source([source for source, _ in chunk])
        target_rows = tokenizer.encode_target([target for _, target in chunk])
        chunk.clear()
        added = 0
        for source, target in zip(source_rows, target_rows, strict=True):
            if len(source) > 1 and target:
                sources.append(np.array(source[:-1], dtype=np.int64))  # without EOS
                targets.append(np.array(target, dtype=np.int64))
                added += (len(source) - 1) * len(target)
        return added

    for pair in pairs:
        chunk.append(pair)
        if len(chunk) == CHUNK:
            num_links += add()
        if num_links >= MOST_LINKS:
            return sources, targets
    add()
    return sources, targets


def _line(source: str, targets: Sequence[int], names: Sequence[str]) -> str:
    chosen = dict.fromkeys(names[target] for target in targets)  # each once, in order
    return source + "\t" + " ".join(name for name in chosen if not any(map(str.isspace, name))) + "\n"
