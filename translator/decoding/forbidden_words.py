"""The ways in which a vocabulary can spell a word."""

from collections.abc import Sequence

from translator.decoding.alignment import WORD_START
from translator.decoding.interfaces import TextTokenizer
from translator.ids import NUM_SPECIAL

MAX_SPELLINGS = 2_000  # of a word; those with the fewest pieces come first, and the others are hardly ever written
Spellings = tuple[tuple[int, ...], ...]


def spellings(text: str, pieces: dict[str, int]) -> list[tuple[int, ...]]:
    """The sequences of pieces that write the text, those with the fewest pieces first."""
    longest = max(map(len, pieces), default=0)
    found: list[tuple[int, ...]] = []
    begun: list[tuple[int, tuple[int, ...]]] = [(0, ())]  # how much is written, and with which pieces
    while begun and len(found) < MAX_SPELLINGS:
        longer = []
        for position, ids in begun:
            for end in range(min(len(text), position + longest), position, -1):
                piece = pieces.get(text[position:end])
                if piece is not None and end == len(text):
                    found.append((*ids, piece))
                elif piece is not None:
                    longer.append((end, (*ids, piece)))
        begun = longer[:MAX_SPELLINGS]
    return found[:MAX_SPELLINGS]


def forbidden_sequences(words: Sequence[str], tokenizer: TextTokenizer, without_spaces: bool) -> Spellings:
    """The sequences of pieces to forbid so that neither these words nor words that begin with them are written.

    In languages written without spaces they are forbidden anywhere in the text.
    """
    names = tokenizer.target_pieces(range(NUM_SPECIAL, tokenizer.target_vocab_size))
    pieces = {name: number for number, name in enumerate(names, start=NUM_SPECIAL)}
    sequences: set[tuple[int, ...]] = set()
    for word in words:
        text = WORD_START + word.strip().replace(" ", WORD_START)
        sequences.update(spellings(text, pieces))
        if without_spaces:
            sequences.update(spellings(text[1:], pieces))
        (usual,) = tokenizer.encode_target([word.strip()])  # perhaps with bytes, which `spellings` does not use
        if usual and (without_spaces or tokenizer.target_pieces(usual)[0].startswith(WORD_START)):
            sequences.add(tuple(usual))
    return tuple(sorted(sequences))
