import pytest
import torch

from support.fake_models import TableModel, batch_of
from translator.decoding.ensemble import Ensemble
from translator.decoding.forced_decoding import score_targets
from translator.decoding.search import SearchOptions, search
from translator.ids import BOS, EOS
from translator.models.base import State

SOURCES = [[4, EOS], [5, 6, EOS], [4, 4, 5, EOS]]


def test_an_ensemble_has_the_mean_of_its_models_probabilities() -> None:
    models = [TableModel.random(seed, vocab_size=11) for seed in (1, 2)]
    ensemble = Ensemble(models)
    batch = batch_of(SOURCES)
    states: list[State] = [model.start(model.encode(*batch)) for model in (*models, ensemble)]
    for tokens in (torch.full((3,), BOS), torch.tensor([5, 6, 7])):
        steps = [model.step(tokens, state) for model, state in zip((*models, ensemble), states, strict=True)]
        one, other, both = (torch.softmax(step.logits, -1) for step in steps)
        torch.testing.assert_close(both, (one + other) / 2)
        states = [step.state for step in steps]


def test_a_model_with_itself_is_the_model() -> None:
    model = TableModel.random(6, vocab_size=40)
    options = SearchOptions(beam_size=4, num_hypotheses=4)
    alone, twice = (search(m, *batch_of(SOURCES), options) for m in (model, Ensemble([model, model])))
    assert [[h.ids for h in sentence] for sentence in alone] == [[h.ids for h in sentence] for sentence in twice]


def test_an_ensemble_can_score_and_attend() -> None:
    ensemble = Ensemble([TableModel.random(seed, vocab_size=11) for seed in (1, 2)])
    source, mask = batch_of(SOURCES)
    found = search(ensemble, source, mask, SearchOptions(beam_size=3))
    forced = score_targets(ensemble, source, mask, [h[0].ids for h in found], need_attention=True)
    assert [h[0].score for h in found] == pytest.approx([result.score for result in forced])
    for ids, result, hypotheses in zip(SOURCES, forced, found, strict=True):
        assert result.attention is not None
        assert result.attention.shape == (len(hypotheses[0].ids) + 1, len(ids))
        torch.testing.assert_close(result.attention.sum(1), torch.ones(len(hypotheses[0].ids) + 1))


def test_an_ensemble_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Ensemble([])
