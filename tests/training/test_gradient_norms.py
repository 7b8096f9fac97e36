"""The gradient norms of the parts of a model."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from support.training_toys import make_model, make_trainer
from translator.models.base import Seq2Seq
from translator.models.lstm import LstmSeq2Seq
from translator.models.transformer import Transformer
from translator.training.gradient_norms import GradientNorms
from translator.training.interfaces import NO_MOMENT

SIZES = {"model_size": 8, "feedforward_size": 8, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 1}
LSTM_SIZES = {"embedding_size": 8, "hidden_size": 6, "attention_size": 5, "encoder_layers": 1, "decoder_layers": 2}


def with_gradients(model: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    return model


@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_parts_add_up_to_the_whole(tie: str) -> None:
    models: list[Seq2Seq] = [Transformer(20, 20, **SIZES, tie_embeddings=tie)]
    models.append(LstmSeq2Seq(20, 20, **LSTM_SIZES, tie_embeddings=tie))
    for model in models:
        with_gradients(model)
        squares = sum(p.grad.double().square().sum().item() for p in model.parameters() if p.grad is not None)
        norms = GradientNorms(model).measure().double()
        assert norms.square().sum().item() == pytest.approx(squares, rel=1e-6)


def test_parts_are_layers_and_shared_matrices_are_named_after_all_their_uses() -> None:
    model = with_gradients(Transformer(20, 20, **SIZES, positions="relative"))
    norms = GradientNorms(model)
    measured = dict(zip(norms.names, norms.measure().tolist(), strict=True))
    assert measured.keys() == {
        *("embeddings/output_source_target", "encoder/1", "encoder/2", "decoder/1"),
        *("encoder_norm", "decoder_norm", "encoder_bias", "decoder_bias"),
    }
    assert isinstance(model.encoder, nn.ModuleList)
    second = [p.grad.double().square().sum().item() for p in model.encoder[1].parameters() if p.grad is not None]
    assert measured["encoder/2"] == pytest.approx(math.sqrt(sum(second)), rel=1e-6)
    tied = GradientNorms(LstmSeq2Seq(20, 20, **LSTM_SIZES, tie_embeddings="target")).names
    assert {"embeddings/output_target", "embeddings/source", "encoder/forwards/1", "decoder/upper/1"} <= set(tied)


def test_a_part_without_gradient_has_none() -> None:
    model = make_model()
    model.hidden.bias.grad = torch.full((12,), 2.0)
    norms = GradientNorms(model)
    measured = dict(zip(norms.names, norms.measure().tolist(), strict=True))
    assert measured == {"embedding_output": 0.0, "output": 0.0, "hidden": pytest.approx(math.sqrt(48)), "norm": 0.0}


def test_measuring_changes_no_bit_and_agrees_with_the_whole_norm(tmp_path: Path) -> None:
    weights = []
    for measure in (False, True):
        trainer = make_trainer(tmp_path / str(measure), model=make_model(), max_updates=3)
        batches, norms = iter(trainer.loader), []
        for _ in range(3):
            outcome = trainer.updater([next(batches)], learning_rate=0.1, moment=NO_MOMENT, measure_parts=measure)
            norms.append(outcome)
        weights.append([parameter.detach().clone() for parameter in trainer.model.parameters()])
        for outcome in norms:
            assert set(outcome.parts) == {"nll"}
            if measure:  # before clipping, like the norm of the whole
                assert math.hypot(*outcome.part_norms.values()) == pytest.approx(outcome.gradient_norm, rel=1e-5)
            else:
                assert outcome.part_norms == {}
    assert all(map(torch.equal, *weights))
