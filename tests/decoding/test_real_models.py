"""Search over the real models, in float64 so that rounding cannot turn one piece into another."""

import pytest
import torch

from support.fake_models import batch_of
from translator.decoding.ensemble import Ensemble
from translator.decoding.forced_decoding import score_targets
from translator.decoding.search import SearchOptions, search
from translator.ids import EOS
from translator.models.base import Seq2Seq
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer

VOCAB = 60


def transformer(seed: int) -> Seq2Seq:
    torch.manual_seed(seed)
    return Transformer(VOCAB, VOCAB, 16, 32, 2, encoder_layers=2, decoder_layers=2)


def lstm(seed: int) -> Seq2Seq:
    torch.manual_seed(seed)
    return LstmSeq2Seq(VOCAB, VOCAB, 12, 14, 10, encoder_layers=1, decoder_layers=2)


def sharpened(model: Seq2Seq) -> Seq2Seq:
    """Untrained models find everything equally likely; larger weights make them opinionated."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 2.5
    return model.double().eval()


MODELS = {
    "transformer": lambda: sharpened(transformer(1)),
    "lstm": lambda: sharpened(lstm(2)),
    "both": lambda: Ensemble([sharpened(transformer(3)), sharpened(lstm(4))]).eval(),
}


def sources() -> list[list[int]]:
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(1, 12, (14,), generator=generator).tolist()
    return [[*torch.randint(4, VOCAB, (length,), generator=generator).tolist(), EOS] for length in lengths]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_an_output_does_not_depend_on_its_batch_and_has_the_scorers_score(name: str, beam_size: int) -> None:
    model = MODELS[name]()
    options = SearchOptions(beam_size=beam_size, num_hypotheses=beam_size, max_length_ratio=1.5, max_length_extra=3)
    lines = sources()
    source, mask = batch_of(lines)
    together = search(model, source, mask, options)
    alone = [search(model, *batch_of([line]), options)[0] for line in lines]
    assert [[h.ids for h in hypotheses] for hypotheses in together] == [
        [h.ids for h in hypotheses] for hypotheses in alone
    ]
    assert len({tuple(hypotheses[0].ids) for hypotheses in together}) > 5
    with torch.inference_mode():
        forced = score_targets(model, source, mask, [hypotheses[0].ids for hypotheses in together])
    assert [hypotheses[0].score for hypotheses in together] == pytest.approx([result.score for result in forced])


@pytest.mark.parametrize("name", MODELS)
def test_attention_is_a_distribution_over_the_source(name: str) -> None:
    lines = sources()
    source, mask = batch_of(lines)
    forced = score_targets(MODELS[name](), source, mask, [line[:-1] for line in lines], need_attention=True)
    for line, result in zip(lines, forced, strict=True):
        assert result.attention is not None
        assert result.attention.shape == (len(line), len(line))
        torch.testing.assert_close(result.attention.sum(1), torch.ones(len(line)))


def test_searching_leaves_a_model_trainable() -> None:
    for model in (transformer(1), lstm(1)):
        source, mask = batch_of(sources())
        search(model.eval(), source, mask, SearchOptions(beam_size=2, max_length_ratio=0, max_length_extra=5))
        model.train()
        states = model(source, mask, source).states
        model.project(states).sum().backward()
        assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())
