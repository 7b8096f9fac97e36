"""From attention between pieces to alignment between words."""

import re
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

WORD_START = "\u2581"  # SentencePiece's mark for a space
SplitWords = Callable[[str], list[str]]
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def byte_of(piece: str) -> bytes | None:
    """The byte that a piece stands for; None for all other pieces."""
    byte = _BYTE.fullmatch(piece)
    return None if byte is None else bytes.fromhex(byte.group(1))


def piece_texts(pieces: Sequence[str]) -> list[str]:
    """The text of each piece. The bytes of a character count as text of the piece that completes it."""
    texts: list[str] = []
    pending = b""
    for piece in pieces:
        byte = byte_of(piece)
        if byte is None:
            pending = b""
            texts.append(piece.replace(WORD_START, " "))
            continue
        pending += byte
        try:
            texts.append(pending.decode("utf-8"))
            pending = b""
        except UnicodeDecodeError:
            texts.append("")
    return texts


def piece_words(pieces: Sequence[str], split_words: SplitWords) -> tuple[list[str], Tensor]:
    """The W words of a text given as P pieces, and how much of each piece belongs to each word: (W, P).

    `split_words` gives the words of a text in order, and leaves out nothing but white space. A piece without a visible
    character, such as a lone space, belongs to no word.
    """
    texts = piece_texts(pieces)
    words = split_words("".join(texts))
    owners = [word for word, token in enumerate(words) for character in token if not character.isspace()]
    shares = torch.zeros(len(words), len(pieces))
    position = 0
    for column, text in enumerate(texts):
        visible = sum(not character.isspace() for character in text)
        for word in owners[position : position + visible]:
            shares[word, column] += 1 / visible
        position += visible
    # The first bytes of a character belong to the same word as its last.
    for column in range(len(pieces) - 2, -1, -1):
        if _BYTE.fullmatch(pieces[column]) and not texts[column]:
            shares[:, column] = shares[:, column + 1]
    return words, shares


def word_attention(attention: Tensor, source_shares: Tensor, target_shares: Tensor) -> Tensor:
    """Attention (T, S) between pieces as attention (target words, source words).

    The weights of a source word's pieces are added up; those of a target word's pieces are averaged.
    """
    rows = target_shares / target_shares.sum(1, keepdim=True).clamp_min(1e-9)  # (Wt, T)
    return rows @ attention.to(rows.dtype) @ source_shares.T  # (Wt, Ws)


def link_words(
    source_pieces: Sequence[str], target_pieces: Sequence[str], attention: Tensor, split_words: SplitWords
) -> tuple[list[str], list[str], list[int]]:
    """The words of both sides, and for each target word the number of the source word it looks at most.

    `attention` is (target pieces, source pieces); rows and columns of EOS must have been left out. If a side has no
    words, nothing is linked.
    """
    source_words, source_shares = piece_words(source_pieces, split_words)
    target_words, target_shares = piece_words(target_pieces, split_words)
    links: list[int] = []
    if source_words and target_words:
        links = word_attention(attention, source_shares, target_shares).argmax(1).tolist()
    return source_words, target_words, links


def align_words(
    source_pieces: Sequence[str], target_pieces: Sequence[str], attention: Tensor, split_words: SplitWords
) -> tuple[list[tuple[int, int]], int, int]:
    """The same as (source, target) pairs, and the numbers of words."""
    source_words, target_words, links = link_words(source_pieces, target_pieces, attention, split_words)
    pairs = sorted((source, target) for target, source in enumerate(links))
    return pairs, len(source_words), len(target_words)


def to_pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"{source}-{target}" for source, target in pairs)
