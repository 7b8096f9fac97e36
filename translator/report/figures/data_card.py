"""The data behind a run: sizes, lengths, cleaning, vocabulary and leakage."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from translator.data.tokenizer import Tokenizer
from translator.evaluation.words import bleu_words
from translator.ids import NUM_BYTES, NUM_SPECIAL, UNK
from translator.report.material import LONGEST_COUNTED, HeldOut, TextStatistics, count_lengths

MOST_BARS = 25


def data_card(
    manifest: dict[str, Any],
    held_out: HeldOut,
    training: TextStatistics | None,
    tokenizer: Tokenizer,
    normalize: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """`normalize` is what the run does to every text before it is split into pieces."""
    return {
        "languages": [held_out.source_language, held_out.target_language],
        "held_out": {"name": held_out.name, "num_pairs": len(held_out)},
        "training": _training(training) if training is not None else None,
        "lengths": _lengths(held_out, training),
        "cleaning": manifest.get("cleaning", []),
        "vocabulary": _vocabulary(held_out, training, tokenizer, normalize or (lambda text: text)),
    }


def _training(training: TextStatistics) -> dict[str, Any]:
    return {
        "num_pairs": training.num_pairs,
        "is_whole": training.is_whole,
        "num_source_words": training.source_words.total(),
        "num_target_words": training.target_words.total(),
        "num_source_types": len(training.source_words),
        "num_target_types": len(training.target_words),
    }


def _lengths(held_out: HeldOut, training: TextStatistics | None) -> dict[str, Any]:
    """Histograms of sentence lengths as shares of the sentences, over the same bars for all."""
    counts = {
        "held-out source": count_lengths(held_out.sources, held_out.source_language),
        "held-out target": count_lengths(held_out.references, held_out.target_language),
    }
    if training is not None:
        counts = {"training source": training.source_lengths, "training target": training.target_lengths, **counts}
    longest = max((max(of_text, default=0) for of_text in counts.values()), default=0)
    width = max(1, -(-(longest + 1) // MOST_BARS))
    starts = list(range(0, longest + 1, width))
    shares = {
        name: [
            sum(of_text[length] for length in range(start, start + width)) / max(1, of_text.total()) for start in starts
        ]
        for name, of_text in counts.items()
    }
    return {"width": width, "starts": starts, "shares": shares, "longest_counted": LONGEST_COUNTED}


def _vocabulary(
    held_out: HeldOut, training: TextStatistics | None, tokenizer: Tokenizer, normalize: Callable[[str], str]
) -> dict[str, Any]:
    sides = {
        "source": (held_out.sources, held_out.source_language, tokenizer.source_vocab_size),
        "target": (held_out.references, held_out.target_language, tokenizer.target_vocab_size),
    }
    figures: dict[str, Any] = {"kind": tokenizer.kind, "is_joint": tokenizer.joint}
    for side, (raw, language, size) in sides.items():
        texts = [normalize(text) for text in raw]
        encode = tokenizer.encode_source if side == "source" else tokenizer.encode_target
        ids = [piece for row in encode(texts) for piece in row if piece >= NUM_SPECIAL or piece == UNK]
        split = bleu_words(language)
        words = Counter(word for text in texts for word in split(text))
        figures[side] = {
            "size": size,
            "num_pieces": len(ids),
            "num_words": words.total(),
            "pieces_per_word": len(ids) / max(1, words.total()),
            "share_used": len(set(ids)) / max(1, size - NUM_SPECIAL),
            "share_unknown": ids.count(UNK) / max(1, len(ids)),
            "share_bytes": _share_of_bytes(ids, tokenizer, side),
        }
        if training is not None:
            known = training.source_words if side == "source" else training.target_words
            figures[side]["share_words_in_training"] = _share(words, known, by_type=False)
            figures[side]["share_types_in_training"] = _share(words, known, by_type=True)
    return figures


def _share_of_bytes(ids: Sequence[int], tokenizer: Tokenizer, side: str) -> float:
    """Pieces that are single bytes of characters outside the vocabulary."""
    name = tokenizer.source_pieces if side == "source" else tokenizer.target_pieces
    first = range(NUM_SPECIAL, NUM_SPECIAL + NUM_BYTES)  # where SentencePiece puts them
    is_byte = {piece for piece in set(ids) if piece in first and name([piece])[0].startswith("<0x")}
    return sum(piece in is_byte for piece in ids) / max(1, len(ids))


def _share(words: Counter[str], known: Counter[str], *, by_type: bool) -> float:
    """The share of the words, or of the different ones, that occur in training."""
    total = len(words) if by_type else words.total()
    return sum(1 if by_type else count for word, count in words.items() if word in known) / max(1, total)
