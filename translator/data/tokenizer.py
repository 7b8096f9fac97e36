"""SentencePiece models trained in-process, with the special ids of `translator.ids`.

Decoding restores the text exactly: nothing is normalised here (cleaning does that), leading, trailing and repeated
spaces are kept, and with byte fallback a character that is not in the vocabulary becomes its UTF-8 bytes. Without byte
fallback, unknown characters are lost, and "▁" (U+2581), which SentencePiece uses for the space, becomes a space. Lone
surrogates are not valid Unicode text and cannot be encoded.
"""

import hashlib
import io
import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any, Self

import sentencepiece

from translator.data.bpe_dropout import BpeDropout
from translator.data.subword_sampling import WORD_START, SubwordSampler, UnigramSampling
from translator.errors import UserError
from translator.files.atomic import read_json
from translator.files.cache import made_folder
from translator.files.explain import explain_damage
from translator.ids import BOS, EOS, NUM_BYTES, NUM_SPECIAL, PAD, UNK

logger = logging.getLogger(__name__)

FORMAT = 1  # of the saved folder; raising it retrains cached tokenizers
DESCRIPTION = "tokenizer.json"
JOINT_MODEL, SEPARATE_MODELS = "joint.model", ["source.model", "target.model"]
SAMPLERS = {"bpe": BpeDropout, "unigram": UnigramSampling}
# The trained unigram model depends on the number of threads, so the number is the same on every machine.
NUM_TRAINING_THREADS = 4
MAX_TRAINING_PAIRS = 2_000_000
MAX_SENTENCE_BYTES = 1_000_000  # SentencePiece skips longer ones; its default of 4,192 is too low for paragraphs
MANY_TEXTS = 64  # for fewer it does not pay to start threads
# Unicode noncharacters, one of which replaces each "▁" in the text while SentencePiece encodes it.
NONCHARACTERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]


@dataclass(frozen=True)
class TokenizerOptions:
    kind: str = "bpe"  # or unigram, char
    vocab_size: int = 8_000
    joint: bool = True
    byte_fallback: bool = True
    character_coverage: float = 1.0
    seed: int = 1  # for choosing training pairs if there are more than MAX_TRAINING_PAIRS
    tags: tuple[str, ...] = ()  # pieces such as <2de>, which no text is split into


class Tokenizer:
    """One SentencePiece model for both languages, or one for each."""

    def __init__(self, kind: str, models: Sequence[bytes]) -> None:
        assert len(models) in (1, 2)
        self.kind = kind
        self.joint = len(models) == 1
        self.num_threads = 1  # that split many texts; what they are split into does not depend on it
        self._models = [bytes(model) for model in models]
        self._processors = [sentencepiece.SentencePieceProcessor(model_proto=model) for model in self._models]
        self._source, self._target = self._processors[0], self._processors[-1]
        self._samplers: dict[tuple[int, float], SubwordSampler] = {}
        for processor in self._processors:
            special = processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()
            if special != (PAD, UNK, BOS, EOS):
                raise ValueError(f"ids {special} of pad, unk, bos and eos, not {(PAD, UNK, BOS, EOS)}")

    @classmethod
    def train(
        cls,
        pairs: Iterable[tuple[str, str]],
        *,
        kind: str = "bpe",
        vocab_size: int = 8_000,
        joint: bool = True,
        byte_fallback: bool = True,
        character_coverage: float = 1.0,
        seed: int = 1,
        tags: Sequence[str] = (),
        num_threads: int = NUM_TRAINING_THREADS,
    ) -> Self:
        """Learns the pieces from the pairs, or from a random sample of two million if there are more.

        Text that yields fewer pieces than `vocab_size` gives a smaller vocabulary, with a warning; a `vocab_size` too
        small for the characters of the text is rejected. (A `char` vocabulary with byte fallback just takes the most
        frequent ones.) The same pairs and options give the same tokenizer; unigram also needs the same `num_threads`.

        Each of the `tags` is a piece of its own, right after the special ones. Only `tag_ids` leads to it: a text that
        contains its name is split like any other, and decoding skips it.
        """
        chosen = _choose(pairs, MAX_TRAINING_PAIRS, seed)
        sides = (
            [[text for pair in chosen for text in pair]]
            if joint
            else [list(side) for side in zip(*chosen, strict=True)]
        )
        if not chosen or not all(any(map(str.strip, side)) for side in sides):
            raise UserError("data.train: no text is left to train the tokenizer on; see the cleaning report")
        logger.info("training the tokenizer on %s pairs", f"{len(chosen):,}")
        options = TokenizerOptions(kind, vocab_size, joint, byte_fallback, character_coverage, seed, tuple(tags))
        return cls(kind, [_train_model(side, options, num_threads) for side in sides])

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The tokenizer of the folder, refused where its models are not those that were saved."""
        path = folder / DESCRIPTION
        with explain_damage(path, RuntimeError):
            description = read_json(path)
            if not isinstance(description["format"], int) or description["format"] < 1:
                raise ValueError(f"format {description['format']}")
            if description["format"] > FORMAT:
                raise UserError(
                    f"{path}: written by a newer version of translator (format {description['format']}, this one knows "
                    f"{FORMAT}); update translator"
                )
            names: list[str] = description["models"]
            if names not in ([JOINT_MODEL], SEPARATE_MODELS):
                raise ValueError(f"models {names}")
            models = [(folder / name).read_bytes() for name in names]
            if _fingerprint(description["kind"], models) != description["fingerprint"]:
                raise ValueError(f"{' and '.join(names)} do not match the fingerprint")
            return cls(description["kind"], models)

    def save(self, folder: Path) -> None:
        """Writes plain SentencePiece models, which other programs can read too, and a description of them."""
        folder.mkdir(parents=True, exist_ok=True)
        names = [JOINT_MODEL] if self.joint else SEPARATE_MODELS
        for name, model in zip(names, self._models, strict=True):
            (folder / name).write_bytes(model)
        description = {"format": FORMAT, "kind": self.kind, "models": names, "fingerprint": self.fingerprint}
        (folder / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")

    @property
    def source_model(self) -> bytes:
        """SentencePiece's own file for the source, for other programs."""
        return self._models[0]

    @property
    def target_model(self) -> bytes:
        return self._models[-1]

    @property
    def source_vocab_size(self) -> int:
        return self._source.get_piece_size()

    @property
    def target_vocab_size(self) -> int:
        return self._target.get_piece_size()

    @property
    def tag_ids(self) -> dict[str, int]:
        """The tags that are reserved, such as <2de>, in both vocabularies under the same ids."""
        ids = takewhile(self._source.is_control, range(NUM_SPECIAL, self.source_vocab_size))
        return {self._source.id_to_piece(i): i for i in ids}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the kind and the models, which determine what a tokenizer does."""
        return _fingerprint(self.kind, self._models)

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces, then EOS."""
        return [[*row, EOS] for row in _encode(self._source, texts, self.num_threads)]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces alone: batches add BOS and EOS."""
        return _encode(self._target, texts, self.num_threads)

    def resample_source(self, rows: Sequence[Sequence[int]], sampling: float, seeds: Sequence[str]) -> list[list[int]]:
        """Resegments the texts: BPE-dropout with probability `sampling`, or unigram sampling with `sampling` as the
        exponent of the probabilities (the smaller, the more varied). The result of a row depends on its seed alone."""
        return self._sampler(0, sampling).sample_rows(rows, [f"source {seed}" for seed in seeds])

    def resample_target(self, rows: Sequence[Sequence[int]], sampling: float, seeds: Sequence[str]) -> list[list[int]]:
        last = len(self._processors) - 1
        return self._sampler(last, sampling).sample_rows(rows, [f"target {seed}" for seed in seeds])

    def _sampler(self, model: int, sampling: float) -> SubwordSampler:
        if self.kind not in SAMPLERS:
            raise ValueError(f"a tokenizer of kind {self.kind} splits a text in one way only")
        key = model, sampling
        if key not in self._samplers:
            self._samplers[key] = SAMPLERS[self.kind](self._processors[model], sampling)
        return self._samplers[key]

    def decode_target(self, rows: Iterable[Sequence[int]]) -> list[str]:
        """The texts; special ids are skipped, and bytes that are not valid UTF-8 become U+FFFD."""
        ordinary = [[int(i) for i in row if i >= NUM_SPECIAL] for row in rows]
        texts: list[str] = self._target.decode(ordinary, num_threads=1) if ordinary else []
        return texts

    def source_pieces(self, ids: Iterable[int]) -> list[str]:
        """The pieces as SentencePiece writes them, with "▁" for the space before a word."""
        return [self._source.id_to_piece(int(i)) for i in ids]

    def target_pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._target.id_to_piece(int(i)) for i in ids]


def train_or_load_tokenizer(
    cache_dir: Path, pairs_fingerprint: str, options: TokenizerOptions, pairs: Iterable[tuple[str, str]]
) -> Tokenizer:
    """The tokenizer for these pairs and options, trained unless it is cached."""
    described = {name: value for name, value in asdict(options).items() if name != "tags" or value}
    key = json.dumps([FORMAT, sentencepiece.__version__, pairs_fingerprint, described], sort_keys=True)
    folder = cache_dir / f"tokenizer-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    made_folder(folder, lambda temporary: Tokenizer.train(pairs, **asdict(options)).save(temporary), DESCRIPTION)
    return Tokenizer.load(folder)


def _fingerprint(kind: str, models: Sequence[bytes]) -> str:
    digests = [hashlib.sha256(model).hexdigest() for model in models]
    return hashlib.sha256(" ".join([kind, *digests]).encode()).hexdigest()


def _choose(pairs: Iterable[tuple[str, str]], max_pairs: int, seed: int) -> list[tuple[str, str]]:
    """All pairs, or `max_pairs` of them chosen at random in one pass (Vitter's Algorithm R)."""
    random = Random(seed)
    chosen: list[tuple[str, str]] = []
    for number, pair in enumerate(pairs):
        if number < max_pairs:
            chosen.append(pair)
        elif (place := random.randrange(number + 1)) < max_pairs:
            chosen[place] = pair
    return chosen


def _train_model(texts: list[str], options: TokenizerOptions, num_threads: int) -> bytes:
    if options.kind == "char" and not options.byte_fallback:
        _require_room(texts, options)
    try:
        model = _run_trainer(texts, options, num_threads)
    except RuntimeError:
        _require_room(texts, options)
        raise
    size = _num_pieces(model)
    if size < options.vocab_size and options.kind != "char":
        logger.warning("tokenizer.vocab_size=%d: the training text yields only %d pieces", options.vocab_size, size)
    return model


def _require_room(texts: list[str], options: TokenizerOptions) -> None:
    """Rejects a vocabulary that has no room for the characters of the text."""
    # A character model with room for all of them has exactly the pieces that every model must have.
    enough = len(set().union(*texts)) + NUM_SPECIAL + len(options.tags) + NUM_BYTES + 1  # and the space, in any case
    least = _num_pieces(_run_trainer(texts, replace(options, kind="char", vocab_size=enough), num_threads=1))
    if options.vocab_size < least:
        raise UserError(
            f"tokenizer.vocab_size={options.vocab_size}: the characters of the training text alone need {least}; "
            f"use at least {least}, or a lower tokenizer.character_coverage (now {options.character_coverage})"
        )


def _num_pieces(model: bytes) -> int:
    return sentencepiece.SentencePieceProcessor(model_proto=model).get_piece_size()


def _run_trainer(texts: list[str], options: TokenizerOptions, num_threads: int) -> bytes:
    writer = io.BytesIO()
    tags: dict[str, Any] = {"control_symbols": list(options.tags)} if options.tags else {}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=writer,
        model_type=options.kind,
        vocab_size=options.vocab_size,
        hard_vocab_limit=False,
        byte_fallback=options.byte_fallback,
        character_coverage=options.character_coverage,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=MAX_SENTENCE_BYTES,
        num_threads=num_threads,
        minloglevel=2,
        **tags,
    )
    return writer.getvalue()


def _encode(processor: sentencepiece.SentencePieceProcessor, texts: Sequence[str], num_threads: int) -> list[list[int]]:
    rows = processor.encode(list(texts), num_threads=num_threads if len(texts) >= MANY_TEXTS else 1)
    for number, text in enumerate(texts):
        if WORD_START in text:
            rows[number] = _encode_mark(processor, text)
    result: list[list[int]] = rows
    return result


def _encode_mark(processor: sentencepiece.SentencePieceProcessor, text: str) -> list[int]:
    """Encodes a text that contains SentencePiece's own mark for the space: the mark is kept as its UTF-8 bytes."""
    free = [c for c in NONCHARACTERS if c not in text and processor.piece_to_id(c) == UNK]
    stand_in, mark = (
        [processor.piece_to_id(f"<0x{byte:02X}>") for byte in character.encode()] for character in (free[0], WORD_START)
    )
    if UNK in mark:  # no byte fallback
        result: list[int] = processor.encode(text)
        return result
    ids: list[int] = []
    for i in processor.encode(text.replace(WORD_START, free[0])):
        ids.append(i)
        if ids[-3:] == stand_in:
            ids[-3:] = mark
    return ids
