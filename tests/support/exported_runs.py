"""Small runs to export: untrained models of any architecture, and one that has memorised a few sentences."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from translator import config
from translator.data.tokenizer import Tokenizer
from translator.ids import BOS, EOS, PAD
from translator.models.base import Seq2Seq
from translator.runs.model import build_model
from translator.runs.weights import collect_weights, write_tensors
from translator.schema.data import TextDataConfig, TokenizerConfig
from translator.schema.decode import SearchOptions
from translator.schema.model import LstmConfig, TransformerConfig
from translator.schema.training import OptimConfig, TrainerConfig

PAIRS = [
    ("A man reads a book.", "Ein Mann liest ein Buch."),
    ("Two dogs run through the snow.", "Zwei Hunde rennen durch den Schnee."),
    ("The house is red.", "Das Haus ist rot."),
    ("She sings.", "Sie singt."),
    ("Three cats sleep under the old table.", "Drei Katzen schlafen unter dem alten Tisch."),
    ("We see the sea.", "Wir sehen das Meer."),
]
# Also blank lines, unknown words and unknown characters.
LINES = [
    *(source for source, _ in PAIRS),
    "",
    "A dog reads.",
    "  ",
    "Two men run under the red house.",
    "☃",
    "She sings the old book.",
]
SMALL: dict[str, Any] = {
    "model_size": 32,
    "feedforward_size": 32,
    "num_heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "dropout": 0.0,
}
NUM_UPDATES = 60


def make_run(
    folder: Path,
    model: config.ModelConfig | None = None,
    *,
    joint: bool = True,
    kind: str = "bpe",
    byte_fallback: bool = True,
    decode: SearchOptions | None = None,
    num_updates: int = NUM_UPDATES,
    tags: Sequence[str] = (),
) -> Path:
    """A finished run whose validation set lies beside it."""
    folder.mkdir(parents=True)
    for language, texts in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        for split in ("train", "valid"):
            path = folder.parent / f"{split}.{language}"
            path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    settings = config.Config(
        model=model or TransformerConfig(**SMALL),
        data=TextDataConfig(train=str(folder.parent / "train"), valid=str(folder.parent / "valid")),
        tokenizer=TokenizerConfig(vocab_size=320, joint=joint, kind=kind, byte_fallback=byte_fallback),  # type: ignore[arg-type]
        optim=OptimConfig(),
        trainer=TrainerConfig(),
        decode=decode or SearchOptions(beam_size=3),
    )
    options = {"joint": joint, "kind": kind, "byte_fallback": byte_fallback, "tags": tags}
    tokenizer = Tokenizer.train(PAIRS * 3, vocab_size=320, **options)  # type: ignore[arg-type]
    torch.manual_seed(1)
    module = build_model(settings.model, tokenizer.source_vocab_size, tokenizer.target_vocab_size)
    learn(module, tokenizer, num_updates)
    config.save_file(settings, folder / "config.yaml")
    tokenizer.save(folder / "tokenizer")
    write_tensors(folder / "model.safetensors", collect_weights(module))
    (folder / "manifest.json").write_text(json.dumps({"format_version": 1}), encoding="utf-8")
    scores = {"bleu": 12.34, "chrf": 56.78, "signatures": {"bleu": "the signature"}}
    figures = {"validation": scores, "test": None, "num_parameters": 1_234, "num_updates": num_updates}
    (folder / "metrics.json").write_text(json.dumps(figures), encoding="utf-8")
    return folder


def lstm_run(folder: Path) -> Path:
    return make_run(folder, LstmConfig(embedding_size=8, hidden_size=8, attention_size=8), num_updates=0)


def learn(model: Seq2Seq, tokenizer: Tokenizer, num_updates: int) -> None:
    """Trains the model until it has more or less memorised the pairs."""
    sources = padded(tokenizer.encode_source([source for source, _ in PAIRS]))
    targets = padded([[BOS, *ids, EOS] for ids in tokenizer.encode_target([target for _, target in PAIRS])])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(num_updates):
        logits = model.project(model(sources, sources != PAD, targets[:, :-1]).states)  # (B, T, V)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def padded(rows: list[list[int]]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
