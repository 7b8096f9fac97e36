"""A run as training leaves it, with its corpora, but with an untrained model."""

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.utils.tensorboard import SummaryWriter

from translator import config
from translator.data.tokenizer import Tokenizer
from translator.files.atomic import write_json
from translator.runs.directory import RunDirectory
from translator.runs.model import build_model
from translator.runs.weights import collect_weights, write_tensors
from translator.schema.data import Directions, TextDataConfig, TokenizerConfig
from translator.schema.decode import SearchOptions
from translator.schema.model import LstmConfig, TransformerConfig
from translator.schema.training import OptimConfig, TrainerConfig

HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror=alert(1)> & "quotes"'
TRAIN = [
    ("A man reads a book.", "Ein Mann liest ein Buch."),
    ("Two dogs run through the snow.", "Zwei Hunde rennen durch den Schnee."),
    ("The house is red.", "Das Haus ist rot."),
    ("Anna has 12 cats.", "Anna hat 12 Katzen."),
] * 5
TEST = [
    ("A man reads.", "Ein Mann liest."),
    ("Anna has 12 red dogs.", "Anna hat 12 rote Hunde."),
    (HOSTILE, f"{HOSTILE} 猫"),
    ("The house is in the snow.", "Das Haus ist im Schnee."),
    ("", ""),
    ("שלום עולם", "مرحبا بالعالم"),
]
MODELS = {
    "transformer": lambda: TransformerConfig(
        model_size=16, feedforward_size=32, num_heads=2, encoder_layers=1, decoder_layers=2
    ),
    "lstm": lambda: LstmConfig(embedding_size=16, hidden_size=16, attention_size=16),
}
CURVE = [(10, 5.0), (20, 4.0), (30, 3.5)]


def write_corpora(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in (("train", TRAIN), ("valid", TEST[:2]), ("test", TEST)):
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    alignments = "0-0 1-1 2-2 3-3\n0-0\n0-0\n0-0 1-1\n\n0-0\n"
    (folder / "test.en-de.align").write_text(alignments, encoding="utf-8")


@cache
def small_tokenizer(*tags: str) -> Tokenizer:
    return Tokenizer.train(TRAIN, vocab_size=330, tags=tags)


def make_small_run(
    folder: Path, corpora: Path, model: str = "transformer", *, seed: int = 1, both_directions: bool = False
) -> Path:
    texts = {split: str(corpora / split) for split in ("train", "valid", "test")}
    directions = Directions.both if both_directions else Directions.forward
    settings = config.Config(
        model=MODELS[model](),
        data=TextDataConfig(**texts, directions=directions),
        tokenizer=TokenizerConfig(vocab_size=330),
        optim=OptimConfig(),
        trainer=TrainerConfig(),
        decode=SearchOptions(beam_size=3, max_length_ratio=1.0, max_length_extra=5),
    )
    tags = ["<2de>", "<2en>"] if both_directions else []
    tokenizer = small_tokenizer(*tags)
    torch.manual_seed(seed)
    module = build_model(settings.model, tokenizer.source_vocab_size, tokenizer.target_vocab_size)
    for parameter in module.parameters():
        parameter.data.mul_(3)  # so that its probabilities are not all alike
    folder.mkdir()
    run = RunDirectory(folder)
    config.save_file(settings, run.config)
    tokenizer.save(run.tokenizer)
    write_tensors(run.weights, collect_weights(module))
    details: dict[str, Any] = {"seed": 1, "files": [], "cleaning": [], "command": "python -m translator.train a=b"}
    run.create(identity={"data": {"tokenizer": tokenizer.fingerprint}}, details=details)
    history = [{"update": step, "loss": value, "bleu": 10.0 * step, "chrf": 20.0 + step} for step, value in CURVE]
    write_json(run.metrics, {"history": history, "num_updates": 30, "seconds": 12.0})
    with SummaryWriter(str(run.tensorboard)) as writer:
        for step, value in CURVE:
            writer.add_scalar("train/loss", value + 1, step)
            writer.add_scalar("train/learning_rate", value / 1_000, step)
    return folder
