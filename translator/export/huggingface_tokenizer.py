"""Our tokenizer as one of Hugging Face's fast tokenizers, normalisation included.

`AutoTokenizer` loads it without remote code. A run with two vocabularies has a second one for its target language.
"""

from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from translator.data import tokenizer as own
from translator.data.normalization import SENTENCEPIECE_SPACE
from translator.ids import BOS, EOS, PAD, UNK

TARGET_TOKENIZER = "target_tokenizer"  # the folder of the second one
NOT_IN_TEXT = -1e6  # score of pieces that no text is split into: control pieces and bytes
# The unigram model of `tokenizers` would still produce such a piece if its name occurred in a text, so text is split
# within such names.
_WITHIN_NAMES = r"<(?=pad>|unk>|s>|/s>|0x[0-9A-F]{2}>)"
# As in `normalize_text`.
_TO_SPACE = r"[\x{00}-\x{1F}\x{7F}-\x{9F}\x{2028}\x{2029}]"
_TO_NOTHING = r"[\x{AD}\x{FEFF}]"
_SPACES = r"[\x{20}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]+"


def save_tokenizers(tokenizer: own.Tokenizer, folder: Path, normalize: bool, max_length: int) -> None:
    fast_tokenizer(tokenizer.kind, tokenizer.source_model, normalize, max_length).save_pretrained(folder)
    if not tokenizer.joint:
        target = fast_tokenizer(tokenizer.kind, tokenizer.target_model, normalize, max_length)
        target.save_pretrained(folder / TARGET_TOKENIZER)


def fast_tokenizer(kind: str, model: bytes, normalize: bool, max_length: int) -> PreTrainedTokenizerFast:
    """The tokenizer of a SentencePiece model."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    result = Tokenizer(_model(kind, processor, pieces))
    result.normalizer = _normalizer(normalize)
    if kind == "unigram":
        result.pre_tokenizer = pre_tokenizers.Split(Regex(_WITHIN_NAMES), "merged_with_previous")
    result.decoder = decoders.Sequence(
        [
            decoders.Replace(SENTENCEPIECE_SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    end = pieces[EOS]
    result.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", pair=f"$A {end} $B {end}", special_tokens=[(end, EOS)]
    )
    special = [AddedToken(pieces[number], special=True, normalized=False) for number in (PAD, UNK, BOS, EOS)]
    result.add_special_tokens(special)
    result.encode_special_tokens = True
    return PreTrainedTokenizerFast(
        tokenizer_object=result,
        pad_token=pieces[PAD],
        unk_token=pieces[UNK],
        bos_token=pieces[BOS],
        eos_token=pieces[EOS],
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
        split_special_tokens=True,  # "</s>" in a text is text
    )


def _model(kind: str, processor: sentencepiece.SentencePieceProcessor, pieces: list[str]) -> models.Model:
    has_bytes = any(processor.is_byte(number) for number in range(len(pieces)))
    if kind == "unigram":
        scores = [
            (piece, NOT_IN_TEXT if _is_special(processor, number) else processor.get_score(number))
            for number, piece in enumerate(pieces)
        ]
        return models.Unigram(scores, unk_id=UNK, byte_fallback=has_bytes)
    numbers = {piece: number for number, piece in enumerate(pieces)}
    merges = _merges(processor, pieces) if kind == "bpe" else []  # characters are never merged
    return models.BPE(vocab=numbers, merges=merges, unk_token=pieces[UNK], fuse_unk=True, byte_fallback=has_bytes)


def _merges(processor: sentencepiece.SentencePieceProcessor, pieces: list[str]) -> list[tuple[str, str]]:
    """Every way to merge two pieces into another, in the order in which SentencePiece prefers the results."""
    text_pieces = {piece for number, piece in enumerate(pieces) if not _is_special(processor, number)}
    ranked = []
    for number, piece in enumerate(pieces):
        if piece in text_pieces:
            splits = ((piece[:place], piece[place:]) for place in range(1, len(piece)))
            merges = [split for split in splits if split[0] in text_pieces and split[1] in text_pieces]
            ranked += [(-processor.get_score(number), number, merge) for merge in merges]
    return [merge for _, _, merge in sorted(ranked)]


def _is_special(processor: sentencepiece.SentencePieceProcessor, number: int) -> bool:
    return bool(processor.is_control(number) or processor.is_unknown(number) or processor.is_byte(number))


def _normalizer(normalize: bool) -> normalizers.Normalizer:
    """`normalize_text`, then what SentencePiece does: a mark for every space and one at the beginning."""
    steps: list[normalizers.Normalizer] = []
    if normalize:
        steps = [
            normalizers.Replace(Regex(_TO_SPACE), " "),
            normalizers.Replace(Regex(_TO_NOTHING), ""),
            normalizers.Replace(SENTENCEPIECE_SPACE, " "),
            normalizers.NFC(),
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.Strip(),
        ]
    marks = [normalizers.Prepend(SENTENCEPIECE_SPACE), normalizers.Replace(" ", SENTENCEPIECE_SPACE)]
    return normalizers.Sequence([*steps, *marks])
