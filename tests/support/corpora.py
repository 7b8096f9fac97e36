"""Small in-memory corpora, and tokenizers trained on them once per process."""

import random
from collections.abc import Iterator
from functools import cache

from translator.data.corpus import Corpus
from translator.data.tokenizer import Tokenizer
from translator.files.fingerprints import FileFingerprint

NUMBERED_PAIRS = [
    (f"sentence number {i}" + " very" * (i % 9), f"Satz Nummer {i}" + " sehr" * (i % 7)) for i in range(300)
]
ANIMAL_PAIRS = [
    (f"the {colour} {animal} sees {number} small houses", f"{kind} {tier} sieht {zahl} kleine Häuser")
    for colour, kind in (("black", "schwarze"), ("white", "weiße"), ("green", "grüne"))
    for animal, tier in (("dog", "Hunde"), ("cat", "Katzen"), ("horse", "Pferde"), ("bird", "Vögel"))
    for number, zahl in (("two", "zwei"), ("three", "drei"), ("seven", "sieben"), ("twelve", "zwölf"))
]
KINDS = {"bpe": 400, "unigram": 330, "char": 400}  # tokenizer kind to vocabulary size

# Syllables of made-up words, which a unigram model can split in many ways.
SYLLABLES = ["ba", "kan", "to", "mir", "sel", "u", "lo", "den", "ri", "pas", "ge", "on"]
MADE_UP_PAIRS = [
    (" ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(8)), "a")
    for rng in [random.Random(5)]
    for _ in range(300)
]


@cache
def numbered_tokenizer() -> Tokenizer:
    return Tokenizer.train(NUMBERED_PAIRS, vocab_size=320)


@cache
def animal_tokenizer(kind: str) -> Tokenizer:
    return Tokenizer.train(ANIMAL_PAIRS, kind=kind, vocab_size=KINDS[kind])


@cache
def made_up_tokenizer() -> Tokenizer:
    return Tokenizer.train(MADE_UP_PAIRS, kind="unigram", vocab_size=400)


def sample_target(tokenizer: Tokenizer, texts: list[str], sampling: float, seeds: list[str]) -> list[list[int]]:
    return tokenizer.resample_target(tokenizer.encode_target(texts), sampling, seeds)


class ListCorpus(Corpus):
    """Pairs in memory; counts how many times they are read."""

    def __init__(self, pairs: list[tuple[str, str]], fingerprint: str = "a") -> None:
        self.name = "train (a list)"
        self.pairs = pairs
        self.num_readings = 0
        self._fingerprint = fingerprint

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self.num_readings += 1
        yield from self.pairs

    @property
    def files(self) -> list[FileFingerprint]:
        return []

    @property
    def fingerprint(self) -> str:
        return self._fingerprint
