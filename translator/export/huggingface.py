"""Exports a run to Hugging Face's `transformers`, which loads it without remote code."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, GenerationConfig
from transformers.utils.logging import disable_progress_bar

from translator.export.huggingface_model import MAX_POSITIONS, make_configuration, supported, weights
from translator.export.huggingface_tokenizer import TARGET_TOKENIZER, save_tokenizers
from translator.export.model_card import BY_TOKENIZER
from translator.export.sample import SampleSearch, Written
from translator.ids import BOS, EOS, PAD, UNK
from translator.runs.loading import LoadedRun
from translator.runs.weights import write_tensors
from translator.schema.decode import LengthPenalty, SearchOptions

__all__ = ["NORMALIZATION", "PACKAGES", "supported", "translate", "usage", "write"]

PACKAGES = "transformers torch"
USAGE = """
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "FOLDER"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)

inputs = tokenizer(["Hello!"], return_tensors="pt", padding=True)
outputs = model.generate(**inputs, max_length=None, max_new_tokens=200)
print(tokenizer.batch_decode(outputs, skip_special_tokens=True)[0])
"""
SEPARATE_USAGE = USAGE.replace(
    "model =", f'target_tokenizer = AutoTokenizer.from_pretrained(folder, subfolder="{TARGET_TOKENIZER}")\nmodel ='
).replace("print(tokenizer", "print(target_tokenizer")
NORMALIZATION = BY_TOKENIZER


def usage(run: LoadedRun) -> str:
    return USAGE if run.tokenizer.joint else SEPARATE_USAGE


def write(run: LoadedRun, folder: Path) -> None:
    """Writes model, configuration and tokenizer into an empty folder."""
    model = supported(run.model)
    configuration = make_configuration(model)
    configuration.save_pretrained(folder)
    write_tensors(
        folder / "model.safetensors", {name: tensor.float() for name, tensor in weights(model, configuration)}
    )
    _generation(run.config.decode, has_unknown=not _falls_back_to_bytes(run)).save_pretrained(folder)
    save_tokenizers(run.tokenizer, folder, run.config.data.cleaning.normalize, configuration.max_position_embeddings)


def _falls_back_to_bytes(run: LoadedRun) -> bool:
    return bool(run.config.tokenizer.byte_fallback)


def _generation(options: SearchOptions, has_unknown: bool) -> GenerationConfig:
    """The run's search options, as far as `generate` supports them; GNMT's length penalty becomes a power of length."""
    penalty = 0.0 if options.length_penalty is LengthPenalty.none else options.alpha
    return GenerationConfig(
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        suppress_tokens=[PAD, BOS] if has_unknown else [PAD, UNK, BOS],
        min_new_tokens=options.min_length,
        no_repeat_ngram_size=options.no_repeat_ngram,
        max_length=MAX_POSITIONS,
        num_beams=options.beam_size,
        **({"length_penalty": penalty, "early_stopping": True} if options.beam_size > 1 else {}),
    )


# ---- translating with the exported model ----


def translate(folder: Path, lines: Sequence[str], search: SampleSearch) -> list[Written]:
    """Translations made with `transformers` alone, as users of the folder will make them."""
    disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    has_two = (folder / TARGET_TOKENIZER).is_dir()
    target = AutoTokenizer.from_pretrained(folder / TARGET_TOKENIZER) if has_two else tokenizer
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=False).eval()
    penalty = {"length_penalty": 1.0, "early_stopping": True} if search.beam_size > 1 else {}
    order = sorted(range(len(lines)), key=lambda line: len(lines[line]))
    num_together = max(1, search.batch_tokens // 64)
    outputs: dict[int, Written] = {}
    for start in range(0, len(order), num_together):
        batch = order[start : start + num_together]
        inputs = tokenizer([lines[line] for line in batch], return_tensors="pt", padding=True)
        ids = model.generate(
            **inputs,
            num_beams=search.beam_size,
            max_length=None,
            max_new_tokens=search.max_length,
            min_new_tokens=1,
            no_repeat_ngram_size=0,
            **penalty,
        )
        texts = target.batch_decode(ids, skip_special_tokens=True)
        rows = [list(takewhile(lambda piece: piece != EOS, row)) for row in ids[:, 1:].tolist()]  # without BOS
        outputs.update(zip(batch, map(Written, texts, rows), strict=True))
    return [outputs[line] for line in range(len(lines))]
