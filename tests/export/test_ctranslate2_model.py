"""CTranslate2 and our Transformer agree when given the same weights."""

from pathlib import Path

import ctranslate2
import pytest
import torch

from translator.decoding.forced_decoding import score_targets
from translator.decoding.search import SearchOptions, search
from translator.errors import UserError
from translator.export.ctranslate2_model import convert
from translator.ids import BOS, EOS, PAD
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer

VOCAB = 60
NAMES = [str(piece) for piece in range(VOCAB)]
MAX_LENGTH = 12
VARIANTS = [
    {"norm_order": "pre", "norm": "layer", "activation": "relu", "positions": "sinusoidal", "tie_embeddings": "all"},
    {"norm_order": "post", "norm": "layer", "activation": "gelu", "positions": "learned", "tie_embeddings": "none"},
    {"norm_order": "pre", "norm": "rms", "activation": "swiglu", "positions": "none", "tie_embeddings": "target"},
    {"norm_order": "pre", "norm": "rms", "activation": "swiglu", "positions": "rotary", "tie_embeddings": "all"},
    {"norm_order": "post", "norm": "layer", "activation": "relu", "positions": "rotary", "tie_embeddings": "none"},
]


def transformer(**options: str) -> Transformer:
    torch.manual_seed(1)
    model = Transformer(VOCAB, VOCAB, 16, 32, 2, encoder_layers=2, decoder_layers=3, **options)  # type: ignore[arg-type]
    with torch.no_grad():  # peaked distributions, and non-trivial biases and gains
        for parameter in model.parameters():
            parameter.copy_(2 * parameter + 0.1 * torch.randn_like(parameter))
    return model.eval()


def sources() -> list[list[int]]:
    generator = torch.Generator().manual_seed(5)
    return [[*torch.randint(4, VOCAB, (length,), generator=generator).tolist(), EOS] for length in range(1, 15)]


def pieces(ids: list[list[int]]) -> list[list[str]]:
    return [[str(piece) for piece in sentence] for sentence in ids]


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(options.values()))
def test_scores_and_searches_agree(options: dict[str, str], tmp_path: Path) -> None:
    model = transformer(**options)
    convert(model, tmp_path / "converted", NAMES, NAMES)
    engine = ctranslate2.Translator(str(tmp_path / "converted"), compute_type="float32", intra_threads=1)
    lines = sources()
    source = torch.nn.utils.rnn.pad_sequence([torch.tensor(line) for line in lines], True, PAD)

    targets = [line[-2::-1] for line in lines]
    ours = score_targets(model, source, source != PAD, targets)
    theirs = engine.score_batch(pieces([line[:-1] for line in lines]), pieces(targets))  # which adds EOS itself
    for our_result, their_result in zip(ours, theirs, strict=True):
        assert our_result.piece_scores == pytest.approx(their_result.log_probs, abs=1e-3)

    convert(model, tmp_path / "never", NAMES, NAMES, never=(PAD, BOS))
    engine = ctranslate2.Translator(str(tmp_path / "never"), compute_type="float32", intra_threads=1)
    greedy = SearchOptions(beam_size=1, max_length_ratio=0, max_length_extra=MAX_LENGTH)
    found = [hypotheses[0].ids for hypotheses in search(model, source, source != PAD, greedy)]
    results = engine.translate_batch(pieces([line[:-1] for line in lines]), beam_size=1, max_decoding_length=MAX_LENGTH)
    assert pieces(found) == [result.hypotheses[0] for result in results]
    assert len({tuple(ids) for ids in found}) > 2


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (Transformer(VOCAB, VOCAB, 16, 32, 2, 1, 1, score="additive"), "score"),
        (Transformer(VOCAB, VOCAB, 16, 32, 2, 1, 1, positions="relative"), "relative"),
        (LstmSeq2Seq(VOCAB, VOCAB, 8, 8, 8, 1, 1), "LSTM"),
    ],
    ids=["score", "relative", "lstm"],
)
def test_models_that_it_cannot_represent_are_refused(model: torch.nn.Module, named: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=named):
        convert(model, tmp_path / "converted", NAMES, NAMES)
    assert not (tmp_path / "converted").exists()
