"""Exports a run to CTranslate2: the model, its vocabularies, and the SentencePiece models that go with them."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import ctranslate2
import sentencepiece

from translator.export.ctranslate2_model import MAX_POSITIONS, convert, supported
from translator.export.folder import SENTENCEPIECE_FILES, TRANSLATION, save_sentencepiece, translation_settings
from translator.export.model_card import BY_PROGRAM, line_program
from translator.export.sample import SampleSearch, Written
from translator.files.atomic import write_json
from translator.ids import BOS, NUM_SPECIAL, PAD
from translator.runs.directions import directions_of
from translator.runs.loading import LoadedRun

__all__ = ["NORMALIZATION", "PACKAGES", "precision", "supported", "translate", "usage", "write"]

PACKAGES = "ctranslate2 sentencepiece"
USAGE = """
import unicodedata

import ctranslate2
import sentencepiece

folder = "FOLDER"
source = sentencepiece.SentencePieceProcessor(f"{folder}/source.spm")
target = sentencepiece.SentencePieceProcessor(f"{folder}/target.spm")
translator = ctranslate2.Translator(folder)

line = "Hello!"
pieces = source.encode(" ".join(unicodedata.normalize("NFC", line).split()), out_type=str)
options = {"beam_size": 5, "length_penalty": 1, "max_decoding_length": 200, "max_input_length": 0}
output = target.piece_to_id(translator.translate_batch([pieces], **options)[0].hypotheses[0])
print(target.decode([piece for piece in output if piece >= 4]))  # lower ids are special
"""
NORMALIZATION = BY_PROGRAM


def usage(run: LoadedRun, *, shortlist: bool = False) -> str:
    program = line_program(USAGE, normalizes=run.config.data.cleaning.normalize)
    if shortlist:
        program = program.replace('"max_input_length": 0}', '"max_input_length": 0, "use_vmap": True}')
    directions = directions_of(run.config, run.tokenizer)
    tags = [run.tokenizer.source_pieces(direction.tags) for direction in directions]
    if tags[0]:
        program = program.replace("pieces = source", f"pieces = {tags[0]} + source")
    if len(tags) > 1:
        program = program.replace('line = "Hello!"', f'line = "Hello!"  # {tags[1]} asks for the other direction')
    return program


def write(run: LoadedRun, folder: Path, quantization: str = "float32") -> None:
    """Writes everything that is needed to translate text with CTranslate2 into an empty folder."""
    tokenizer = run.tokenizer
    pieces = tokenizer.source_pieces(range(tokenizer.source_vocab_size))
    target_pieces = tokenizer.target_pieces(range(tokenizer.target_vocab_size))
    convert(run.model, folder, pieces, target_pieces, quantization, never=(PAD, BOS, *tokenizer.tag_ids.values()))
    save_sentencepiece(tokenizer, folder)
    tags = tokenizer.source_pieces(directions_of(run.config, tokenizer)[0].tags)
    settings = translation_settings(run.config) | {"max_positions": MAX_POSITIONS, "tags": tags}
    write_json(folder / TRANSLATION, settings)


def precision(folder: Path, quantization: str) -> str:
    """What the weights of an exported model are stored in, and what they are computed in here."""
    text = f"weights stored in {quantization}, computed in {ExportedModel(folder).engine.compute_type} for these checks"
    if quantization not in ctranslate2.get_supported_compute_types("cpu"):
        text += f", since CTranslate2 does not compute in {quantization} on this CPU"
    return text


# ---- translating with the exported model ----


class ExportedModel:
    """Translates with CTranslate2 and SentencePiece alone, as users of the folder do."""

    def __init__(self, folder: Path) -> None:
        with _errors_only():
            self.engine = ctranslate2.Translator(str(folder), device="cpu")
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(str(folder / name)) for name in SENTENCEPIECE_FILES
        )

    def translate(
        self, lines: Sequence[str], search: SampleSearch, *, tags: Sequence[str] = (), use_shortlist: bool = False
    ) -> list[Written]:
        results = self.engine.translate_batch(
            [[*tags, *pieces] for pieces in self.source.encode(list(lines), out_type=str)],
            beam_size=search.beam_size,
            length_penalty=1,
            max_decoding_length=search.max_length,
            max_input_length=0,
            max_batch_size=search.batch_tokens,
            batch_type="tokens",
            use_vmap=use_shortlist,
        )
        ids = [self.target.piece_to_id(result.hypotheses[0]) for result in results]
        return [Written(self.target.decode([piece for piece in row if piece >= NUM_SPECIAL]), row) for row in ids]


@contextmanager
def _errors_only() -> Iterator[None]:
    """Keeps the library from warning that it computes in another type than the weights have: `precision` says so."""
    level = ctranslate2.get_log_level()
    ctranslate2.set_log_level(max(level, logging.ERROR))
    try:
        yield
    finally:
        ctranslate2.set_log_level(level)


def translate(folder: Path, lines: Sequence[str], search: SampleSearch, tags: Sequence[str] = ()) -> list[Written]:
    return ExportedModel(folder).translate(lines, search, tags=tags)
